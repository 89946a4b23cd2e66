// SPDX-License-Identifier: Apache-2.0
// Which tokens stay in the cache. A policy sees tokens and what attention said of them, never the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "configs/spec/kv_spec.h"
#include "traces/kv_cache/kv_lane.h"

namespace kvsim::trace {

class KvPolicy {
 public:
  KvPolicy() = default;
  KvPolicy(const KvPolicy&) = delete;
  KvPolicy& operator=(const KvPolicy&) = delete;
  virtual ~KvPolicy() = default;

  /// Appends to `cells` those whose tokens leave before the token `next` comes in.
  virtual void leaving(const KvLane& lane, Token next, std::vector<KvCell>& cells) const = 0;
  /// Whether the query at position `query` may look at `token`, which is not later than it.
  [[nodiscard]] virtual bool sees(Token query, Token token) const = 0;
  /// Tokens that the query at a position sees, itself included; none if scores decide that.
  [[nodiscard]] virtual std::optional<std::int64_t> seen_by(Token query) const = 0;
  /// Tokens that are kept at most, the query's own included; none if all are.
  [[nodiscard]] virtual std::optional<std::int64_t> budget() const = 0;
  /// What a step's attention mass adds to a token's score. `mass` is the softmax weight, summed over the
  /// query heads of a lane; none if the policy does not look at it.
  [[nodiscard]] virtual std::optional<float> credit(float mass) const = 0;

  /// Heads keep different tokens.
  [[nodiscard]] bool ranks() const { return credit(0).has_value(); }
};

[[nodiscard]] std::unique_ptr<const KvPolicy> make_policy(const config::KvSpec& spec);

}  // namespace kvsim::trace
