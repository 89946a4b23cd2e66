// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/slowdown.h"

#include <algorithm>
#include <array>

#include "sim/soak/soak.h"

namespace kvsim::sim {

using model::ClockLimit;

namespace {

struct Step {
  const char* cause;
  std::array<ClockLimit, 2> limits;
};

/// In the order in which they are added: what the software chose, then what stopped it.
constexpr std::array kSteps{Step{"governor", {ClockLimit::governor, ClockLimit::governor}},
                            Step{"over_current", {ClockLimit::over_current, ClockLimit::supply}},
                            Step{"heat", {ClockLimit::heat, ClockLimit::temperature_cap}}};

/// Less than this share of a token is no cause.
constexpr double kNothing = 1e-6;

}  // namespace

void Slowdown::charge(const std::string& cause, double picoseconds, Picoseconds at) {
  const auto found = std::ranges::find(costs_, cause, &Cost::cause);
  if (found != costs_.end()) {
    found->picoseconds += picoseconds;
  } else {
    costs_.push_back({.cause = cause, .picoseconds = picoseconds, .first_at = at});
  }
}

/// From the fastest state, alone and cool, to the one it was in, a cause at a time.
void Slowdown::add(const TokenPart& part) {
  const Picoseconds at = part.board.now();
  all_ += part.share * part.picoseconds;
  double before = table_.at(states_.fastest_alone()).token_picoseconds(part.depth);
  const auto step = [&](const char* cause, double now) {
    if (std::abs(now - before) > kNothing * now) {
      charge(cause, part.share * (now - before), at);
    }
    before = now;
  };
  step("contention", table_.at(states_.fastest()).token_picoseconds(part.depth));
  const WindowState actual = states_.of(part.board, {});
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    // Clocks that are held down by later causes are still at their fastest.
    const WindowState state = states_.cool(states_.released(part.board, [&](ClockLimit limit) {
      for (std::size_t later = i + 1; later < kSteps.size(); ++later) {
        if (std::ranges::find(kSteps[later].limits, limit) != kSteps[later].limits.end()) {
          return true;
        }
      }
      return false;
    }));
    step(kSteps[i].cause, table_.at(state).token_picoseconds(part.depth));
  }
  step("refresh", table_.at(actual).token_picoseconds(part.depth));
  step("rules", part.picoseconds);
}

std::vector<SlowdownCause> Slowdown::causes() const {
  std::vector<SlowdownCause> causes;
  for (const Cost& cost : costs_) {
    causes.push_back({.cause = cost.cause, .share = cost.picoseconds / all_, .first_at = cost.first_at});
  }
  std::ranges::stable_sort(causes, [](const auto& a, const auto& b) { return a.share > b.share; });
  return causes;
}

}  // namespace kvsim::sim
