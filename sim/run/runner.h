// SPDX-License-Identifier: Apache-2.0
// Plays an access stream on a device.
#pragma once

#include <atomic>
#include <functional>

#include "configs/spec/run_spec.h"
#include "sim/run/run_record.h"
#include "traces/record/source.h"

namespace kvsim::sim {

/// The user asked to stop (Ctrl-C).
class Interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

struct RunHooks {
  std::function<void(double done)> progress = [](double) {};  ///< share of the steps, 0 to 1
  const std::atomic<bool>* stop = nullptr;                    ///< set: the run ends with Interrupted
};

/// Simulates `source` on the device of `spec` with its fidelity. One simulation per process (SystemC
/// elaborates once). Reads the source to its end also when memory runs out at load. Throws UserError if the
/// stream does not fit the device.
[[nodiscard]] RunRecord run_stream(const config::RunSpec& spec, trace::AccessSource& source,
                                   const RunHooks& hooks);

}  // namespace kvsim::sim
