// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/expert_router.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
/// Draws that may hit what a token has already, before it takes the most popular that it has not.
constexpr int kMostDraws = 64;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return spread((a ^ spread(b + kGolden)) + kGolden);
}

bool contains(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

ExpertRouter::ExpertRouter(const config::LlmSpec& model, const config::ExpertUse& use, std::uint64_t seed)
    : used_(0), reuse_(use.reuse), seed_(seed) {
  if (!model.experts) {
    return;
  }
  const auto count = static_cast<std::size_t>(model.experts->count);
  used_ = static_cast<std::size_t>(model.experts->used);
  double sum = 0;
  for (std::size_t rank = 0; rank < count; ++rank) {
    sum += std::pow(static_cast<double>(rank + 1), -use.popularity);
    cumulative_.push_back(sum);
  }
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

std::int64_t ExpertRouter::draw(const LayerState& state, SplitMix64& draws) const {
  for (int i = 0; i < kMostDraws; ++i) {
    const auto at =
        std::upper_bound(cumulative_.begin(), cumulative_.end(), draws.unit() * cumulative_.back());
    const auto rank = std::min<std::ptrdiff_t>(at - cumulative_.begin(), std::ssize(cumulative_) - 1);
    const std::int64_t expert = state.by_rank[static_cast<std::size_t>(rank)];
    if (!contains(state.chosen, expert)) {
      return expert;
    }
  }
  const auto free = std::find_if(state.by_rank.begin(), state.by_rank.end(),
                                 [&](std::int64_t expert) { return !contains(state.chosen, expert); });
  check(free != state.by_rank.end(), "a token takes no more experts than there are");
  return *free;
}

std::span<const std::int64_t> ExpertRouter::choose(Layer layer, Token position) {
  LayerState& state = layers_.at(layer.pos());
  if (state.last == position.value()) {
    return state.chosen;
  }
  const std::uint64_t place = (std::uint64_t{layer.value()} << 32U) | position.value();
  SplitMix64 draws(mix(spread(seed_ + kGolden), place));
  const bool follows = state.last && position.value() == *state.last + 1;
  std::erase_if(state.chosen, [&](std::int64_t /*expert*/) { return !follows || !(draws.unit() < reuse_); });
  while (state.chosen.size() < used_) {
    state.chosen.push_back(draw(state, draws));
  }
  state.last = position.value();
  return state.chosen;
}

std::vector<ExpertGroup> ExpertRouter::route(Layer layer, Token step_first, std::uint32_t first,
                                             std::uint32_t count) {
  std::vector<std::vector<ExpertGroup::Member>> by_expert(cumulative_.size());
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
