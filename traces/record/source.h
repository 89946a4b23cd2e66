// SPDX-License-Identifier: Apache-2.0
// Where records come from and go to. A live workload and a recorded file look the same to the models.
#pragma once

#include <vector>

#include "traces/record/record.h"

namespace kvsim::trace {

/// Pull source of records.
class AccessSource {
 public:
  AccessSource() = default;
  AccessSource(const AccessSource&) = delete;
  AccessSource& operator=(const AccessSource&) = delete;
  virtual ~AccessSource() = default;

  /// Replaces `batch` by the next records, at least one; returns false, with `batch` empty, after the last.
  /// Throws UserError if the records come from a file that is damaged.
  [[nodiscard]] virtual bool next(std::vector<Record>& batch) = 0;
};

/// Takes records as they are made.
class AccessSink {
 public:
  AccessSink() = default;
  AccessSink(const AccessSink&) = delete;
  AccessSink& operator=(const AccessSink&) = delete;
  virtual ~AccessSink() = default;

  virtual void put(const Record& record) = 0;
};

}  // namespace kvsim::trace
