// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;
using testing::ElementsAre;
using testing::HasSubstr;

using Bits = std::vector<AddressBit>;

TEST(ClockedTime, ReadsTimeClocksAndBoth) {
  EXPECT_EQ(parse<ClockedTime>("18 ns").value, (ClockedTime{18_ns, 0}));
  EXPECT_EQ(parse<ClockedTime>("8 tCK").value, (ClockedTime{0_ps, 8}));
  EXPECT_EQ(parse<ClockedTime>("8tCK").value, (ClockedTime{0_ps, 8}));
  EXPECT_EQ(parse<ClockedTime>("10 ns min 4 tCK").value, (ClockedTime{10_ns, 4}));
  EXPECT_EQ(parse<ClockedTime>("0 tCK").value, ClockedTime());
}

TEST(ClockedTime, RefusesTheRest) {
  const auto reason = [](std::string_view text) { return parse<ClockedTime>(text).reason; };
  EXPECT_THAT(reason("8"), HasSubstr("has no unit"));
  EXPECT_THAT(reason("8 nCK"), HasSubstr("timings read as 18 ns, 8 tCK or 10 ns min 4 tCK"));
  EXPECT_THAT(reason("1.5 tCK"), HasSubstr("does not come out as a whole number of tCK"));
  EXPECT_THAT(reason("-1 tCK"), HasSubstr("out of range"));
  EXPECT_THAT(reason("1000001 tCK"), HasSubstr("allowed is 0 to 1000000 tCK"));
  EXPECT_THAT(reason("10 ns min 4"), HasSubstr("write it as 8 tCK"));
  EXPECT_THAT(reason("10 ns min"), HasSubstr("unknown unit"));
  EXPECT_THAT(reason("4 tCK min 10 ns"), HasSubstr("unknown unit"));
  EXPECT_THAT(reason("1.1 ms"), HasSubstr("no timing is above 1 ms"));
  EXPECT_THAT(reason("tCK"), HasSubstr("not a number"));
}

TEST(ClockedTime, RoundTrips) {
  Random random(8);
  for (int i = 0; i < 5'000; ++i) {
    const ClockedTime time{
        Picoseconds(static_cast<std::int64_t>(random.below(3) * random.below(300'000'000))),
        static_cast<std::int64_t>(random.below(2) * random.below(1'000'000))};
    EXPECT_EQ(parse<ClockedTime>(to_text(time)).value, time) << to_text(time);
  }
}

TEST(DataRates, AreInTransfersAndNotInHertz) {
  const auto reason = [](std::string_view text) { return parse<DataRate>(text).reason; };
  EXPECT_EQ(parse<DataRate>("4266 MT/s").value, DataRate(4266_MHz));
  EXPECT_EQ(parse<DataRate>("6.4 GT/s").value, DataRate(6400_MHz));
  EXPECT_EQ(to_text(DataRate(6400_MHz)), "6400 MT/s");
  for (const char* text : {"1.6 GHz", "1600 MHz", "1600000000 Hz", "1600 XHz"}) {
    EXPECT_THAT(reason(text), HasSubstr("a data rate is in MT/s")) << text;
  }
  EXPECT_EQ(reason("1600"), "has no unit; write it as 1600 MT/s, 1600 GT/s, ... (a data rate)");
  EXPECT_THAT(reason("1600 MB/s"), HasSubstr("has the unknown unit 'MB/s'"));
  Random random(12);
  for (int i = 0; i < 5'000; ++i) {
    const DataRate rate(Hertz(static_cast<std::int64_t>(random.below(20'000'000'000))));
    EXPECT_EQ(parse<DataRate>(to_text(rate)).value, rate) << to_text(rate);
  }
}

TEST(ClockedTime, LastsTheLongerOfTheTwo) {
  EXPECT_EQ(duration({18_ns, 0}, 600_MHz), 18_ns);
  EXPECT_EQ(duration({0_ps, 6}, 600_MHz), 10_ns);
  EXPECT_EQ(duration({10_ns, 4}, 600_MHz), 10_ns);
  EXPECT_EQ(duration({5_ns, 4}, 600_MHz), Picoseconds(6'667));
}

Bits parse_bits(std::string_view text) {
  return ListGrammar<Bits>::parse_item(text).value.value_or(Bits());
}

TEST(AddressBits, ReadOneARunAndAnXor) {
  EXPECT_THAT(parse_bits("7"), ElementsAre(AddressBit{1U << 7}));
  EXPECT_THAT(parse_bits("63"), ElementsAre(AddressBit{std::uint64_t{1} << 63}));
  EXPECT_THAT(parse_bits("9-11"),
              ElementsAre(AddressBit{1U << 9}, AddressBit{1U << 10}, AddressBit{1U << 11}));
  EXPECT_THAT(parse_bits("13^11"), ElementsAre(AddressBit{1U << 13 | 1U << 11}));
  EXPECT_THAT(parse_bits("20^16^13"), ElementsAre(AddressBit{1U << 20 | 1U << 16 | 1U << 13}));
}

TEST(AddressBits, RefuseTheRest) {
  for (const char* text : {"", "x", "-1", "64", "07", "6-6", "7-3", "1-", "1^", "1^1", "0-3^5", "1^2-4",
                           "1,2", "1 2", "99999999999999999999", "+1", "0x1"}) {
    EXPECT_THAT(ListGrammar<Bits>::parse_item(text).reason, HasSubstr("is no address bit")) << text;
  }
}

TEST(AddressBits, RoundTrip) {
  EXPECT_THAT(ListGrammar<Bits>::to_items(parse_bits("0-6")), ElementsAre("0-6"));
  EXPECT_THAT(ListGrammar<Bits>::to_items(parse_bits("11^13")), ElementsAre("13^11"));
  Random random(9);
  for (int i = 0; i < 5'000; ++i) {
    Bits bits;
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      const std::uint64_t one = std::uint64_t{1} << random.below(64);
      const std::uint64_t next = bits.empty() || bits.back().mask >> 63 == 1 ? 1 : bits.back().mask << 1;
      const std::uint64_t choices[] = {one, next, one | std::uint64_t{1} << random.below(64)};
      bits.push_back({choices[random.below(3)]});
    }
    Bits back;
    for (const std::string& item : ListGrammar<Bits>::to_items(bits)) {
      for (const AddressBit bit : parse_bits(item)) {
        back.push_back(bit);
      }
    }
    EXPECT_EQ(back, bits);
  }
}

TEST(EnumNames, HaveEveryChoice) {
  EXPECT_EQ(parse<Fidelity>("auto").value, Fidelity::automatic);
  EXPECT_EQ(to_text(DramStandard::lpddr5), "lpddr5");
  EXPECT_EQ(to_text(RefreshMode::none), "none");
  EXPECT_EQ(parse<TensorRole>("vector").value, std::nullopt);
  EXPECT_EQ(parse<WeightBacking>("mmap").reason, "is not one of mapped, anonymous, streamed");
}

}  // namespace
}  // namespace kvsim::config
