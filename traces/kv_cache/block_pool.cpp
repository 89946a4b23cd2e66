// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/block_pool.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "configs/error/error.h"

namespace kvsim::trace {

BlockPool::BlockPool(std::uint32_t blocks, std::uint32_t block_tokens)
    : block_tokens_(block_tokens), blocks_(blocks), free_(blocks) {
  check(blocks > 0 && block_tokens > 0, "a pool has blocks, and a block has tokens");
  std::iota(free_.begin(), free_.end(), 0U);  // sorted: a heap
}

const BlockPool::Block& BlockPool::at(BlockId block) const {
  check(block.pos() < blocks_.size(), "a block is in the pool");
  return blocks_[block.pos()];
}

BlockId BlockPool::take() {
  check(!free_.empty(), "a block is taken only when one is free");
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const BlockId block(free_.back());
  free_.pop_back();
  blocks_[block.pos()].references = 1;
  return block;
}

void BlockPool::share(BlockId block) {
  check(references(block) > 0, "only a block in use is shared");
  ++blocks_[block.pos()].references;
}

bool BlockPool::release(BlockId block) {
  check(references(block) > 0, "a block is released once per reference");
  if (--blocks_[block.pos()].references > 0) {
    return false;
  }
  withdraw(block);
  free_.push_back(block.value());
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
  return true;
}

void BlockPool::publish(BlockId block, std::optional<BlockId> before, std::span<const TokenId> ids) {
  check(ids.size() == block_tokens_, "a block is known by all of its tokens");
  check(references(block) > 0 && (!before || references(*before) > 0), "only blocks in use are known");
  if (at(block).key) {
    return;
  }
  Key key(before, {ids.begin(), ids.end()});
  if (known_.emplace(key, block).second) {
    blocks_[block.pos()].key = std::move(key);
  }
}

void BlockPool::withdraw(BlockId block) {
  forget_followers(block);
  if (const auto& key = at(block).key) {
    known_.erase(*key);
    blocks_[block.pos()].key.reset();
  }
}

/// A block that comes after one whose content changes stands for a prefix that is no more.
void BlockPool::forget_followers(BlockId block) {
  auto follower = known_.lower_bound(Key(block, {}));
  while (follower != known_.end() && follower->first.first == block) {
    blocks_[follower->second.pos()].key.reset();
    follower = known_.erase(follower);
  }
}

std::vector<BlockId> BlockPool::find(std::span<const TokenId> ids) const {
  std::vector<BlockId> found;
  std::optional<BlockId> before;
  for (; ids.size() >= block_tokens_; ids = ids.subspan(block_tokens_)) {
    const auto tokens = ids.first(block_tokens_);
    const auto block = known_.find(Key(before, {tokens.begin(), tokens.end()}));
    if (block == known_.end()) {
      break;
    }
    before = block->second;
    found.push_back(block->second);
  }
  return found;
}

}  // namespace kvsim::trace
