// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/page_chooser.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

std::uint64_t head_seed(std::uint64_t seed, const PageQuery& of) {
  return mix(seed, (std::uint64_t{of.layer.value()} << 32U) | of.head.value());
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

std::span<const std::uint32_t> PageChooser::choose(const PageQuery& of) {
  check(of.wanted > 0 && of.wanted <= of.pages, "some of the pages are wanted");
  HeadState& state = heads_[{of.layer.value(), of.head.value()}];
  if (state.last == of.query.value()) {  // another query head, or another thread
    return state.chosen;
  }
  rank_pages(state, of);
  SplitMix64 draws(mix(head_seed(next_seed(seed_), of), of.query.value()));
  const bool follows = state.last && of.query.value() == *state.last + 1;
  const std::uint32_t newest = of.pages - 1;
  std::erase_if(state.chosen,
                [&](std::uint32_t page) { return !follows || !(draws.unit() < reuse_) || page == newest; });
  while (state.chosen.size() >= of.wanted) {  // the newest one takes the place of any
    state.chosen.erase(state.chosen.begin() + static_cast<std::ptrdiff_t>(draws.below(state.chosen.size())));
  }
  state.chosen.push_back(newest);
  while (state.chosen.size() < of.wanted) {
    state.chosen.push_back(popularity_.draw(state.by_rank, state.chosen, draws));
  }
  std::sort(state.chosen.begin(), state.chosen.end());
  state.last = of.query.value();
  return state.chosen;
}

}  // namespace kvsim::trace
