// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/block_pool.h"

#include <gtest/gtest.h>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

using Ids = std::vector<TokenId>;
using Blocks = std::vector<BlockId>;

TEST(BlockPool, CountsReferences) {
  BlockPool pool(2, 4);
  const BlockId block = pool.take();
  EXPECT_EQ(block, BlockId(0));
  pool.share(block);
  EXPECT_EQ(pool.references(block), 2U);
  EXPECT_EQ(pool.in_use(), 1U);
  EXPECT_FALSE(pool.release(block));
  EXPECT_EQ(pool.left(), 1U);
  EXPECT_TRUE(pool.release(block));
  EXPECT_EQ(pool.left(), 2U);
}

TEST(BlockPool, MisuseIsABug) {
  BlockPool pool(1, 2);
  EXPECT_THROW(pool.share(BlockId(0)), InternalError);
  EXPECT_THROW(pool.release(BlockId(0)), InternalError);
  EXPECT_THROW(pool.release(BlockId(1)), InternalError);
  const BlockId block = pool.take();
  EXPECT_THROW(static_cast<void>(pool.take()), InternalError);
  EXPECT_THROW(pool.publish(block, std::nullopt, Ids{1}), InternalError);
  pool.release(block);
  EXPECT_THROW(pool.release(block), InternalError);
  EXPECT_THROW(pool.publish(block, std::nullopt, Ids{1, 2}), InternalError);
}

/// Blocks 0, 1, 2 hold 1 2 | 3 4 | 5 6.
BlockPool chain() {
  BlockPool pool(8, 2);
  std::optional<BlockId> before;
  for (TokenId id = 1; id < 7; id += 2) {
    const BlockId block = pool.take();
    pool.publish(block, before, Ids{id, id + 1});
    before = block;
  }
  return pool;
}

TEST(BlockPool, FindsTheLongestPrefixInWholeBlocks) {
  const BlockPool pool = chain();
  EXPECT_EQ(pool.find(Ids{1, 2, 3, 4, 5, 6, 7}), (Blocks{BlockId(0), BlockId(1), BlockId(2)}));
  EXPECT_EQ(pool.find(Ids{1, 2, 3, 4, 5}), (Blocks{BlockId(0), BlockId(1)}));
  EXPECT_EQ(pool.find(Ids{1, 2, 3, 5, 5, 6}), (Blocks{BlockId(0)}));
  EXPECT_EQ(pool.find(Ids{1}), Blocks{});
}

TEST(BlockPool, ABlockStandsForAllThatComesBeforeIt) {
  const BlockPool pool = chain();
  EXPECT_EQ(pool.find(Ids{3, 4, 5, 6}), Blocks{});
  EXPECT_EQ(pool.find(Ids{1, 2, 5, 6}), (Blocks{BlockId(0)}));
}

TEST(BlockPool, WhatIsOverwrittenOrFreedIsNotFound) {
  BlockPool pool = chain();
  pool.withdraw(BlockId(2));
  EXPECT_EQ(pool.find(Ids{1, 2, 3, 4, 5, 6}).size(), 2U);
  pool.release(BlockId(1));
  EXPECT_EQ(pool.find(Ids{1, 2, 3, 4, 5, 6}).size(), 1U);
}

TEST(BlockPool, ANewPrefixInAnOldBlockDoesNotBringItsFollowersBack) {
  BlockPool pool = chain();
  pool.release(BlockId(0));
  const BlockId block = pool.take();
  ASSERT_EQ(block, BlockId(0));
  pool.publish(block, std::nullopt, Ids{8, 9});
  EXPECT_EQ(pool.find(Ids{8, 9, 3, 4}), (Blocks{block}));
}

TEST(BlockPool, OfEqualBlocksTheFirstIsFound) {
  BlockPool pool = chain();
  const BlockId twin = pool.take();
  pool.publish(twin, std::nullopt, Ids{1, 2});
  EXPECT_EQ(pool.find(Ids{1, 2}), (Blocks{BlockId(0)}));
  pool.release(twin);
  EXPECT_EQ(pool.find(Ids{1, 2}), (Blocks{BlockId(0)}));
}

}  // namespace
}  // namespace kvsim::trace
