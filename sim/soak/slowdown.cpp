// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/slowdown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

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

/// From the fastest state, alone, cool and with all in memory, to the one that the board is in, a cause at a
/// time.
std::vector<Slowdown::Stage> Slowdown::stages(const model::Board& board) const {
  std::vector<Stage> stages{{"paging", states_.fastest_alone()}, {"contention", states_.fastest()}};
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    // Clocks that are held down by later causes are still at their fastest.
    const auto holds = [&](ClockLimit limit) {
      return std::any_of(kSteps.begin() + i + 1, kSteps.end(), [limit](const Step& later) {
        return std::ranges::find(later.limits, limit) != later.limits.end();
      });
    };
    stages.push_back({kSteps[i].cause, states_.cool(states_.released(board, holds))});
  }
  stages.push_back({"refresh", states_.of(board, {})});
  return stages;
}

TokenCosts Slowdown::look(const model::Board& board, std::int64_t depth, double picoseconds) {
  const std::vector<Stage> all = stages(board);
  std::vector<WindowState> states;
  std::ranges::transform(all, std::back_inserter(states), &Stage::state);
  table_.prepare(states);
  TokenCosts costs{.picoseconds = picoseconds, .causes = {}};
  const Window& alone = table_.at(states.front());
  double before = alone.token_picoseconds(depth) * (1 - alone.phase.storage_share);
  const auto step = [&](const char* cause, double now) {
    if (std::abs(now - before) > kNothing * now) {
      costs.causes.push_back({.cause = cause, .picoseconds = now - before, .first_at = board.now()});
    }
    before = now;
  };
  for (const Stage& stage : all) {
    step(stage.cause, table_.at(stage.state).token_picoseconds(depth));
  }
  step("rules", picoseconds);
  return costs;
}

void Slowdown::add(const TokenCosts& costs, double share) {
  all_ += share * costs.picoseconds;
  for (const CauseCost& cost : costs.causes) {
    const auto same = std::ranges::find_if(
        costs_, [&](const CauseCost& known) { return std::string_view(known.cause) == cost.cause; });
    CauseCost& sum =
        same != costs_.end() ? *same : costs_.emplace_back(CauseCost{cost.cause, 0, cost.first_at});
    sum.picoseconds += share * cost.picoseconds;
  }
}

std::vector<SlowdownCause> Slowdown::causes() const {
  std::vector<SlowdownCause> causes;
  for (const CauseCost& cost : costs_) {
    if (const double share = cost.picoseconds / all_; std::abs(share) > table_.relative_ci()) {
      causes.push_back({.cause = cost.cause, .share = share, .first_at = cost.first_at});
    }
  }
  std::ranges::stable_sort(causes, [](const auto& a, const auto& b) { return a.share > b.share; });
  return causes;
}

}  // namespace kvsim::sim
