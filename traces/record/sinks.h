// SPDX-License-Identifier: Apache-2.0
// Small sinks and sources that join others: records into a vector, one stream into two places.
#pragma once

#include <vector>

#include "traces/record/source.h"

namespace kvsim::trace {

/// Appends records to a vector that outlives it.
class VectorSink final : public AccessSink {
 public:
  explicit VectorSink(std::vector<Record>& records) : records_(records) {}
  void put(const Record& record) override { records_.push_back(record); }

 private:
  std::vector<Record>& records_;
};

/// Passes a source's records on and also puts each of them into a sink: recording while running.
class Tee final : public AccessSource {
 public:
  Tee(AccessSource& source, AccessSink& sink) : source_(source), sink_(sink) {}

  [[nodiscard]] bool next(std::vector<Record>& batch) override {
    const bool more = source_.next(batch);
    for (const Record& record : batch) {
      sink_.put(record);
    }
    return more;
  }

 private:
  AccessSource& source_;
  AccessSink& sink_;
};

}  // namespace kvsim::trace
