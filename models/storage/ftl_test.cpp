// SPDX-License-Identifier: Apache-2.0
// The translation layer against a reference that keeps the content of every physical unit.
#include "models/storage/ftl.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "models/storage/test_part.h"
#include "traces/record/spread.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

/// Keeps what is on the flash, as a host would read it back.
class Mirror {
 public:
  explicit Mirror(const config::StoragePartSpec& part)
      : ftl(part),
        written_(ftl.units(), 0),
        flash_(static_cast<std::size_t>(superblocks(part) * superblock(part.flash).count() /
                                        part.flash.unit.count())) {}

  /// False if the device is full.
  bool write(Unit first, Unit count) {
    while (count > 0) {
      const std::optional<UnitRun> run = ftl.write(first, count);
      if (!run && !collect()) {
        return false;
      }
      for (Unit i = 0; run && i < run->count; ++i) {
        written_[first + i] = ++version_;
        flash_[run->physical + i] = {first + i, version_};
      }
      programmed += run ? run->count : 0;
      first += run ? run->count : 0;
      count -= run ? run->count : 0;
      while (ftl.is_collection_due() && collect()) {
      }
    }
    return true;
  }

  void discard(Unit first, Unit count) {
    ftl.discard(first, count);
    std::fill_n(written_.begin() + first, count, 0);
  }

  bool collect() {
    const bool won = ftl.collect(moves_);
    for (const UnitMove& move : moves_) {
      for (Unit i = 0; i < move.count; ++i) {
        flash_[move.to + i] = flash_[move.from + i];
      }
      programmed += move.count;
      collected += move.count;
    }
    erased += ftl.take_erased();
    return won;
  }

  /// Every unit reads back as it was last written, and no two lie in one place.
  void expect_intact() const {
    std::map<Unit, Unit> owner;
    for (Unit unit = 0; unit < ftl.units(); ++unit) {
      const Unit physical = ftl.map().find(unit);
      if (written_[unit] == 0) {
        ASSERT_EQ(physical, kNowhere) << unit;
        continue;
      }
      ASSERT_LT(physical, flash_.size());
      ASSERT_EQ(flash_[physical].logical, unit);
      ASSERT_EQ(flash_[physical].version, written_[unit]) << unit;
      ASSERT_TRUE(owner.emplace(physical, unit).second);
    }
  }

  Ftl ftl;
  std::int64_t programmed = 0, collected = 0;
  std::uint64_t erased = 0;

 private:
  struct Content {
    Unit logical = 0;
    std::uint64_t version = 0;
  };
  std::vector<std::uint64_t> written_;
  std::vector<Content> flash_;
  std::uint64_t version_ = 0;
  std::vector<UnitMove> moves_;
};

class Random : trace::SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  Unit below(std::uint64_t limit) { return static_cast<Unit>(SplitMix64::below(limit)); }
};

/// Mixed writes and discards, many times the capacity.
void wear_out(const config::StoragePartSpec& part, std::uint64_t seed) {
  Mirror mirror(part);
  Random random(seed);
  const Unit units = mirror.ftl.units();
  for (int step = 0; step < 6000; ++step) {
    const Unit first = random.below(units);
    const Unit longest = random.below(10) == 0 ? 2000 : 16;
    const Unit count = 1 + random.below(std::min(longest, units - first));
    if (random.below(12) == 0) {
      mirror.discard(first, count);
    } else {
      ASSERT_TRUE(mirror.write(first, count)) << "step " << step;
    }
    if (step % 1500 == 0) {
      mirror.expect_intact();
    }
  }
  mirror.expect_intact();
  EXPECT_GT(mirror.erased, 0U);
  EXPECT_EQ(mirror.ftl.erase_counts().total, mirror.erased);
}

TEST(Ftl, WhatIsWrittenReadsBack) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    wear_out(small_part(), seed);
  }
}

TEST(Ftl, WhatIsWrittenReadsBackWithManyDiesAndAnSlcCache) {
  config::StoragePartSpec part = small_part();
  part.flash.dies = part.flash.channels = 2;
  part.flash.planes = 2;
  part.flash.pages_per_block = 12;
  part.flash.bits_per_cell = 3;
  part.flash.slc_cache = 4_MiB;
  part.flash.over_provisioning = 0.2;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    wear_out(part, seed);
  }
}

TEST(Ftl, SequentialWritesAreNotAmplified) {
  Mirror mirror(small_part());
  for (int pass = 0; pass < 5; ++pass) {
    ASSERT_TRUE(mirror.write(0, mirror.ftl.units()));
  }
  EXPECT_EQ(mirror.collected, 0);
  EXPECT_GT(mirror.erased, 0U);
  mirror.expect_intact();
}

/// Greedy collection of uniform random writes: between the closed form's best, 1 / (2 op) of a large share of
/// spare blocks (Desnoyers 2012 has the exact value), and that of no choice, (1 + op) / op.
TEST(Ftl, RandomWritesAreAmplifiedByTheSpareShare) {
  double before = 1e9;
  for (const double spare : {0.1, 0.2, 0.5}) {
    config::StoragePartSpec part = small_part();
    part.flash.over_provisioning = spare;
    part.capacity = 256_MiB;
    Mirror mirror(part);
    Random random(3);
    const Unit units = mirror.ftl.units();
    ASSERT_TRUE(mirror.write(0, units));
    for (Unit i = 0; i < 3 * units; ++i) {
      ASSERT_TRUE(mirror.write(random.below(units), 1));
    }
    const std::int64_t programmed = mirror.programmed;
    for (Unit i = 0; i < 2 * units; ++i) {
      ASSERT_TRUE(mirror.write(random.below(units), 1));
    }
    const double amplification = static_cast<double>(mirror.programmed - programmed) / (2.0 * units);
    EXPECT_GT(amplification, 0.45 * (1 + spare) / (2 * spare)) << spare;
    EXPECT_LT(amplification, (1 + spare) / spare) << spare;
    EXPECT_LT(amplification, before) << "more spare blocks, fewer copies";
    before = amplification;
    mirror.expect_intact();
  }
}

TEST(Ftl, ErasesAreSpread) {
  Mirror mirror(small_part());
  for (int pass = 0; pass < 40; ++pass) {
    ASSERT_TRUE(mirror.write(0, mirror.ftl.units()));
  }
  const EraseCounts counts = mirror.ftl.erase_counts();
  EXPECT_LE(counts.most - counts.least, 2U);
  EXPECT_GT(counts.least, 30U);
}

TEST(Ftl, TheSlcCacheHoldsNoMoreThanItsSize) {
  config::StoragePartSpec part = small_part();
  part.flash.bits_per_cell = 2;
  part.flash.slc_cache = 8_MiB;
  Mirror mirror(part);
  const Unit block = static_cast<Unit>(superblock(part.flash).count() / part.flash.unit.count() / 2);
  const Unit cache = static_cast<Unit>(part.flash.slc_cache.count() / part.flash.unit.count());
  ASSERT_TRUE(mirror.write(0, cache - block));
  EXPECT_EQ(mirror.ftl.slc_blocks(), cache / block - 1);
  EXPECT_TRUE(mirror.ftl.is_slc(mirror.ftl.map().find(0)));
  EXPECT_EQ(mirror.collected, 0) << "nothing is emptied before the last block is being filled";
  ASSERT_TRUE(mirror.write(cache - block, block));
  const std::int64_t before = mirror.collected;
  ASSERT_TRUE(mirror.write(cache, cache));
  EXPECT_LE(mirror.ftl.slc_blocks(), cache / block);
  EXPECT_NEAR(static_cast<double>(mirror.collected - before), cache, 2.0 * block)
      << "each unit is copied once";
  EXPECT_FALSE(mirror.ftl.is_slc(mirror.ftl.map().find(0)));
  mirror.expect_intact();
  while (mirror.ftl.has_idle_work() && mirror.collect()) {
  }
  EXPECT_LE(mirror.ftl.slc_blocks(), 1);
  mirror.expect_intact();
}

TEST(Ftl, MemoryIsBoundedByTheCapacity) {
  Mirror mirror(small_part());
  Random random(9);
  const Unit units = mirror.ftl.units();
  std::size_t most = 0;
  for (int round = 0; round < 8; ++round) {
    for (Unit i = 0; i < units; ++i) {
      ASSERT_TRUE(mirror.write(random.below(units), 1));
    }
    most = std::max(most, mirror.ftl.memory());
  }
  EXPECT_LT(most, units * 48U);
}

}  // namespace
}  // namespace kvsim::model
