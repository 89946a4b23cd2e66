// SPDX-License-Identifier: Apache-2.0
// Functional KV cache: preallocated, token by token, head by head or in pages. With a payload it holds real
// numbers; with and without, it makes the same accesses.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "configs/units/index.h"
#include "traces/kv_cache/kv_shape.h"
#include "traces/number/half.h"
#include "traces/record/source.h"

namespace kvsim::trace {

enum class KvSide : std::uint8_t { k, v };

enum class KvPayload : std::uint8_t {
  none,  ///< book-keeping only
  half,  ///< holds what is appended; needs a shape in F16
};

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

/// What one thread writes into one layer: some of a plan's tokens.
struct KvAppend {
  Layer layer{};
  Token first{};
  std::uint32_t tokens = 0;
  Stream stream{};
  std::span<const float> k{};  ///< [token][KV head][head_dim]; empty without payload
  std::span<const float> v{};
};

/// What is read at once: some tokens of one head.
struct KvTile {
  Layer layer{};
  KvSide side = KvSide::k;
  Head head{};  ///< KV head
  Token first{};
  std::uint32_t tokens = 0;
  Stream stream{};
};

/// plan() changes nothing; only apply() takes cells, and only append() writes them.
class KvCache {
 public:
  KvCache(KvShape shape, Address base, KvPayload payload);

  [[nodiscard]] const KvShape& shape() const { return shape_; }
  [[nodiscard]] bool has_payload() const { return !values_.empty(); }
  /// Tokens in the cache.
  [[nodiscard]] std::uint32_t depth() const { return depth_; }

  [[nodiscard]] std::variant<KvPlan, DoesNotFit> plan(std::uint32_t tokens) const;
  /// Precondition: `plan` is the answer to the last plan().
  void apply(const KvPlan& plan);
  /// Forgets all but the first `tokens` tokens. Precondition: there are that many.
  void truncate(std::uint32_t tokens);
  /// Puts the writes of K, then those of V into `sink`: one each, or one per page. Precondition: the tokens'
  /// plan is applied.
  void append(const KvAppend& append, AccessSink& sink);

  /// Puts the reads of `tile` into `sink`: one, or one per page. Precondition: its tokens are in the cache.
  void access(const KvTile& tile, AccessSink& sink) const;
  /// The numbers of one head and token. Precondition: has_payload().
  [[nodiscard]] std::span<const Half> values(Layer layer, KvSide side, Token token, Head head) const;

 private:
  /// Tokens side by side: no page ends between them.
  struct Run {
    Token first{};
    std::uint32_t tokens = 0;
  };
  template <class Visit>
  void for_each_run(Token first, std::uint32_t tokens, Visit visit) const;
  /// Where the vector of one head and token is, counted in vectors.
  [[nodiscard]] std::size_t slot(Layer layer, KvSide side, Token token, Head head) const;
  /// Bytes from a vector to the next token's, and to the next head's, within a run.
  [[nodiscard]] Bytes token_stride() const;
  [[nodiscard]] Bytes head_stride() const;
  [[nodiscard]] Address address(Layer layer, KvSide side, Token token, Head head) const;
  [[nodiscard]] bool is(config::KvLayout layout) const { return shape_.layout == layout; }
  void store(const KvAppend& append, KvSide side, std::span<const float> numbers);

  KvShape shape_;
  Address base_;
  Bytes head_bytes_;
  std::size_t heads_;
  std::size_t cells_;
  std::vector<std::uint32_t>
      blocks_;  // by the page's number in the sequence, its place in the pool; if paged
  std::uint32_t depth_ = 0;
  std::vector<Half> values_;  // [slot][head_dim], without padding
};

}  // namespace kvsim::trace
