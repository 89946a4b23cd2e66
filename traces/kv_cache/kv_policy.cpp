// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_policy.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace kvsim::trace {
namespace {

template <class Visit>
void for_each_resident(const KvLane& lane, Visit visit) {
  for (const KvPoolKind pool : kKvPools) {
    for (KvCell cell{.pool = pool}; cell.index < lane.end(pool); ++cell.index) {
      if (const auto& resident = lane.at(cell)) {
        visit(cell, *resident);
      }
    }
  }
}

class KeepAll final : public KvPolicy {
 public:
  void leaving(const KvLane& /*lane*/, Token /*next*/, std::vector<KvCell>& /*cells*/) const override {}
  bool sees(Token /*query*/, Token /*token*/) const override { return true; }
  std::optional<std::int64_t> seen_by(Token query) const override { return std::int64_t{query.value()} + 1; }
  std::optional<std::int64_t> budget() const override { return {}; }
  std::optional<float> credit(float /*mass*/) const override { return {}; }
};

/// The last `window` tokens and the first `sinks` ones: a sliding window, or StreamingLLM's. Positions are
/// the original ones; StreamingLLM's code counts them anew within the cache.
class KeepWindow final : public KvPolicy {
 public:
  KeepWindow(std::int64_t sinks, std::int64_t window) : sinks_(sinks), window_(window) {}

  void leaving(const KvLane& lane, Token next, std::vector<KvCell>& cells) const override {
    for_each_resident(lane, [&](KvCell cell, const Resident& resident) {
      if (!sees(next, resident.token)) {
        cells.push_back(cell);
      }
    });
  }
  bool sees(Token query, Token token) const override {
    return token.value() < sinks_ || token.value() + window_ > query.value();
  }
  std::optional<std::int64_t> seen_by(Token query) const override {
    return std::min(std::int64_t{query.value()} + 1, sinks_ + window_);
  }
  std::optional<std::int64_t> budget() const override { return sinks_ + window_; }
  std::optional<float> credit(float /*mass*/) const override { return {}; }

 private:
  std::int64_t sinks_;
  std::int64_t window_;
};

enum class Rank : std::uint8_t { attention, entropy };

/// The tokens with the highest scores, besides the last `recent` and the first `sinks` ones: what attention
/// accumulated (H2O), or how much of attention's entropy they carried.
class KeepBest final : public KvPolicy {
 public:
  KeepBest(const config::KvSpec& spec, Rank rank)
      : budget_(spec.h2o + spec.entropy), sinks_(spec.sinks), recent_(recent_share(spec)), rank_(rank) {}

  void leaving(const KvLane& lane, Token next, std::vector<KvCell>& cells) const override {
    const std::int64_t surplus = std::int64_t{lane.size()} - (budget_ - 1);
    if (surplus <= 0) {
      return;
    }
    std::vector<std::tuple<float, Token, KvCell>> ranked;  // of equal ones the oldest leaves
    for_each_resident(lane, [&](KvCell cell, const Resident& resident) {
      const bool fixed = resident.token.value() < sinks_ || resident.token.value() + recent_ > next.value();
      if (!fixed) {
        ranked.emplace_back(resident.score, resident.token, cell);
      }
    });
    const auto count = std::min(surplus, static_cast<std::int64_t>(ranked.size()));
    std::partial_sort(ranked.begin(), ranked.begin() + count, ranked.end());
    for (std::int64_t i = 0; i < count; ++i) {
      cells.push_back(std::get<KvCell>(ranked[static_cast<std::size_t>(i)]));
    }
  }
  bool sees(Token /*query*/, Token /*token*/) const override { return true; }
  std::optional<std::int64_t> seen_by(Token /*query*/) const override { return {}; }
  std::optional<std::int64_t> budget() const override { return budget_; }
  std::optional<float> credit(float mass) const override {
    return rank_ == Rank::attention || mass <= 0 ? mass : std::max(0.0F, -mass * std::log(mass));
  }

 private:
  std::int64_t budget_;
  std::int64_t sinks_;
  std::int64_t recent_;
  Rank rank_;
};

}  // namespace

std::unique_ptr<const KvPolicy> make_policy(const config::KvSpec& spec) {
  if (spec.h2o > 0) {
    return std::make_unique<KeepBest>(spec, Rank::attention);
  }
  if (spec.entropy > 0) {
    return std::make_unique<KeepBest>(spec, Rank::entropy);
  }
  if (spec.window > 0) {
    return std::make_unique<KeepWindow>(spec.sinks, spec.window);
  }
  return std::make_unique<KeepAll>();
}

}  // namespace kvsim::trace
