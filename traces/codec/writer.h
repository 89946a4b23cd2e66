// SPDX-License-Identifier: Apache-2.0
// Writes a stream of records to a kvsim trace file (.kvt).
#pragma once

#include <filesystem>
#include <memory>

#include "traces/codec/header.h"
#include "traces/record/source.h"

namespace kvsim::trace {

/// The file appears under its name when finish() has succeeded; without that, nothing is left behind. A full
/// disk or a place that cannot be written to is a UserError, from any of its functions.
class TraceWriter final : public AccessSink {
 public:
  TraceWriter(std::filesystem::path path, const TraceHeader& header);
  ~TraceWriter() override;

  /// Precondition: well_formed(record).
  void put(const Record& record) override;
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvsim::trace
