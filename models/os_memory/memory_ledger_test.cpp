// SPDX-License-Identifier: Apache-2.0
#include "models/os_memory/memory_ledger.h"

#include <limits>

#include <gtest/gtest.h>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

using namespace literals;
using trace::Alloc;
using trace::Backing;
using trace::Kind;

config::OsSpec os() {
  return {.firmware = 200_MiB, .reserve = 300_MiB, .page = 4_KiB};
}

Alloc alloc(trace::Address address, Bytes bytes, Backing backing = Backing::anonymous) {
  return {.address = address,
          .bytes = bytes,
          .kind = Kind::kv,
          .backing = backing,
          .name = trace::alloc_name("KV cache")};
}

TEST(MemoryLedger, TheSystemTakesItsShare) {
  EXPECT_EQ(MemoryLedger(os(), 8_GiB).available(), 8_GiB - 500_MiB);
  EXPECT_EQ(MemoryLedger(os(), 100_MiB).available(), 0_B);
}

TEST(MemoryLedger, ASwapAreaTakesAnonymousMemoryThatDoesNotFit) {
  config::OsSpec swap = os();
  swap.swap = 100_MiB;
  MemoryLedger ledger(swap, 1_GiB);  // leaves 524 MiB
  EXPECT_FALSE(ledger.allocate(alloc(0, 524_MiB)));
  EXPECT_FALSE(ledger.swaps());
  EXPECT_FALSE(ledger.allocate(alloc(1 << 30, 100_MiB)));
  EXPECT_TRUE(ledger.swaps());
  const auto broken = ledger.allocate(alloc(2U << 30U, 4_KiB));
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->limit, "memory");
  EXPECT_EQ(broken->available, 624_MiB);
}

TEST(MemoryLedger, BooksWholePages) {
  MemoryLedger ledger(os(), 1_GiB);
  EXPECT_FALSE(ledger.allocate(alloc(0, 1_B)));
  EXPECT_FALSE(ledger.allocate(alloc(4096, 4_KiB)));
  EXPECT_FALSE(ledger.allocate(alloc(8192, 4_KiB + 1_B)));
  EXPECT_EQ(ledger.anonymous(), 16_KiB);
  ASSERT_EQ(ledger.items().size(), 3U);
  EXPECT_EQ(ledger.items()[2].bytes, 8_KiB);
  EXPECT_EQ(ledger.items()[2].name, "KV cache");
  EXPECT_EQ(ledger.items()[2].kind, Kind::kv);
}

TEST(MemoryLedger, FillsToTheLastPageAndNotBeyond) {
  MemoryLedger ledger(os(), 501_MiB);
  EXPECT_FALSE(ledger.allocate(alloc(0, 1_MiB - 4_KiB)));
  EXPECT_FALSE(ledger.allocate(alloc(1 << 20, 4_KiB)));
  const auto broken = ledger.allocate(alloc(1 << 21, 1_B));
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->limit, "memory");
  EXPECT_EQ(broken->item, "KV cache");
  EXPECT_EQ(broken->needed, 1_MiB + 4_KiB);
  EXPECT_EQ(broken->available, 1_MiB);
}

TEST(MemoryLedger, WhatDoesNotFitDoesNotTakePlace) {
  MemoryLedger ledger(os(), 501_MiB);
  ASSERT_TRUE(ledger.allocate(alloc(0, 2_MiB)));
  EXPECT_EQ(ledger.total(), 0_B);
  EXPECT_EQ(ledger.peak(), 0_B);
  EXPECT_TRUE(ledger.items().empty());
  EXPECT_FALSE(ledger.allocate(alloc(0, 1_MiB)));
}

TEST(MemoryLedger, DeviceMemoryHasToStayLikeAnonymous) {
  MemoryLedger ledger(os(), 501_MiB);
  EXPECT_FALSE(ledger.allocate(alloc(0, 1_MiB, Backing::device_contiguous)));
  EXPECT_TRUE(ledger.allocate(alloc(1 << 20, 4_KiB)));
}

TEST(MemoryLedger, FileMappedMemoryBeyondTheRestMeansPaging) {
  MemoryLedger ledger(os(), 502_MiB);
  EXPECT_FALSE(ledger.allocate(alloc(0, 2_MiB, Backing::file_mapped)));
  EXPECT_FALSE(ledger.pages());
  EXPECT_FALSE(ledger.allocate(alloc(1 << 22, 4_KiB)));
  EXPECT_TRUE(ledger.pages());
  EXPECT_EQ(ledger.file_mapped(), 2_MiB);
  EXPECT_EQ(ledger.anonymous(), 4_KiB);
  EXPECT_FALSE(ledger.allocate(alloc(1 << 23, 2_MiB - 4_KiB))) << "page cache gives way to anonymous memory";
}

TEST(MemoryLedger, FreeGivesBackAndThePeakStays) {
  MemoryLedger ledger(os(), 1_GiB);
  ledger.allocate(alloc(0, 3_MiB));
  ledger.allocate(alloc(1 << 30, 1_MiB, Backing::file_mapped));
  ledger.free(0);
  EXPECT_EQ(ledger.anonymous(), 0_B);
  EXPECT_EQ(ledger.file_mapped(), 1_MiB);
  EXPECT_EQ(ledger.peak(), 4_MiB);
  ASSERT_EQ(ledger.items().size(), 1U);
  EXPECT_EQ(ledger.items()[0].backing, Backing::file_mapped);
  ledger.free(1 << 30);
  EXPECT_EQ(ledger.total(), 0_B);
}

TEST(MemoryLedger, FreeingWhatWasNotAllocatedIsABug) {
  MemoryLedger ledger(os(), 1_GiB);
  ledger.allocate(alloc(0, 3_MiB));
  EXPECT_THROW(ledger.free(4096), InternalError);
}

TEST(MemoryLedger, AbsurdSizesAreOutOfMemory) {
  MemoryLedger ledger(os(), 1_GiB);
  ledger.allocate(alloc(0, 4_KiB));
  const auto broken = ledger.allocate(alloc(1 << 20, Bytes(std::numeric_limits<std::int64_t>::max())));
  ASSERT_TRUE(broken);
  EXPECT_GT(broken->needed, broken->available);
  EXPECT_EQ(ledger.total(), 4_KiB);
}

TEST(MemoryLedger, AbsurdMappingsBreakTheAddressSpace) {
  MemoryLedger ledger(os(), 1_GiB);
  EXPECT_FALSE(ledger.allocate(alloc(0, 1_GiB, Backing::file_mapped)));
  const auto broken =
      ledger.allocate(alloc(1, Bytes(std::numeric_limits<std::int64_t>::max()), Backing::file_mapped));
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->limit, "address space");
  EXPECT_EQ(ledger.file_mapped(), 1_GiB);
}

}  // namespace
}  // namespace kvsim::model
