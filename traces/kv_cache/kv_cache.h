// SPDX-License-Identifier: Apache-2.0
// Functional KV cache: tokens come in, a policy chooses which leave, formats say how they are kept. With a
// payload it holds real numbers; with and without, it makes the same accesses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "configs/units/index.h"
#include "traces/kv_cache/kv_lane.h"
#include "traces/kv_cache/kv_policy.h"
#include "traces/kv_cache/kv_pool.h"
#include "traces/kv_cache/kv_shape.h"
#include "traces/record/source.h"

namespace kvsim::trace {

/// Cells for tokens that shall be appended.
struct KvPlan {
  Token first{};
  std::uint32_t tokens = 0;

  bool operator==(const KvPlan&) const = default;
};

/// The answer in place of a plan. Running out of cells is a result, not an error.
struct DoesNotFit {
  std::uint32_t asked = 0;
  std::uint32_t left = 0;

  bool operator==(const DoesNotFit&) const = default;
};

struct KvCounters {
  std::uint64_t resident = 0;   ///< tokens in the cache; where heads keep different ones, of the first
  std::uint64_t peak = 0;       ///< the largest that `resident` was
  Bytes peak_bytes{};           ///< the most that the tokens in the cache took
  std::uint64_t evictions = 0;  ///< tokens that left, summed over lanes
  std::uint64_t failures = 0;   ///< plans that did not fit and were not applied
  Bytes padding{};              ///< of all that is allocated, what holds no number and no scale
};

/// plan() changes nothing; only apply() takes cells, and only append() writes them.
class KvCache {
 public:
  /// Tokens in F16 lie at `wide`, or behind all others. Throws UserError if formats, layout and shape do not
  /// go together.
  KvCache(const KvShape& shape, Address base, KvPayload payload, std::optional<Address> wide = std::nullopt);

  [[nodiscard]] const KvShape& shape() const { return shape_; }
  [[nodiscard]] bool has_payload() const { return payload_ == KvPayload::numbers; }
  /// Tokens that came in: the position of the next one.
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  [[nodiscard]] const KvCounters& counters() const { return counters_; }

  [[nodiscard]] std::variant<KvPlan, DoesNotFit> plan(std::uint32_t tokens) const;
  /// Lets tokens go as the policy says, and takes cells for the new ones. Precondition: `plan` is the answer
  /// to the last plan().
  void apply(const KvPlan& plan);
  /// Counts a plan that did not fit.
  void refuse(const DoesNotFit& /*reason*/) { ++counters_.failures; }
  /// Puts the writes of K, then those of V into `sink`, one per run of cells; after those of a plan's last
  /// token the moves of tokens that are now old enough for the cache's own format. Precondition: the tokens'
  /// plan is the last that was applied; each of its tokens is appended once per layer, the last one last.
  void append(const KvAppend& append, AccessSink& sink);
  /// Puts the reads of the bounds of a head's first `pages` pages into `sink`. Precondition: the
  /// specification has `topk`.
  void read_bounds(const KvPlace& place, std::uint32_t pages, Stream stream, AccessSink& sink) const;
  /// Forgets all tokens.
  void reset();
  /// The state after `tokens` tokens, come in one at a time. Without payload any number up to depth(); with
  /// one only where nothing has left or moved.
  void truncate(std::uint32_t tokens);

  [[nodiscard]] const KvPolicy& policy() const { return *policy_; }
  [[nodiscard]] const KvPool& pool(KvPoolKind kind) const { return pools_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const KvLane& lane(Layer layer, Head head) const { return lanes_[lane_number(layer, head)]; }
  /// Tells the policy's score of a cell what attention made of it in one step.
  void credit(Layer layer, Head head, KvCell cell, float mass);

 private:
  /// Tokens side by side in cells side by side.
  struct Placement {
    Token first{};
    std::uint32_t tokens = 0;
    KvCell cell;
  };
  /// Out of F16 into the cache's own format.
  struct Move {
    std::vector<std::uint32_t> from;
    std::uint32_t to = 0;  ///< the first of as many
  };
  /// What the last plan did to a lane.
  struct Intake {
    std::vector<Placement> placements;
    std::vector<Move> moves;
  };

  [[nodiscard]] std::size_t lane_number(Layer layer, Head head) const;
  void admit(std::size_t lane, const KvPlan& plan);
  [[nodiscard]] Bytes held() const;
  void evict(KvLane& lane, Token next);
  void move_old(KvLane& lane, Token last, std::vector<Move>& moves);
  [[nodiscard]] KvPoolKind pool_of(Token token) const;
  void emit_moves(const KvAppend& append, Head head, AccessSink& sink);
  void emit_writes(const KvAppend& append, KvSide side, AccessSink& sink);
  void emit_bounds(const KvAppend& append, AccessSink& sink) const;
  [[nodiscard]] Address bounds_address(const KvPlace& place, std::uint32_t page) const;
  void move_numbers(const KvPlace& place, const Move& move);
  void store(const KvAppend& append, KvSide side);
  void store_run(const KvAppend& append, const KvPlace& place, const Placement& run);
  template <class Visit>
  void for_each_placement(const KvAppend& append, const Intake& intake, Visit visit) const;

  KvShape shape_;
  KvPayload payload_;
  std::unique_ptr<const KvPolicy> policy_;
  std::vector<KvPool> pools_;  // by KvPoolKind
  std::vector<KvLane> lanes_;  // one for all, or [layer][KV head]
  std::vector<Intake> intakes_;
  Token first_late_{};  // tokens from here on are not among the first that are kept in F16
  Address bounds_ = 0;  // of the first page's bounds; [layer][KV head][page][smallest, largest][head_dim]
  std::uint32_t group_ = 1;
  std::uint32_t recent_ = 0;
  std::uint32_t depth_ = 0;
  KvPlan plan_;
  KvCounters counters_;
};

}  // namespace kvsim::trace
