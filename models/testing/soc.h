// SPDX-License-Identifier: Apache-2.0
// Cores, interconnect and memory bound together, with a protocol checker on every connection, and a program
// to run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <systemc>

#include "configs/spec/device_spec.h"
#include "models/cpu/cpu.h"
#include "models/interconnect/interconnect.h"
#include "models/masters/masters.h"
#include "models/memory_path/memory_system.h"
#include "models/testing/protocol_checker.h"

namespace kvsim::model::testing {

class Soc : public sc_core::sc_module {
 public:
  Soc(const sc_core::sc_module_name& name, const config::DeviceSpec& device, Granularity granularity);

  /// Runs one operator on the cores; call from the program. Returns how long it took.
  Picoseconds run(const std::vector<ThreadWork>& threads);
  void skip(const std::vector<ThreadWork>& threads) { cpu_.skip(threads, bytes_read_once(threads)); }
  /// Of the device's list. Stop them at the end of the program.
  [[nodiscard]] Masters& masters() { return masters_; }
  /// Where the time of all operators so far went.
  [[nodiscard]] const TimeAccount& account() const { return account_; }
  [[nodiscard]] MemoryCounters counters() { return memory_.path().counters(); }
  [[nodiscard]] const std::vector<std::unique_ptr<ProtocolChecker>>& checkers() const { return checkers_; }
  /// Rules of the protocol that some connection has broken.
  [[nodiscard]] std::vector<std::string> broken_rules() const;

 private:
  MemorySystem memory_;
  Interconnect fabric_;
  Cpu cpu_;
  Masters masters_;
  std::vector<std::unique_ptr<ProtocolChecker>> checkers_;  ///< one per core, then memory's
  TimeAccount account_;
};

/// Runs each program as a SystemC thread, all from time 0 to their end. Once per process.
void simulate(std::vector<std::function<void()>> programs);
void simulate(std::function<void()> program);

/// Bytes in one run, for one thread.
[[nodiscard]] trace::Extent extent(trace::Address address, Bytes bytes,
                                   trace::Kind kind = trace::Kind::weights,
                                   trace::Access access = trace::Access::read);
/// `bytes` in a row from `address` on, split evenly over `threads`, with `simd_operations` in all.
[[nodiscard]] std::vector<ThreadWork> split(trace::Address address, Bytes bytes, std::int64_t threads,
                                            std::uint64_t simd_operations = 0);

}  // namespace kvsim::model::testing
