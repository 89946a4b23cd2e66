// SPDX-License-Identifier: Apache-2.0
#include "models/masters/transfer_source.h"

#include <vector>

#include <gtest/gtest.h>

namespace kvsim::model {
namespace {

using namespace kvsim::literals;

config::MasterSpec screen() {
  config::MasterSpec spec;
  spec.scan = config::ScanSpec{.width = 3840,
                               .height = 2160,
                               .bytes_per_pixel = 4,
                               .rate = Hertz(60),
                               .active = 0.96,
                               .buffer_lines = 4};
  return spec;
}

config::MasterSpec radio() {
  config::MasterSpec spec;
  spec.radio = config::RadioSpec{.rate = BytesPerSecond(108.5e6),
                                 .air = BytesPerSecond(300e6),
                                 .aggregate = Bytes(384'000),
                                 .packet = Bytes(1500),
                                 .bus = BytesPerSecond(800e6),
                                 .interrupt = 5_us,
                                 .per_packet = 1_us,
                                 .ring = 4_MiB};
  return spec;
}

std::vector<Transfer> all_before(const config::MasterSpec& spec, Picoseconds end) {
  const auto source = make_transfers(spec, 1);
  std::vector<Transfer> transfers;
  for (Transfer t = source->next(); t.at < end; t = source->next()) {
    transfers.push_back(t);
  }
  return transfers;
}

Bytes sum(const std::vector<Transfer>& transfers) {
  Bytes bytes;
  for (const Transfer& t : transfers) {
    bytes += t.bytes;
  }
  return bytes;
}

TEST(TransferSource, AScreenReadsEachFrameOnceASecondSixtyTimes) {
  const auto transfers = all_before(screen(), 1000_ms);
  EXPECT_EQ(transfers.size(), 60U * 2160U);
  EXPECT_EQ(sum(transfers), Bytes(3840LL * 2160 * 4 * 60));  // 1.99 GB
  EXPECT_EQ(config::mean_rate(screen()), BytesPerSecond(3840.0 * 2160 * 4 * 60));
}

TEST(TransferSource, AScreensLineMayBeReadAsSoonAsItsFifoHasRoomAndIsDueAtItsTurn) {
  const auto transfers = all_before(screen(), 40_ms);
  const Picoseconds line = config::line_time(*screen().scan);
  EXPECT_NEAR(line.as_double(), 0.96e12 / 60 / 2160, 1);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    EXPECT_EQ(*transfers[i].deadline - transfers[i].at, line * 4);
  }
  EXPECT_EQ(transfers[1].at - transfers[0].at, line);
  // Between frames nothing is read: the lines of a frame take 96 % of its time.
  EXPECT_GT(transfers[2160].at - transfers[2159].at, line * 80);
}

TEST(TransferSource, ASensorsLinesComeAsTheyAreReadOut) {
  config::MasterSpec spec = screen();
  spec.scan->access = config::MasterAccess::write;
  const auto transfers = all_before(spec, 20_ms);
  EXPECT_EQ(transfers.front().at, config::line_time(*spec.scan) * 4);
  EXPECT_EQ(transfers.front().access, trace::Access::write);
}

TEST(TransferSource, ARadioKeepsItsRateAndNeverBeatsTheAir) {
  const auto transfers = all_before(radio(), 20'000_ms);
  EXPECT_NEAR(sum(transfers).as_double() / 20, 108.5e6, 0.02 * 108.5e6);
  const Picoseconds air = Bytes(384'000) / BytesPerSecond(300e6);
  for (std::size_t i = 1; i < transfers.size(); ++i) {
    EXPECT_GE(transfers[i].at - transfers[i - 1].at, air);
    EXPECT_GE(transfers[i].at, transfers[i].born);
  }
}

TEST(TransferSource, FramesForASleepingRadioWaitForABeacon) {
  config::MasterSpec spec = radio();
  spec.radio->rate = BytesPerSecond(2.5e6);
  spec.radio->sleep = Picoseconds(102'400'000'000);
  const auto transfers = all_before(spec, 10'000_ms);
  const Picoseconds air = Bytes(384'000) / BytesPerSecond(300e6);
  double waited = 0;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Picoseconds past_beacon(transfers[i].at.count() % spec.radio->sleep->count());
    const bool first = past_beacon == Picoseconds();
    EXPECT_TRUE(first || (i > 0 && transfers[i].at - transfers[i - 1].at == air)) << i;
    waited += milliseconds(transfers[i].at - transfers[i].born);
  }
  EXPECT_NEAR(waited / static_cast<double>(transfers.size()), 51.2, 10);  // half a beacon's interval
}

TEST(TransferSource, BurstsPauseAndGoOn) {
  config::MasterSpec spec;
  spec.burst = config::BurstSpec{.bytes = Bytes(1000), .period = 1_ms, .on = 10_ms, .off = 30_ms};
  const auto transfers = all_before(spec, 80_ms);
  EXPECT_EQ(transfers.size(), 20U);
  EXPECT_EQ(transfers[10].at, 40_ms);
  EXPECT_EQ(config::mean_rate(spec), BytesPerSecond(250e3));
}

config::MasterSpec captured(std::optional<Picoseconds> repeat) {
  config::MasterSpec spec;
  spec.series = config::SeriesSpec{.file = {},
                                   .items = {{1_ms, Bytes(1500)}, {2_ms, Bytes(64)}, {2_ms, Bytes(900)}},
                                   .access = config::MasterAccess::write,
                                   .deadline = 5_ms,
                                   .repeat = repeat};
  return spec;
}

TEST(TransferSource, ASeriesIsPlayedAsItWasCapturedAndEnds) {
  const auto transfers = all_before(captured(std::nullopt), 60'000_ms);
  ASSERT_EQ(transfers.size(), 3U);
  EXPECT_EQ(transfers[1].at, 2_ms);
  EXPECT_EQ(transfers[1].bytes, Bytes(64));
  EXPECT_EQ(*transfers[2].deadline, 7_ms);
  EXPECT_EQ(transfers[2].access, trace::Access::write);
}

TEST(TransferSource, ASeriesBeginsAgain) {
  const config::MasterSpec spec = captured(10_ms);
  const auto transfers = all_before(spec, 30_ms);
  ASSERT_EQ(transfers.size(), 9U);
  EXPECT_EQ(transfers[3].at, 11_ms);
  EXPECT_EQ(transfers[8].at, 22_ms);
  EXPECT_EQ(config::mean_rate(spec), BytesPerSecond(246'400));
}

TEST(TransferSource, ALoadReadsOnceASlice) {
  config::MasterSpec spec;
  spec.load = config::CpuLoadSpec{.core = 0, .share = 0.5, .slice = 4_ms, .traffic = BytesPerSecond(1e9)};
  EXPECT_EQ(sum(all_before(spec, 1001_ms)), Bytes(1'000'000'000));
}

TEST(TransferSource, EqualSeedsGiveEqualBursts) {
  const auto a = make_transfers(radio(), 7);
  const auto b = make_transfers(radio(), 7);
  const auto c = make_transfers(radio(), 8);
  int different = 0;
  for (int i = 0; i < 100; ++i) {
    const Picoseconds at = a->next().at;
    EXPECT_EQ(at, b->next().at);
    different += at != c->next().at ? 1 : 0;
  }
  EXPECT_GT(different, 90);
}

}  // namespace
}  // namespace kvsim::model
