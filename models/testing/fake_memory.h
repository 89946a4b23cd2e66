// SPDX-License-Identifier: Apache-2.0
// A memory without limits for one line stream: every line comes back after a latency that the test chooses.
#pragma once

#include <functional>
#include <vector>

#include "configs/units/quantity.h"
#include "models/stream/line_stream.h"

namespace kvsim::model::testing {

/// A line and when it was asked for and came back (or, written, was taken).
struct Transfer {
  LineRequest request;
  Picoseconds asked;
  Picoseconds done;
};

class FakeMemory {
 public:
  using Latency = std::function<Picoseconds(const LineRequest&)>;

  FakeMemory(LineStream& stream, Latency latency) : stream_(stream), latency_(std::move(latency)) {}

  /// Serves the stream in the order of time until it asks for nothing and all is back.
  void run();
  [[nodiscard]] const std::vector<Transfer>& transfers() const { return transfers_; }

 private:
  void issue();
  void deliver(std::size_t index);

  LineStream& stream_;
  Latency latency_;
  std::vector<Transfer> outstanding_;
  std::vector<Transfer> transfers_;
};

/// Bytes in one run.
[[nodiscard]] Segment run_of(trace::Address address, Bytes bytes, trace::Access access = trace::Access::read);
/// Addresses of the lines, in order.
[[nodiscard]] std::vector<trace::Address> lines_of(const std::vector<Transfer>& transfers);

}  // namespace kvsim::model::testing
