// SPDX-License-Identifier: Apache-2.0
// KV caches of several sessions in one memory that grow as they are filled: what is allocated, copied, shared
// and given back. With a payload it holds real numbers; with and without, it makes the same accesses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "configs/error/error.h"
#include "configs/units/index.h"
#include "traces/kv_cache/address_allocator.h"
#include "traces/kv_cache/block_pool.h"
#include "traces/kv_cache/kv_pool.h"
#include "traces/kv_cache/kv_shape.h"
#include "traces/record/source.h"

namespace kvsim::trace {

using SessionId = Index<struct SessionTag>;

/// How a session gets room for more tokens.
enum class KvGrowth : std::uint8_t {
  preallocate,  ///< the longest context at once
  doubled,      ///< full: a new buffer twice as large, copy, free the old one
  concatenate,  ///< every time: a new buffer of just the size, copy, free the old one
  paged,        ///< one block after another; nothing is copied but a shared block that is written
};

struct KvSessionsConfig {
  KvShape shape{};  ///< of one session: `capacity` is its hard limit, `block` the tokens of a block
  KvGrowth growth = KvGrowth::paged;
  Address base = 0;  ///< of the memory; a multiple of 64
  Bytes memory{};
  bool share_prefixes = false;  ///< paged: sessions that begin with the same tokens share full blocks
  KvPayload payload = KvPayload::none;
};

/// Tokens that shall come into a session, which must not be none.
struct KvDemand {
  SessionId session{};
  std::uint32_t tokens = 0;
  std::span<const TokenId> ids{};  ///< the tokens, if prefixes are shared; otherwise empty
};

struct KvIntake {
  SessionId session{};
  Token first{};
  std::uint32_t tokens = 0;  ///< with those that are shared
  std::uint32_t shared = 0;  ///< the first ones are there already: they are neither computed nor appended
  std::vector<TokenId> ids;

  bool operator==(const KvIntake&) const = default;
};

struct KvBatchPlan {
  std::vector<KvIntake> intakes;
  Bytes occupied{};  ///< what is allocated after it
  Bytes peak{};      ///< the most that is while it is applied
  std::uint64_t version = 0;

  bool operator==(const KvBatchPlan&) const = default;
};

/// The answer in place of a plan. Running out is a result, not an error.
struct KvBatchRefusal {
  enum class Why : std::uint8_t {
    length,     ///< the session would be longer than its limit
    memory,     ///< there is no hole, or not as many blocks
    watermark,  ///< it would fit, but more would be allocated than is wanted (kv_pressure.h)
  };
  Why why = Why::memory;
  SessionId session{};  ///< the first that does not fit
  Bytes asked{};        ///< length: of the session's tokens; memory: of the allocations; watermark: of all
  Bytes left{};         ///< that there is room for
  Bytes largest_hole{};

  bool operator==(const KvBatchRefusal&) const = default;
};

/// Tokens of a session, counted from the first that it still has.
struct TokenRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct KvUsage {
  Bytes occupied{};  ///< allocated
  Bytes stored{};    ///< numbers and scales of tokens, shared ones once
  Bytes shared{};    ///< what sharing saves
  Bytes padding{};   ///< occupied but not stored: room for tokens to come, alignment
};

struct KvSessionCounters {
  Bytes peak{};                 ///< the most that was allocated, old and new buffers together
  Bytes copied{};               ///< read and written again because buffers grew, shrank or were shared
  std::uint64_t evictions = 0;  ///< tokens that left before their session's end
  std::uint64_t failures = 0;   ///< batches that were refused
};

/// plan() changes nothing; only apply() allocates and copies, and only append() writes new tokens.
class KvSessions {
 public:
  /// Throws UserError if shape, growth and memory do not go together.
  explicit KvSessions(const KvSessionsConfig& config);

  [[nodiscard]] const KvSessionsConfig& config() const { return config_; }
  [[nodiscard]] SessionId open();
  /// A session with the same tokens, all of them shared. Preconditions: paged; the parent's tokens are
  /// appended.
  [[nodiscard]] SessionId fork(SessionId parent);

  /// Tokens that a session has.
  [[nodiscard]] std::uint32_t depth(SessionId session) const { return at(session).depth; }
  [[nodiscard]] std::uint32_t sessions() const { return static_cast<std::uint32_t>(sessions_.size()); }
  /// When its first token came in, counted in batches; none if it has no tokens.
  [[nodiscard]] std::optional<std::uint64_t> age(SessionId session) const;

  /// Precondition: no session is named twice.
  [[nodiscard]] std::variant<KvBatchPlan, KvBatchRefusal> plan(std::span<const KvDemand> batch) const;
  /// Puts Allocs, copies and Frees into `sink`. Precondition: nothing has changed since `plan` was made.
  void apply(const KvBatchPlan& plan, AccessSink& sink);
  /// Counts a batch that did not fit.
  void refuse(const KvBatchRefusal& /*reason*/) { ++counters_.failures; }
  /// Puts the writes of K, then those of V into `sink`, one per run of cells. Precondition: the tokens came
  /// in with the session's last plan and are not shared.
  void append(SessionId to, const KvAppend& append, AccessSink& sink);
  /// Puts the reads of one head's vectors into `sink`, one per run of cells.
  void read(SessionId session, const KvPlace& place, TokenRange tokens, AccessSink& sink) const;
  /// Writes [token][head_dim] into `numbers`. Precondition: with payload, the tokens were appended.
  void load(SessionId session, const KvPlace& place, TokenRange tokens, std::span<float> numbers) const;

  /// Lets all other tokens go and gives back what they took; what stays moves down in place. Preconditions:
  /// at least one token stays; if paged, `kept.first` is the first of a block.
  void keep(SessionId session, TokenRange kept, AccessSink& sink);
  /// The session's end: forgets its tokens and gives everything back. It may start anew.
  void reset(SessionId session, AccessSink& sink);
  /// The same before its time.
  void evict(SessionId session, AccessSink& sink);

  [[nodiscard]] KvUsage usage() const;
  [[nodiscard]] const KvSessionCounters& counters() const { return counters_; }
  /// Throws InternalError unless every allocation has the holders that its count says.
  void audit() const;

 private:
  struct Session {
    std::vector<Address> buffers;  // one, or the blocks in order
    std::uint32_t room = 0;        // tokens of a buffer
    std::uint32_t depth = 0;
    std::uint32_t written_from = 0;  // tokens of the last plan that are appended
    std::uint64_t started = 0;
    bool whole = true;         // begins with its first token: a prefix that others may share
    std::vector<TokenId> ids;  // if prefixes are shared
  };

  [[nodiscard]] bool paged() const { return config_.growth == KvGrowth::paged; }
  [[nodiscard]] const Session& at(SessionId session) const;
  [[nodiscard]] Session& at(SessionId session);
  [[nodiscard]] std::optional<KvBatchRefusal> over_limit(std::span<const KvDemand> batch) const;
  [[nodiscard]] std::variant<KvBatchPlan, KvBatchRefusal> plan_buffers(std::span<const KvDemand> batch) const;
  [[nodiscard]] std::variant<KvBatchPlan, KvBatchRefusal> plan_blocks(std::span<const KvDemand> batch) const;
  [[nodiscard]] std::vector<BlockId> shared_blocks(const Session& session,
                                                   std::span<const TokenId> ids) const;
  [[nodiscard]] std::uint32_t grown(const Session& session, std::uint32_t tokens) const;
  [[nodiscard]] Bytes size_of(std::uint32_t tokens) const;
  [[nodiscard]] BlockId block(Address address) const;
  [[nodiscard]] Bytes occupied() const;

  void grow_buffer(Session& session, std::uint32_t tokens, AccessSink& sink);
  void grow_blocks(Session& session, std::uint32_t tokens, AccessSink& sink);
  void own_last_block(Session& session, AccessSink& sink);
  void publish_full_blocks(const Session& session, std::uint32_t from);
  [[nodiscard]] Address take_block(AccessSink& sink);
  void release(Address buffer, AccessSink& sink);
  void place_cells(Address buffer, std::uint32_t tokens);
  void copy(const KvPool& from, CellRun cells, KvPool& to, AccessSink& sink);
  void keep_in_buffer(Session& session, TokenRange kept, AccessSink& sink);
  void keep_in_blocks(Session& session, TokenRange kept, AccessSink& sink);
  /// `visit(buffer, cells)` for tokens side by side.
  template <class Visit>
  static void for_each_run(const Session& session, TokenRange tokens, Visit visit);

  KvSessionsConfig config_;
  KvShape cells_shape_;  // of a buffer
  Bytes token_bytes_{};
  AddressAllocator memory_;
  Bytes block_bytes_{};              // if paged
  std::optional<BlockPool> blocks_;  // if paged
  std::map<Address, KvPool> cells_;  // of every buffer
  std::vector<Session> sessions_;
  std::uint64_t version_ = 0;
  KvSessionCounters counters_;
};

template <class Visit>
void KvSessions::for_each_run(const Session& session, TokenRange tokens, Visit visit) {
  const std::uint64_t end = std::uint64_t{tokens.first} + tokens.count;
  check(end <= session.depth, "a session's tokens are asked for");
  for (std::uint64_t token = tokens.first; token < end;) {
    const std::uint64_t next = std::min(end, (token / session.room + 1) * session.room);
    visit(session.buffers[token / session.room],
          CellRun{.first = static_cast<std::uint32_t>(token % session.room),
                  .count = static_cast<std::uint32_t>(next - token)});
    token = next;
  }
}

}  // namespace kvsim::trace
