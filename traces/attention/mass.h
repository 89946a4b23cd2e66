// SPDX-License-Identifier: Apache-2.0
// Attention mass: the softmax weights of one query in one lane, summed over the query heads that share its KV
// head. What policies rank tokens by.
#pragma once

#include <span>

#include "configs/units/index.h"

namespace kvsim::trace {

struct MassQuery {
  Layer layer{};
  Head head{};  ///< KV head
  Token query{};
};

class MassSink {
 public:
  MassSink() = default;
  MassSink(const MassSink&) = delete;
  MassSink& operator=(const MassSink&) = delete;
  virtual ~MassSink() = default;

  /// `tokens` are those that the query sees, in the order of their cells; `mass` is theirs.
  virtual void put(const MassQuery& of, std::span<const Token> tokens, std::span<const float> mass) = 0;
};

/// Gives the mass where no numbers are computed.
class MassSource {
 public:
  MassSource() = default;
  MassSource(const MassSource&) = delete;
  MassSource& operator=(const MassSource&) = delete;
  virtual ~MassSource() = default;

  virtual void fill(const MassQuery& of, std::span<const Token> tokens, std::span<float> mass) const = 0;
};

/// Sums to 1: much for the first tokens (attention sinks, Xiao et al. 2023), falling with distance, and more
/// for some tokens than for others (heavy hitters, Zhang et al. 2023), the same ones for every query of a
/// head. Assumed, and the same in every run: enough for a policy that ranks to drop tokens neither by age nor
/// alike in all heads.
class SyntheticMass final : public MassSource {
 public:
  void fill(const MassQuery& of, std::span<const Token> tokens, std::span<float> mass) const override;
};

}  // namespace kvsim::trace
