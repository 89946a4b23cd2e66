// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/page_chooser.h"

#include <algorithm>
#include <cmath>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
/// Draws that may hit what a token has already, before it takes the most popular that it has not.
constexpr int kMostDraws = 64;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return spread((a ^ spread(b + kGolden)) + kGolden);
}

std::uint64_t head_seed(std::uint64_t seed, const PageQuery& of) {
  return mix(seed, (std::uint64_t{of.layer.value()} << 32U) | of.head.value());
}

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

/// Pages come in one after the other, each at a place that follows from its number: an order of fewer pages
/// is that of more without the later ones.
void PageChooser::rank_pages(HeadState& state, const PageQuery& of) const {
  if (state.by_rank.size() > of.pages) {
    std::erase_if(state.by_rank, [&](std::uint32_t page) { return page >= of.pages; });
  }
  while (state.by_rank.size() < of.pages) {
    const auto page = static_cast<std::uint32_t>(state.by_rank.size());
    SplitMix64 place(mix(head_seed(seed_, of), page));
    const std::uint64_t at = page == 0 ? 0 : 1 + place.below(page);
    state.by_rank.insert(state.by_rank.begin() + static_cast<std::ptrdiff_t>(at), page);
  }
}

std::uint32_t PageChooser::draw(const HeadState& state, SplitMix64& draws) const {
  const auto ranks = static_cast<std::ptrdiff_t>(state.by_rank.size());
  const auto end = cumulative_.begin() + ranks;
  for (int i = 0; i < kMostDraws; ++i) {
    const auto at = std::upper_bound(cumulative_.begin(), end, draws.unit() * *std::prev(end));
    const auto rank = std::min(at - cumulative_.begin(), ranks - 1);
    const std::uint32_t page = state.by_rank[static_cast<std::size_t>(rank)];
    if (!contains(state.chosen, page)) {
      return page;
    }
  }
  const auto free = std::find_if(state.by_rank.begin(), state.by_rank.end(),
                                 [&](std::uint32_t page) { return !contains(state.chosen, page); });
  check(free != state.by_rank.end(), "a query reads no more pages than there are");
  return *free;
}

std::span<const std::uint32_t> PageChooser::choose(const PageQuery& of) {
  check(of.wanted > 0 && of.wanted <= of.pages, "some of the pages are wanted");
  HeadState& state = heads_[{of.layer.value(), of.head.value()}];
  if (state.last == of.query.value()) {  // another query head, or another thread
    return state.chosen;
  }
  while (cumulative_.size() < of.pages) {
    const double last = cumulative_.empty() ? 0 : cumulative_.back();
    cumulative_.push_back(last + std::pow(static_cast<double>(cumulative_.size() + 1), -use_.popularity));
  }
  rank_pages(state, of);
  SplitMix64 draws(mix(head_seed(spread(seed_ + kGolden), of), of.query.value()));
  const bool follows = state.last && of.query.value() == *state.last + 1;
  const std::uint32_t newest = of.pages - 1;
  std::erase_if(state.chosen, [&](std::uint32_t page) {
    return !follows || !(draws.unit() < use_.reuse) || page == newest;
  });
  while (state.chosen.size() >= of.wanted) {  // the newest one takes the place of any
    state.chosen.erase(state.chosen.begin() + static_cast<std::ptrdiff_t>(draws.below(state.chosen.size())));
  }
  state.chosen.push_back(newest);
  while (state.chosen.size() < of.wanted) {
    state.chosen.push_back(draw(state, draws));
  }
  std::sort(state.chosen.begin(), state.chosen.end());
  state.last = of.query.value();
  return state.chosen;
}

}  // namespace kvsim::trace
