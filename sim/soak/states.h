// SPDX-License-Identifier: Apache-2.0
// Between the board, which knows clocks and temperatures, and windows, which are measured in states: what of
// the one makes the other.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"
#include "models/board/board.h"
#include "sim/soak/window.h"

namespace kvsim::sim {

class States {
 public:
  /// `spec` outlives this. Precondition: its device has clocks. `cool` is the memory's temperature at rest.
  States(const config::RunSpec& spec, std::optional<Celsius> cool);

  /// The state that the board is in.
  [[nodiscard]] WindowState of(const model::Board& board, const std::vector<std::string>& set) const;
  /// All clocks at their fastest points, the memory cool, no rule at work; and the same without other
  /// masters.
  [[nodiscard]] WindowState fastest() const;
  [[nodiscard]] WindowState fastest_alone() const;
  /// The state that the board is in without rules, but with the clocks at their fastest that some cause holds
  /// down.
  [[nodiscard]] WindowState released(const model::Board& board,
                                     const std::function<bool(model::ClockLimit)>& holds) const;
  [[nodiscard]] WindowState cool(WindowState state) const;
  /// Those that may come next, the likeliest first: clocks at the top, the other phase, the memory's next
  /// clocks, the next band of its temperature.
  [[nodiscard]] std::vector<WindowState> likely_after(const WindowState& state) const;

  /// What the device does while the engine is at work in that phase, and while it rests.
  [[nodiscard]] model::Activity activity(const model::Board& board, const PhaseFigures& phase,
                                         double stalled_power) const;
  [[nodiscard]] model::Activity resting(const model::Board& board) const;

 private:
  struct Use {
    std::int64_t busy = 0;  ///< cores with threads
    std::int64_t cores = 0;
  };

  /// With these clocks by domain. Of domains that share a cluster the slowest counts: threads meet.
  [[nodiscard]] WindowState with_clocks(const std::vector<Hertz>& clocks) const;
  [[nodiscard]] bool matters(std::size_t cluster) const;
  [[nodiscard]] Celsius band(Celsius temperature) const;
  [[nodiscard]] bool is_one_band(Celsius a, Celsius b) const;

  const config::RunSpec& spec_;
  const config::ClocksSpec& clocks_;
  std::vector<Use> use_;  ///< by cluster
  Celsius cool_;
};

}  // namespace kvsim::sim
