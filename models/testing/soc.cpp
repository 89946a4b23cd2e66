// SPDX-License-Identifier: Apache-2.0
#include "models/testing/soc.h"

#include <utility>

#include "configs/error/error.h"

/// LeakSanitizer reads the stacks of SystemC's threads with their guard pages and crashes now and then.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}

namespace kvsim::model::testing {

namespace {

class Driver : public sc_core::sc_module {
 public:
  Driver(const sc_core::sc_module_name& name, std::function<void()> program)
      : sc_module(name), program_(std::move(program)) {
    SC_HAS_PROCESS(Driver);
    SC_THREAD(drive);
  }
  [[nodiscard]] bool done() const { return done_; }

 private:
  void drive() {
    program_();
    done_ = true;
  }

  std::function<void()> program_;
  bool done_ = false;
};

}  // namespace

Soc::Soc(const sc_core::sc_module_name& name, const config::DeviceSpec& device, Granularity granularity)
    : sc_module(name),
      memory_("memory", device, granularity),
      fabric_("fabric"),
      cpu_("cpu", device, memory_.path()),
      masters_("masters", device, 1, cpu_, memory_.path(), fabric_) {
  for (const std::unique_ptr<CpuCore>& core : cpu_.cores()) {
    const std::string checker = "checker" + std::to_string(checkers_.size());
    checkers_.push_back(std::make_unique<ProtocolChecker>(checker.c_str()));
    core->socket.bind(checkers_.back()->target);
    checkers_.back()->initiator.bind(fabric_.masters);
  }
  checkers_.push_back(std::make_unique<ProtocolChecker>("memory_checker"));
  fabric_.memory.bind(checkers_.back()->target);
  checkers_.back()->initiator.bind(memory_.socket);
}

Picoseconds Soc::run(const std::vector<ThreadWork>& threads) {
  const Picoseconds start = now();
  account_ += cpu_.run(threads, bytes_read_once(threads));
  return now() - start;
}

std::vector<std::string> Soc::broken_rules() const {
  std::vector<std::string> all;
  for (const std::unique_ptr<ProtocolChecker>& checker : checkers_) {
    const std::vector<std::string>& broken = checker->rules().broken();
    all.insert(all.end(), broken.begin(), broken.end());
  }
  return all;
}

void simulate(std::vector<std::function<void()>> programs) {
  std::vector<std::unique_ptr<Driver>> drivers;
  for (std::function<void()>& program : programs) {
    const std::string name = "driver" + std::to_string(drivers.size());
    drivers.push_back(std::make_unique<Driver>(name.c_str(), std::move(program)));
  }
  sc_core::sc_start();
  for (const std::unique_ptr<Driver>& driver : drivers) {
    check(driver->done(), "the program runs to its end");
  }
}

void simulate(std::function<void()> program) {
  std::vector<std::function<void()>> programs;
  programs.push_back(std::move(program));
  simulate(std::move(programs));
}

trace::Extent extent(trace::Address address, Bytes bytes, trace::Kind kind, trace::Access access) {
  return {.address = address,
          .row_bytes = bytes,
          .rows = 1,
          .stride = bytes,
          .access = access,
          .kind = kind,
          .stream = {}};
}

std::vector<ThreadWork> split(trace::Address address, Bytes bytes, std::int64_t threads,
                              std::uint64_t simd_operations) {
  std::vector<ThreadWork> all;
  const Bytes share = bytes / threads;
  for (std::int64_t i = 0; i < threads; ++i) {
    all.push_back({.extents = {extent(address + static_cast<trace::Address>((share * i).count()), share)},
                   .simd_operations = simd_operations / static_cast<std::uint64_t>(threads)});
  }
  return all;
}

}  // namespace kvsim::model::testing
