// SPDX-License-Identifier: Apache-2.0
// Blocks of tokens with reference counts, and which block holds which tokens: what sharing of common prefixes
// is made of. Book-keeping only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "configs/units/index.h"

namespace kvsim::trace {

using BlockId = Index<struct BlockTag>;
using TokenId = std::uint32_t;  ///< of the vocabulary

/// A block's tokens are known by their ids and by the block before, so that a block stands for its whole
/// prefix (as in vLLM, which chains hashes; here the ids themselves are compared).
class BlockPool {
 public:
  /// Precondition: both > 0.
  BlockPool(std::uint32_t blocks, std::uint32_t block_tokens);

  [[nodiscard]] std::uint32_t block_tokens() const { return block_tokens_; }
  [[nodiscard]] std::uint32_t left() const { return static_cast<std::uint32_t>(free_.size()); }
  [[nodiscard]] std::uint32_t in_use() const { return static_cast<std::uint32_t>(blocks_.size()) - left(); }
  [[nodiscard]] std::uint32_t references(BlockId block) const { return at(block).references; }

  /// The lowest free block, with one reference. Precondition: left() > 0.
  [[nodiscard]] BlockId take();
  /// One more reference. Precondition: the block is in use.
  void share(BlockId block);
  /// One reference less; true if it was the last, which frees the block. Releasing a free block is a bug.
  bool release(BlockId block);

  /// Makes a full block known by its tokens, unless another with the same ones is. Precondition: `ids` are
  /// block_tokens() many, and both blocks are in use.
  void publish(BlockId block, std::optional<BlockId> before, std::span<const TokenId> ids);
  /// The block is going to be overwritten. No-op if it is not known.
  void withdraw(BlockId block);
  /// Blocks that hold the longest known prefix of `ids`, whole blocks only.
  [[nodiscard]] std::vector<BlockId> find(std::span<const TokenId> ids) const;

 private:
  using Key = std::pair<std::optional<BlockId>, std::vector<TokenId>>;
  struct Block {
    std::uint32_t references = 0;
    std::optional<Key> key;  // if known
  };
  [[nodiscard]] const Block& at(BlockId block) const;
  void forget_followers(BlockId block);

  std::uint32_t block_tokens_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_;  // a heap, the lowest on top
  std::map<Key, BlockId> known_;
};

}  // namespace kvsim::trace
