// SPDX-License-Identifier: Apache-2.0
// For tests: a workload's stream taken apart into steps and operators, and properties that every stream has.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "traces/workload/workload.h"

namespace kvsim::trace {

/// Disjoint half-open intervals; touching ones are one.
class Intervals {
 public:
  /// Returns false if some of [begin, end) was there before.
  bool add(Address begin, Address end);
  [[nodiscard]] bool covers(Address begin, Address end) const;
  [[nodiscard]] bool meets(Address begin, Address end) const;
  bool operator==(const Intervals&) const = default;

 private:
  std::map<Address, Address> end_of_;
};

struct Operation {
  Mark mark;
  std::vector<Extent> extents;
  std::vector<Compute> computes;
};

struct Step {
  Mark mark;
  std::vector<Operation> operations;
};

struct Traffic {
  std::map<Kind, Bytes> read;
  std::map<Kind, Bytes> written;
};

[[nodiscard]] std::vector<Record> records_of(const LlmRun& run);
/// Also checks that marks nest and that each thread's records are together, with one Compute.
[[nodiscard]] std::vector<Step> all_steps_of(const LlmRun& run);
/// Without the probes behind the run.
[[nodiscard]] std::vector<Step> steps_of(const LlmRun& run);
[[nodiscard]] Traffic traffic_of(const Operation& operation);
[[nodiscard]] Traffic traffic_of(const Step& step);
[[nodiscard]] std::uint64_t operations_of(const Operation& operation);

/// Every scratch or KV byte read was written before, in the same step if it is scratch; and within an
/// operator no byte that a thread writes is read or written by another.
void expect_data_flow(const LlmRun& run);

}  // namespace kvsim::trace
