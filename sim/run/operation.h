// SPDX-License-Identifier: Apache-2.0
// A record stream taken apart into operators.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/cpu/segmenter.h"
#include "traces/record/source.h"

namespace kvsim::sim {

/// What all threads do between two meetings.
struct Operation {
  trace::Mark mark;
  std::vector<model::ThreadWork> threads;  ///< by stream
};

[[nodiscard]] Bytes bytes_of(const model::ThreadWork& thread);
[[nodiscard]] Bytes bytes_of(const Operation& operation);

/// Of weights and KV, what is written and, once, what is read: threads that read the same, or one that reads
/// it again for each query head, do not need it more often from memory for that.
[[nodiscard]] Bytes model_bytes(const Operation& operation);

/// A part of `operation`: of every large extent the `fraction` that begins at `at` of what is left out (0 the
/// first, 1 the last), and the arithmetic that belongs to it. Small extents stay whole.
[[nodiscard]] Operation window_of(const Operation& operation, double fraction, double at);

/// The operation with each extent placed elsewhere: `place` appends what becomes of it.
[[nodiscard]] Operation with_extents(
    const Operation& operation,
    const std::function<void(const trace::Extent&, std::vector<trace::Extent>&)>& place);

/// Reads a stream and checks it against the device that has to run it.
class OperationReader {
 public:
  using Item = std::variant<trace::Alloc, trace::Free, trace::Mark, Operation>;

  /// `source` outlives the reader.
  OperationReader(trace::AccessSource& source, const config::DeviceSpec& device);

  /// The next item, or null after the last; valid until the next call. Marks are those that begin or end a
  /// step. Throws UserError if the stream does not fit the device or is not in order.
  [[nodiscard]] const Item* next();
  /// Addresses are virtual from now on, up to `end`: a mapped file is larger than memory.
  void set_end(Bytes end) { capacity_ = static_cast<std::uint64_t>(end.count()); }
  /// Reads the rest of the stream and only shows it.
  void drain(const std::function<void(const trace::Record&)>& show);

 private:
  [[nodiscard]] bool refill();
  void take(const trace::Extent& extent);
  void take(const trace::Compute& compute);
  void begin_operation(const trace::Mark& mark);
  model::ThreadWork& thread(Stream stream);
  void check_step(const trace::Mark& mark);

  trace::AccessSource& source_;
  std::size_t cores_;
  std::uint64_t capacity_;
  std::vector<trace::Record> batch_;
  std::size_t at_ = 0;
  bool in_step_ = false;
  Item item_;
  Operation operation_;
  std::vector<model::ThreadWork> spare_;  ///< for their extents' room
};

}  // namespace kvsim::sim
