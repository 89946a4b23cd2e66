// SPDX-License-Identifier: Apache-2.0
// Captured series of transfers from CSV files: what is read, and what is told about lines that are wrong.
#include "configs/spec/master_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/scenario_test_support.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;
using testing::HasSubstr;

class MasterSeriesTest : public ScenarioTest {
 protected:
  static std::string scenario(const std::string& more = "") {
    return "device:\n  extends: rk3588\n  masters:\n    - master: {series: {file: ./a.csv" + more +
           "}}\nmodel: llama3_8b\n";
  }
  std::string refused(const std::string& csv) const {
    write("a.csv", csv);
    return error_of(scenario());
  }
};

TEST_F(MasterSeriesTest, ItemsAreSecondsAndBytes) {
  EXPECT_EQ(parse_series_item("0.000001500001,1500").value,
            (SeriesItem{Picoseconds(1'500'001), Bytes(1500)}));
  EXPECT_EQ(parse_series_item(" 2 , 64 ").value, (SeriesItem{2000_ms, 64_B}));
  EXPECT_EQ(parse_series_item("1e-3,64").value, (SeriesItem{1_ms, 64_B}));
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const SeriesItem item{Picoseconds(static_cast<std::int64_t>(random.below(86'400'000'000'000'000))),
                          Bytes(static_cast<std::int64_t>(1 + random.below(1 << 30)))};
    EXPECT_EQ(parse_series_item(to_series_text(item)).value, item) << to_series_text(item);
  }
}

TEST_F(MasterSeriesTest, AFileIsReadAndARunThatIsRestoredNeedsItNoMore) {
  write("a.csv", "\xEF\xBB\xBFtime,bytes\n# captured\n0,1500\r\n\n0.5,64\n0.5,900");
  const RunSpec spec = load(scenario(", repeat: 1 s"));
  const SeriesSpec& series = *spec.device.masters.at(0).master.series;
  EXPECT_EQ(series.items, (std::vector<SeriesItem>{{0_ps, 1500_B}, {500_ms, 64_B}, {500_ms, 900_B}}));
  EXPECT_EQ(series.repeat, 1000_ms);
  std::filesystem::remove(folder_ / "a.csv");
  EXPECT_EQ(run_spec_from_json(to_json(spec).dump()), spec);
}

TEST_F(MasterSeriesTest, TheFirstBadLineIsToldWithItsPlace) {
  const std::string key = "device.masters.0.master.series.file: ";
  EXPECT_THAT(refused("0,1\n0.5 64\n1;2\n"),
              HasSubstr("a.csv:2:1: " + key + "'0.5 64' does not have two fields"));
  EXPECT_THAT(refused("0,1,2\n"), HasSubstr("a.csv:1:1: " + key + "'0,1,2' does not have two fields"));
  EXPECT_THAT(refused("0,1\n\n-1,5\n"), HasSubstr("a.csv:3:1: " + key + "'-1,5' has a time"));
  EXPECT_THAT(refused("1 ms,5\n"), HasSubstr("has a time that is no number of seconds"));
  EXPECT_THAT(refused("nan,5\n"), HasSubstr("has a time that is no number of seconds"));
  EXPECT_THAT(refused("0,abc\n"), HasSubstr("has bytes that are no number"));
  EXPECT_THAT(refused("0,0\n"), HasSubstr("has bytes out of range; allowed is 1 to 16 GiB"));
  EXPECT_THAT(refused("0,1.5\n"), HasSubstr("has bytes out of range"));
  EXPECT_THAT(refused("0,99999999999999999999\n"), HasSubstr("a.csv:1:1: "));
  EXPECT_THAT(refused("86401,5\n"), HasSubstr("has a time beyond a day"));
  EXPECT_THAT(refused("\x1b[31m\x07,5\n"), HasSubstr("'\\x1b[31m\\x07,5' has a time"));
  EXPECT_THAT(refused("1,5\n0.9,5\n"),
              HasSubstr("a.csv:2:1: " + key + "0.9 s comes before the item above it, 1 s"));
  EXPECT_THAT(refused("# nothing\n"), HasSubstr("main.yaml:4:31: " + key + "has no transfers"));
  std::filesystem::remove(folder_ / "a.csv");
  EXPECT_THAT(error_of(scenario()), HasSubstr("main.yaml:4:31: " + key));
}

TEST_F(MasterSeriesTest, ItemsInPlaceAreCheckedToo) {
  const auto items = [this](const std::string& text) {
    return error_of("device: {extends: rk3588, masters: [{master: {series: {items: " + text +
                    "}}}]}\nmodel: llama3_8b\n");
  };
  EXPECT_THAT(items("['1,5', '0.5,5']"), HasSubstr("series.items.1: 0.5 s comes before the item above it"));
  EXPECT_THAT(items("['1,5'], repeat: 0.5 s"),
              HasSubstr("series.repeat: 500 ms is before its last transfer, at 1 s"));
  EXPECT_THAT(items("[]"), HasSubstr("series.items: has no transfers"));
}

// --- deadlines and budgets
// --------------------------------------------------------------------------------------------------------

TEST_F(MasterSeriesTest, DeadlinesThatCannotBeKeptAreToldBeforeTheRun) {
  const auto masters = [this](const std::string& list) {
    return error_of("device:\n  extends: rk3588\n  masters: [" + list + "]\nmodel: llama3_8b\n");
  };
  const std::string burst = "{master: {burst: {bytes: 1 MiB, period: 10 ms, deadline: 1 ms}}";
  EXPECT_EQ(masters(burst + "}"), "no error");
  EXPECT_THAT(masters(burst + ", qos: limiter, bandwidth: 500 MB/s}"),
              HasSubstr("device.masters.0.bandwidth: 4 Gbit/s: the largest transfer of custom takes"));
  EXPECT_THAT(masters("{master: {burst: {bytes: 1 GiB, period: 1 s, deadline: 1 ms}}}"),
              HasSubstr("device.masters.0.master: the largest transfer of custom takes"));
  EXPECT_THAT(masters("{master: {series: {items: ['0,1048576'], deadline: 10 us}}}"),
              HasSubstr("main.yaml:3:14: device.masters.0.master: the largest transfer of custom takes"));
  EXPECT_THAT(masters("{master: display_4k60, qos: limiter, bandwidth: 1 GB/s}"),
              HasSubstr("main.yaml:3:61: device.masters.0.bandwidth: 1 GB/s is less than the"));
  EXPECT_THAT(
      masters("{master: display_4k60, qos: regulator, priority: 1, bandwidth: 20 GB/s}, {master: "
              "camera_4k30_nv12, qos: regulator, priority: 1, bandwidth: 20 GB/s}"),
      HasSubstr("main.yaml:3:12: device.masters: regulators are promised 40 GB/s together; the peak is "));
  EXPECT_THAT(
      masters(
          "{master: {scan: {width: 65536, height: 65536, bytes_per_pixel: 8, rate: 60 Hz, access: read}}}"),
      HasSubstr("deadlines cannot be kept"));
}

}  // namespace
}  // namespace kvsim::config
