// SPDX-License-Identifier: Apache-2.0
// Which experts a token takes in a layer: made from a stated popularity and re-use, as there is no text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "configs/spec/run_spec.h"
#include "configs/units/index.h"
#include "traces/workload/popularity.h"

namespace kvsim::trace {

/// Rows of a step that take one expert: `row` of the activations, in its place `slot` of 0 to used - 1.
struct ExpertGroup {
  struct Member {
    std::uint32_t row = 0;
    std::uint32_t slot = 0;

    bool operator==(const Member&) const = default;
  };
  std::int64_t expert = 0;
  std::vector<Member> members;

  bool operator==(const ExpertGroup&) const = default;
};

/// Each layer has an order of popularity of its own. A token keeps each expert that the token before took
/// with the probability `reuse`, and draws the others by popularity, none twice. The draws of a token follow
/// from seed, layer and position alone.
class ExpertRouter {
 public:
  ExpertRouter(const config::LlmSpec& model, const config::ExpertUse& use, std::uint64_t seed);

  /// The experts of the token at `position`, in the order of their slots. Positions may be asked for in any
  /// order; where the one before was not the last asked for in this layer, nothing is kept.
  std::span<const std::int64_t> choose(Layer layer, Token position);
  /// The layer's experts, the most popular first.
  [[nodiscard]] std::span<const std::int64_t> by_popularity(Layer layer) const {
    return layers_.at(layer.pos()).by_rank;
  }
  /// Those of rows [first, first + count), where row 0 is the token at `step_first`; by expert.
  std::vector<ExpertGroup> route(Layer layer, Token step_first, std::uint32_t first, std::uint32_t count);

 private:
  struct LayerState {
    std::vector<std::int64_t> by_rank;  ///< the most popular expert first
    std::vector<std::int64_t> chosen;   ///< by the token at `last`
    std::optional<std::uint32_t> last;
  };

  std::size_t used_;
  double reuse_;
  std::uint64_t seed_;
  Popularity popularity_;
  std::vector<LayerState> layers_;
};

}  // namespace kvsim::trace
