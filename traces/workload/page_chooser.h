// SPDX-License-Identifier: Apache-2.0
// Which pages of a KV cache attention reads: made from a stated popularity and re-use, as there are no keys.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "configs/spec/run_spec.h"
#include "traces/attention/page_source.h"
#include "traces/workload/popularity.h"

namespace kvsim::trace {

/// A head reads the page being filled, keeps each other page that the token before read with the probability
/// `reuse`, and draws the rest by popularity, none twice. Each head has an order of popularity of its own, in
/// which the first page leads and a new one comes in anywhere. The draws of a token follow from seed, layer,
/// head and position alone; where the token before was not the last asked for, nothing is kept.
class PageChooser final : public PageSource {
 public:
  PageChooser(const config::PageUse& use, std::uint64_t seed)
      : reuse_(use.reuse), seed_(seed), popularity_(use.popularity) {}

  [[nodiscard]] std::span<const std::uint32_t> choose(const PageQuery& of) override;

 private:
  struct HeadState {
    std::vector<std::uint32_t> by_rank;  ///< pages, the most popular first
    std::vector<std::uint32_t> chosen;   ///< by the token at `last`, ascending
    std::optional<std::uint32_t> last;
  };
  void rank_pages(HeadState& state, const PageQuery& of) const;

  double reuse_;
  std::uint64_t seed_;
  Popularity popularity_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, HeadState> heads_;  ///< by layer and head
};

}  // namespace kvsim::trace
