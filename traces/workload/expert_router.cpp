// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/expert_router.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::trace {

ExpertRouter::ExpertRouter(const config::LlmSpec& model, const config::ExpertUse& use, std::uint64_t seed)
    : used_(0), reuse_(use.reuse), seed_(seed), popularity_(use.popularity) {
  if (!model.experts) {
    return;
  }
  const auto count = static_cast<std::size_t>(model.experts->count);
  used_ = static_cast<std::size_t>(model.experts->used);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    LayerState& state = layers_.emplace_back();
    state.by_rank.resize(count);
    std::iota(state.by_rank.begin(), state.by_rank.end(), 0);
    SplitMix64 draws(mix(seed_, static_cast<std::uint64_t>(layer)));
    for (std::size_t i = count; i > 1; --i) {  // Fisher and Yates
      std::swap(state.by_rank[i - 1], state.by_rank[draws.below(i)]);
    }
  }
}

std::span<const std::int64_t> ExpertRouter::choose(Layer layer, Token position) {
  LayerState& state = layers_.at(layer.pos());
  if (state.last == position.value()) {
    return state.chosen;
  }
  const std::uint64_t place = (std::uint64_t{layer.value()} << 32U) | position.value();
  SplitMix64 draws(mix(next_seed(seed_), place));
  const bool follows = state.last && position.value() == *state.last + 1;
  std::erase_if(state.chosen, [&](std::int64_t /*expert*/) { return !follows || !(draws.unit() < reuse_); });
  while (state.chosen.size() < used_) {
    state.chosen.push_back(popularity_.draw(state.by_rank, state.chosen, draws));
  }
  state.last = position.value();
  return state.chosen;
}

std::vector<ExpertGroup> ExpertRouter::route(Layer layer, Token step_first, std::uint32_t first,
                                             std::uint32_t count) {
  std::vector<std::vector<ExpertGroup::Member>> by_expert(by_popularity(layer).size());
  for (std::uint32_t row = first; row < first + count; ++row) {
    const auto chosen = choose(layer, Token(step_first.value() + row));
    for (std::uint32_t slot = 0; slot < chosen.size(); ++slot) {
      by_expert[static_cast<std::size_t>(chosen[slot])].push_back({.row = row, .slot = slot});
    }
  }
  std::vector<ExpertGroup> groups;
  for (std::size_t expert = 0; expert < by_expert.size(); ++expert) {
    if (!by_expert[expert].empty()) {
      groups.push_back(
          {.expert = static_cast<std::int64_t>(expert), .members = std::move(by_expert[expert])});
    }
  }
  return groups;
}

}  // namespace kvsim::trace
