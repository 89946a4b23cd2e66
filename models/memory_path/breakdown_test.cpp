// SPDX-License-Identifier: Apache-2.0
// Is a part of the breakdown what its cause costs? And do the two granularities agree? Single runs are
// chaotic by one or two per cent, so means over several placements of the streams are compared.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/memory_path/memory_path.h"
#include "models/testing/channel_bench.h"
#include "models/testing/fake_memory.h"
#include "models/testing/stream_load.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace literals;
using config::DeviceSpec;
using config::RefreshMode;
using testing::LoadResult;
using testing::run_loads;
using testing::run_of;
using testing::StreamLoad;
using testing::wide_window;
using trace::Access;

constexpr int kPlacements = 8;

/// A core's window: prefetcher that trains at every page.
StreamWindow core_window() {
  return {.in_flight = 28, .ahead = 56, .stores = 28, .training = 3, .page = 4_KiB};
}

trace::Address placed(int stream, int placement) {
  return (trace::Address(stream) << 26) + trace::Address(placement * (stream + 1)) * (37 * 4096 + 192);
}

struct Mean {
  double elapsed = 0;
  double share = 0;  ///< of one owner in the elapsed time
};

/// Mean over the placements that `loads_of(placement)` makes.
template <class LoadsOf>
Mean mean(const DeviceSpec& device, Owner owner, LoadsOf loads_of) {
  Mean mean;
  for (int placement = 0; placement < kPlacements; ++placement) {
    const LoadResult result = run_loads(device, Granularity::burst, loads_of(placement));
    EXPECT_EQ(result.account.total(), result.elapsed);
    mean.elapsed += result.elapsed.as_double() / kPlacements;
    mean.share += ratio(result.account.part(owner), result.elapsed) / kPlacements;
  }
  return mean;
}

/// Expects that without its cause the mean time is shorter by the owner's share, within a tolerance.
void expect_causal(const Mean& with, const Mean& without, double tolerance = 0.2) {
  const double shortening = 1.0 - without.elapsed / with.elapsed;
  EXPECT_GT(shortening, 0.02) << "too little to compare";
  EXPECT_NEAR(with.share / shortening, 1.0, tolerance)
      << "share " << with.share << ", shortening " << shortening;
}

// --- refresh
// ----------------------------------------------------------------------------------------------------

struct RefreshCase {
  std::string name;
  DeviceSpec device;
  StreamWindow window;
  int streams = 1;
};
void PrintTo(const RefreshCase& c, std::ostream* out) {
  *out << c.name;
}

class RefreshShare : public ::testing::TestWithParam<RefreshCase> {};

TEST_P(RefreshShare, IsWhatRefreshCosts) {
  const auto loads = [&](int placement) {
    std::vector<StreamLoad> all;
    for (int i = 0; i < GetParam().streams; ++i) {
      all.push_back({GetParam().window, {run_of(placed(i, placement), 512_KiB)}});
    }
    return all;
  };
  DeviceSpec device = GetParam().device;
  device.controller.refresh = RefreshMode::all_bank;
  const Mean with = mean(device, Owner::refresh, loads);
  device.controller.refresh = RefreshMode::none;
  expect_causal(with, mean(device, Owner::refresh, loads));
}

// Where the bus is the bound. Engines that wait for latency most of the time fill some of a refresh with
// requests that then come in a burst, and refresh moves rows and banks against each other: there the share is
// no measure.
std::vector<RefreshCase> refresh_cases() {
  return {
      {"two_ranks_one_engine", testing::device(), wide_window(64), 1},
      {"two_ranks_two_engines", testing::device(), wide_window(64), 2},
      {"two_ranks_four_engines", testing::device(), wide_window(64), 4},
      {"one_rank_one_engine", testing::one_rank_device(), wide_window(64), 1},
      {"one_rank_two_engines", testing::one_rank_device(), wide_window(64), 2},
      {"one_rank_four_engines", testing::one_rank_device(), wide_window(64), 4},
      {"one_rank_eight_cores", testing::one_rank_device(), core_window(), 8},
      {"one_channel_four_cores", testing::plain_device(), core_window(), 4},
  };
}

INSTANTIATE_TEST_SUITE_P(BusBound, RefreshShare, ::testing::ValuesIn(refresh_cases()),
                         [](const auto& test) { return test.param.name; });

// --- turnaround
// -------------------------------------------------------------------------------------------------

class TurnaroundShare : public ::testing::TestWithParam<int> {};

// Each engine changes its bytes in place: it reads and writes the same rows in turn, so that only the bus has
// to turn.
TEST_P(TurnaroundShare, IsWhatTurningTheBusCosts) {
  const auto loads = [&](int placement) {
    std::vector<StreamLoad> all;
    for (int i = 0; i < GetParam(); ++i) {
      StreamLoad load{wide_window(64), {}};
      for (trace::Address at = 0; at < 128 << 10; at += 512) {
        load.segments.push_back(run_of(placed(i, placement) + at, 512_B));
        load.segments.push_back(run_of(placed(i, placement) + at, 512_B, Access::write));
        load.segments.back().posted = true;
      }
      all.push_back(load);
    }
    return all;
  };
  DeviceSpec device = testing::without_refresh(testing::plain_device());
  const Mean with = mean(device, Owner::turnaround, loads);
  device.controller.turnaround = false;
  expect_causal(with, mean(device, Owner::turnaround, loads),
                GetParam() == 2 ? 0.3 : 0.2);  // turns also move rows: two engines feel that most, 29 %
}

INSTANTIATE_TEST_SUITE_P(BusBound, TurnaroundShare, ::testing::Values(1, 2, 4, 8));

// --- train against exact
// ----------------------------------------------------------------------------------------

struct TrainCase {
  std::string name;
  DeviceSpec device;
  int streams = 1;
  Picoseconds per_line;
};
void PrintTo(const TrainCase& c, std::ostream* out) {
  *out << c.name;
}

class Train : public ::testing::TestWithParam<TrainCase> {};

TEST_P(Train, MovesTheSameBytesInTheSameTime) {
  double sum = 0;
  for (int placement = 0; placement < kPlacements; ++placement) {
    std::vector<StreamLoad> loads;
    for (int i = 0; i < GetParam().streams; ++i) {
      Segment segment = run_of(placed(i, placement), 512_KiB);
      segment.per_line = GetParam().per_line;
      loads.push_back({core_window(), {segment}});
    }
    const LoadResult exact = run_loads(GetParam().device, Granularity::burst, loads);
    const LoadResult train = run_loads(GetParam().device, Granularity::train, loads);
    EXPECT_EQ(train.drained.read, exact.drained.read);
    EXPECT_EQ(train.account.total(), train.elapsed);
    EXPECT_NEAR(ratio(train.elapsed, exact.elapsed), 1.0, 0.1) << placement;
    sum += ratio(train.elapsed, exact.elapsed) / kPlacements;
  }
  EXPECT_NEAR(sum, 1.0, 0.04);
}

std::vector<TrainCase> train_cases() {
  std::vector<TrainCase> cases;
  const std::vector<std::pair<std::string, DeviceSpec>> devices = {{"rk3588", testing::device()},
                                                                   {"one_rank", testing::one_rank_device()},
                                                                   {"one_channel", testing::plain_device()},
                                                                   {"lpddr5", testing::lpddr5_device()}};
  for (const auto& [name, device] : devices) {
    for (const int streams : {1, 4}) {
      for (const std::int64_t work : {0, 3'500, 8'000}) {
        cases.push_back({name + "_" + std::to_string(streams) + "_work" + std::to_string(work), device,
                         streams, Picoseconds(work)});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Train, ::testing::ValuesIn(train_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kvsim::model
