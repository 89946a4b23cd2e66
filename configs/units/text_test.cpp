// SPDX-License-Identifier: Apache-2.0
#include "configs/units/text.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim {
namespace {

using namespace kvsim::literals;
using testing::HasSubstr;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

template <class T>
std::string reason(std::string_view text) {
  const Parsed<T> parsed = parse<T>(text);
  return parsed.value ? "accepted as " + to_text(*parsed.value) : parsed.reason;
}

TEST(ParseBytes, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse<Bytes>("7 B").value, 7_B);
  EXPECT_EQ(parse<Bytes>("8 KB").value, Bytes(8'000));
  EXPECT_EQ(parse<Bytes>("8 KiB").value, Bytes(8'192));
  EXPECT_EQ(parse<Bytes>("3MB").value, Bytes(3'000'000));
  EXPECT_EQ(parse<Bytes>("3   MiB").value, 3_MiB);
  EXPECT_EQ(parse<Bytes>("8 GB").value, Bytes(8'000'000'000));
  EXPECT_EQ(parse<Bytes>("8 GiB").value, 8_GiB);
  EXPECT_EQ(parse<Bytes>("2 TB").value, Bytes(2'000'000'000'000));
  EXPECT_EQ(parse<Bytes>("2 TiB").value, Bytes(std::int64_t{2} << 40));
  EXPECT_EQ(parse<Bytes>("3 PB").value, Bytes(3'000'000'000'000'000));
  EXPECT_EQ(parse<Bytes>("3 PiB").value, Bytes(std::int64_t{3} << 50));
  EXPECT_EQ(parse<Bytes>("3 EB").value, Bytes(3'000'000'000'000'000'000));
  EXPECT_EQ(parse<Bytes>("3 EiB").value, Bytes(std::int64_t{3} << 60));
}

TEST(ParseBytes, IsExact) {
  EXPECT_EQ(parse<Bytes>("1.5 GiB").value, Bytes(1'610'612'736));
  EXPECT_EQ(parse<Bytes>("0.125 KiB").value, Bytes(128));
  EXPECT_EQ(parse<Bytes>("1.5e3 B").value, Bytes(1'500));
  EXPECT_EQ(parse<Bytes>("1500e-2 KB").value, Bytes(15'000));
  // Not representable as a double: 2^53 + 1.
  EXPECT_EQ(parse<Bytes>("9007199254740993 B").value, Bytes(9'007'199'254'740'993));
  EXPECT_EQ(parse<Bytes>("9223372036854775807 B").value, Bytes(kMax));
  EXPECT_EQ(parse<Bytes>("9223372.036854775807 TB").value, Bytes(kMax));
  EXPECT_EQ(parse<Bytes>("0 GiB").value, 0_B);
  EXPECT_EQ(parse<Bytes>("0.000 GiB").value, 0_B);
}

TEST(ParseBytes, RefusesWhatIsNotWhole) {
  EXPECT_EQ(reason<Bytes>("0.3 B"), "does not come out as a whole number of B");
  EXPECT_EQ(reason<Bytes>("0.1 GiB"), "does not come out as a whole number of B");
  EXPECT_EQ(reason<Bytes>("1e-9999 B"), "does not come out as a whole number of B");
}

TEST(ParseBytes, NeverWraps) {
  for (const char* text : {"9223372036854775808 B", "8388608 TiB", "9223373 TB", "1e19 B", "1e9999 TiB",
                           "9999999999999999999 TiB"}) {
    EXPECT_EQ(reason<Bytes>(text), "is too large; at most 9223372036854775807 B can be held") << text;
  }
  EXPECT_THAT(reason<Bytes>("20 EB"), HasSubstr("is too large"));
  EXPECT_EQ(parse<Bytes>("8388607 TiB").value, Bytes(std::int64_t{8'388'607} << 40));
}

TEST(ParseBytes, RefusesBareNumbers) {
  EXPECT_EQ(reason<Bytes>("3"), "has no unit; write it as 3 B, 3 MiB, ... (a size in bytes)");
  EXPECT_EQ(reason<Bytes>("1.5e3"), "has no unit; write it as 1.5e3 B, 1.5e3 MiB, ... (a size in bytes)");
  EXPECT_THAT(reason<Bytes>("0"), HasSubstr("has no unit"));
  EXPECT_THAT(reason<Picoseconds>("18"), HasSubstr("write it as 18 ns, 18 us, ... (a time)"));
  EXPECT_EQ(reason<Celsius>("45"), "has no unit; write it as 45 C (a temperature)");
}

TEST(ParseBytes, NamesTheUnitThatWasMeant) {
  EXPECT_THAT(reason<Bytes>("8 gb"), HasSubstr("unknown unit 'gb'; did you mean 'GB'?"));
  EXPECT_THAT(reason<Bytes>("8 Gib"), HasSubstr("did you mean 'GiB'?"));
  EXPECT_THAT(reason<Bytes>("8 GiBs"), HasSubstr("did you mean 'GiB'?"));
  EXPECT_THAT(reason<Bytes>("8 apples"), HasSubstr("in B, KB, KiB, MB, MiB, GB, GiB, TB, TiB"));
  EXPECT_THAT(reason<Bytes>("8 G iB"), HasSubstr("unknown unit 'G iB'"));
}

struct Refusal {
  std::string text;
  std::string words;
};

TEST(ParseNumber, RefusesWhatToolsReadDifferently) {
  const Refusal refusals[] = {
      {"010 B", "leading zero"},
      {"00 B", "leading zero"},
      {"-010 B", "leading zero"},
      {"0x10 B", "hexadecimal"},
      {"0X1F", "hexadecimal"},
      {"1,000 B", "',' within the number"},
      {"1_000 B", "'_' within"},
      {"1'000 B", "''' within"},
      {"nan B", "not a number"},
      {"inf B", "not a number"},
      {"-inf B", "not a number"},
      {"Infinity", "not a number"},
      {"+5 B", "without it"},
      {".5 B", "a digit before it"},
      {"5. B", "no digit after the point"},
      {"", "is empty"},
      {"B", "not a number"},
      {" 5 B", "not a number"},
      {"--5 B", "not a number"},
      {"5 B ", "unknown unit"},
      {"1e99999 B", "absurd exponent"},
      {"1e99999999999999999999 B", "absurd exponent"},
      {"- 5 B", "not a number"},
      {"-", "is empty"},
      {"1.5.2 B", "unknown unit"},
      {"1e B", "unknown unit 'e B'"},
      {"123456789012345678901 B", "too many digits"},
      {"0.12345678901234567891 GiB", "too many digits"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(reason<Bytes>(refusal.text), HasSubstr(refusal.words)) << "'" << refusal.text << "'";
  }
}

TEST(ParseNumber, TakesASignOnlyWhereItMeansSomething) {
  EXPECT_EQ(parse<Celsius>("-5.5 C").value, Celsius(-5.5));
  EXPECT_EQ(parse<std::int64_t>("-3").value, -3);
  EXPECT_EQ(parse<double>("-0.25").value, -0.25);
  EXPECT_EQ(parse<std::int64_t>("-0").value, 0);
  EXPECT_EQ(reason<Bytes>("-3 MiB"), "is negative, which a size in bytes cannot be");
  EXPECT_EQ(reason<Picoseconds>("-1 ns"), "is negative, which a time cannot be");
  EXPECT_EQ(reason<BytesPerSecond>("-1 GB/s"), "is negative, which a rate in bytes per second cannot be");
  EXPECT_EQ(parse<Bytes>("-0 MiB").value, 0_B);
}

TEST(ParseTime, RoundsToTheNearestPicosecond) {
  EXPECT_EQ(parse<Picoseconds>("18 ns").value, 18_ns);
  EXPECT_EQ(parse<Picoseconds>("7.5 ns").value, Picoseconds(7'500));
  EXPECT_EQ(parse<Picoseconds>("0.4735 ns").value, Picoseconds(474));
  EXPECT_EQ(parse<Picoseconds>("0.47349999 ns").value, Picoseconds(473));
  EXPECT_EQ(parse<Picoseconds>("1 h").value, Picoseconds(3'600'000'000'000'000));
  EXPECT_EQ(parse<Picoseconds>("1.5 min").value, Picoseconds(90'000'000'000'000));
  EXPECT_EQ(parse<Picoseconds>("0.5 ps").value, Picoseconds(1));
  EXPECT_EQ(reason<Picoseconds>("0.4 ps"), "is less than half of 1 ps, the smallest step");
  EXPECT_EQ(reason<Picoseconds>("1e-500 s"), "is less than half of 1 ps, the smallest step");
  EXPECT_THAT(reason<Picoseconds>("2563 h"), HasSubstr("too large"));
}

TEST(ParseFrequency, TakesClocksAndNoDataRates) {
  EXPECT_EQ(parse<Hertz>("2112 MHz").value, 2112_MHz);
  EXPECT_THAT(reason<Hertz>("4224 MT/s"), HasSubstr("has the unknown unit 'MT/s'"));
  EXPECT_EQ(parse<Hertz>("1.3333333333333 kHz").value, Hertz(1333));
}

TEST(ParseRate, IsCorrectlyRounded) {
  EXPECT_EQ(parse<BytesPerSecond>("33.8 GB/s").value, BytesPerSecond(33.8e9));
  EXPECT_EQ(parse<BytesPerSecond>("1.5 TB/s").value, BytesPerSecond(1.5e12));
  EXPECT_EQ(parse<BytesPerSecond>("0.5 TiB/s").value, BytesPerSecond(549'755'813'888.0));
  EXPECT_EQ(parse<Hertz>("0.5 THz").value, parse<Hertz>("500 GHz").value);
  EXPECT_EQ(parse<BytesPerSecond>("0.1 GiB/s").value, BytesPerSecond(0.1 * 1073741824.0));
  EXPECT_EQ(parse<Watts>("250 mW").value, Watts(0.25));
  EXPECT_EQ(parse<Joules>("3 uJ").value, Joules(3e-6));
  EXPECT_EQ(parse<Joules>("2.409 nJ").value, Joules(2.409e-9));
  EXPECT_EQ(parse<Joules>("864 pJ").value, Joules(864e-12));
  EXPECT_EQ(parse<Volts>("675 mV").value, Volts(0.675));
  EXPECT_EQ(parse<KelvinPerWatt>("0.81 K/W").value, KelvinPerWatt(0.81));
  EXPECT_EQ(parse<JoulesPerKelvin>("500 mJ/K").value, JoulesPerKelvin(0.5));
  EXPECT_EQ(parse<Farads>("300 pF").value, Farads(300e-12));
  EXPECT_EQ(to_text(Farads(416e-12)), "416 pF");
  EXPECT_EQ(reason<KelvinPerWatt>("-1 K/W"), "is negative, which a thermal resistance cannot be");
  EXPECT_EQ(reason<KelvinPerWatt>("4"), "has no unit; write it as 4 K/W (a thermal resistance)");
  EXPECT_THAT(reason<BytesPerSecond>("1e400 B/s"), HasSubstr("outside the range"));
  EXPECT_THAT(reason<BytesPerSecond>("1e308 GB/s"), HasSubstr("outside the range"));
  EXPECT_THAT(reason<BytesPerSecond>("1e308 GiB/s"), HasSubstr("outside the range"));
  EXPECT_THAT(reason<double>("1e-400"), HasSubstr("outside the range"));
}

TEST(ParsePlain, WholeNumbersNumbersAndTruth) {
  EXPECT_EQ(parse<std::int64_t>("9223372036854775807").value, kMax);
  EXPECT_EQ(parse<std::int64_t>("1e3").value, 1000);
  EXPECT_EQ(reason<std::int64_t>("9223372036854775808"),
            "is too large; at most 9223372036854775807 can be held");
  EXPECT_EQ(reason<std::int64_t>("1.5"), "is not a whole number");
  EXPECT_THAT(reason<std::int64_t>("8 GiB"), HasSubstr("has 'GiB' after the number"));
  EXPECT_THAT(reason<std::int64_t>("010"), HasSubstr("leading zero"));
  EXPECT_THAT(reason<double>("abc"), HasSubstr("is not a number"));
  EXPECT_EQ(parse<bool>("true").value, true);
  EXPECT_EQ(parse<bool>("false").value, false);
  for (const char* text : {"True", "TRUE", "yes", "on", "1", "no", ""}) {
    EXPECT_THAT(reason<bool>(text), HasSubstr("neither 'true' nor 'false'")) << text;
  }
}

TEST(ToText, PicksAReadableUnit) {
  EXPECT_EQ(to_text(8_GiB), "8 GiB");
  EXPECT_EQ(to_text(Bytes(8'000'000'000)), "8 GB");
  EXPECT_EQ(to_text(Bytes(1'610'612'736)), "1.5 GiB");
  EXPECT_EQ(to_text(1024_KiB), "1 MiB");
  EXPECT_EQ(to_text(0_B), "0 B");
  EXPECT_EQ(to_text(4097_B), "4097 B");
  EXPECT_EQ(to_text(2112_MHz), "2112 MHz");
  EXPECT_EQ(to_text(2400_MHz), "2.4 GHz");
  EXPECT_EQ(to_text(18_ns), "18 ns");
  EXPECT_EQ(to_text(Picoseconds(7'500)), "7.5 ns");
  EXPECT_EQ(to_text(Picoseconds(473)), "473 ps");
  EXPECT_EQ(to_text(3904_ns), "3904 ns");
  EXPECT_EQ(to_text(BytesPerSecond(33.792e9)), "33.792 GB/s");
  EXPECT_EQ(to_text(Watts(0.25)), "250 mW");
  EXPECT_EQ(to_text(Celsius(-5)), "-5 C");
  EXPECT_EQ(to_text(0.1), "0.1");
  EXPECT_EQ(to_text(Bytes(-3)), "-3 B");
  EXPECT_EQ(to_text(Bytes(std::numeric_limits<std::int64_t>::min())), "-8 EiB");
}

template <class T>
void expect_round_trip(T value) {
  const std::string text = to_text(value);
  const Parsed<T> back = parse<T>(text);
  ASSERT_TRUE(back.value) << text << " " << back.reason;
  EXPECT_EQ(*back.value, value) << text;
}

TEST(ToText, IntegersRoundTrip) {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    expect_round_trip(Bytes(random.magnitude()));
    expect_round_trip(Picoseconds(random.magnitude()));
    expect_round_trip(Hertz(random.magnitude()));
    expect_round_trip(random.magnitude());
    expect_round_trip(-random.magnitude());
  }
  expect_round_trip(Bytes(kMax));
  expect_round_trip(Picoseconds(kMax));
  expect_round_trip(std::int64_t{-kMax});
}

TEST(ToText, NiceNumbersRoundTrip) {
  Random random(2);
  constexpr std::int64_t kUnits[] = {1, 1'000, 1'024, 1'000'000, 1 << 20, 1'000'000'000, 1 << 30};
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t unit = kUnits[random.below(std::size(kUnits))];
    const std::int64_t value = static_cast<std::int64_t>(random.below(10'000)) * unit;
    expect_round_trip(Bytes(value));
    expect_round_trip(Picoseconds(value));
    expect_round_trip(Hertz(value));
  }
}

TEST(ToText, RealsRoundTrip) {
  Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = std::bit_cast<double>(random.next() >> 1);
    if (!std::isfinite(value) || std::fpclassify(value) == FP_SUBNORMAL) {
      continue;
    }
    expect_round_trip(value);
    expect_round_trip(-value);
    expect_round_trip(BytesPerSecond(value));
    expect_round_trip(Joules(value));
    expect_round_trip(Celsius(-value));
  }
}

/// Whatever is accepted must not depend on how it is written.
TEST(ParseNumber, ExponentAndPointAgree) {
  Random random(4);
  for (int i = 0; i < 5'000; ++i) {
    const auto digits = static_cast<std::int64_t>(random.below(1'000'000));
    const std::string shifted = std::to_string(digits) + "e3 B";
    EXPECT_EQ(parse<Bytes>(shifted).value, parse<Bytes>(std::to_string(digits) + " KB").value);
    EXPECT_EQ(parse<Bytes>(std::to_string(digits) + "000e-3 B").value, Bytes(digits));
  }
}

/// No text may crash the parser or be read differently after printing.
TEST(ParseNumber, SurvivesRandomText) {
  Random random(5);
  constexpr std::string_view kAlphabet = "0123456789.eE+-xKMGTiBs/ ,_nps";
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      text += kAlphabet[random.below(kAlphabet.size())];
    }
    if (const Parsed<Bytes> parsed = parse<Bytes>(text); parsed.value) {
      expect_round_trip(*parsed.value);
    } else {
      EXPECT_FALSE(parsed.reason.empty()) << text;
    }
    static_cast<void>(parse<Picoseconds>(text));
    static_cast<void>(parse<double>(text));
  }
}

}  // namespace
}  // namespace kvsim
