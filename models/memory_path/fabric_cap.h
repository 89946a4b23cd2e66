// SPDX-License-Identifier: Apache-2.0
// A fabric with a clock of its own: every line that is read or written passes through it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "configs/spec/device_spec.h"
#include "models/stream/engine_stream.h"
#include "models/train/line_slots.h"

namespace kvsim::model {

/// A line passes as it comes, or when all that came before has passed: one that waits for less time than its
/// own beats on the memory's bus take is not late. So none is late on a fabric that takes what all channels
/// can give.
class FabricCap {
 public:
  /// `line_time`: of a line's beats on its channel.
  FabricCap(const config::InterconnectSpec& interconnect, std::int64_t line_time)
      : time_(interconnect.fabric
                  ? std::max<std::int64_t>(
                        1, (Bytes(kLineBytes) / config::fabric_bandwidth(*interconnect.fabric)).count())
                  : 0),
        hidden_(line_time - time_),
        slots_(std::max<std::int64_t>(1, time_)) {}

  [[nodiscard]] bool acts() const { return time_ > 0; }
  /// How much later than on a fabric without a bound a line is through whose beats begin at `begins`.
  std::int64_t late(std::int64_t begins) {
    return acts() ? std::max<std::int64_t>(0, slots_.pass(begins) - hidden_) : 0;
  }
  void forget_before(std::int64_t time) {
    if (acts()) {
      slots_.forget_before(time);
    }
  }

 private:
  std::int64_t time_;  ///< of a line
  std::int64_t hidden_;
  LineSlots slots_;
};

}  // namespace kvsim::model
