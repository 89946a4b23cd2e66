// SPDX-License-Identifier: Apache-2.0
// Do bursts and trains account for the same energy of the same load?
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
using testing::run_loads;
using testing::run_of;
using testing::StreamLoad;
using trace::Access;

struct Case {
  std::string name;
  DeviceSpec device;
  int streams = 1;
  bool writes = false;
  Bytes piece = 512_KiB;  ///< read in a row before the stream jumps
  Picoseconds idle = {};  ///< after the load
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<StreamLoad> loads_of(const Case& c) {
  std::vector<StreamLoad> all;
  for (int i = 0; i < c.streams; ++i) {
    StreamLoad load{testing::wide_window(24), {}};
    const std::int64_t pieces = Bytes(1_MiB).count() / c.piece.count();
    for (std::int64_t p = 0; p < pieces; ++p) {
      const auto at =
          static_cast<trace::Address>(i) * (64 << 20) + 192 +
          static_cast<trace::Address>(p * 7919 % pieces) * 4 * static_cast<trace::Address>(c.piece.count());
      load.segments.push_back(run_of(at, c.piece));
      if (c.writes && p % 4 == 0) {
        load.segments.push_back(run_of(at + (256 << 20), c.piece, Access::write));
      }
    }
    all.push_back(load);
  }
  return all;
}

EnergyAccount energy(const Case& c, Granularity granularity) {
  const testing::LoadResult result = run_loads(c.device, granularity, loads_of(c), nullptr, c.idle);
  Picoseconds all;
  for (const Picoseconds time : result.activity.background) {
    all += time;
  }
  const auto ranks = c.device.controller.ranks * c.device.controller.channels;
  const double elapsed = ((result.elapsed + c.idle) * ranks).as_double();
  EXPECT_NEAR(all.as_double(), elapsed, 1e-4 * elapsed);  // to a clock
  return energy_of(c.device.dram.energy.value(), result.activity);
}

class EnergyAgreement : public ::testing::TestWithParam<Case> {};

TEST_P(EnergyAgreement, IsWithinTwoPercent) {
  const EnergyAccount exact = energy(GetParam(), Granularity::burst);
  const EnergyAccount train = energy(GetParam(), Granularity::train);
  const double total = exact.total().count();
  EXPECT_NEAR(train.total().count(), total, 0.02 * total);
  for (std::size_t i = 0; i < kEnergyParts; ++i) {
    EXPECT_NEAR(train.parts[i].count(), exact.parts[i].count(), 0.02 * total)
        << to_string(static_cast<EnergyPart>(i));
  }
}

std::vector<Case> cases() {
  DeviceSpec all_bank = testing::device();
  all_bank.controller.refresh = RefreshMode::all_bank;
  DeviceSpec idle = testing::plain_device();
  idle.controller.refresh = RefreshMode::all_bank;
  const DeviceSpec plain = testing::device();
  return {
      {"in_order", plain, 1},
      {"all_bank_refresh", all_bank, 1},
      {"no_refresh", testing::without_refresh(plain), 1},
      {"four_engines", plain, 4},
      {"one_rank_two_engines", testing::one_rank_device(), 2},
      {"short_pieces", plain, 1, false, 256_B},
      {"short_pieces_of_two", all_bank, 2, false, 512_B},
      {"with_stores", plain, 1, true, 16_KiB},
      {"then_idle", plain, 1, false, 512_KiB, 1_ms},
      {"one_channel_then_idle", idle, 1, false, 512_KiB, 3_ms},
      {"per_bank_then_idle", testing::plain_device(), 1, false, 4_KiB, 3_ms},
  };
}

INSTANTIATE_TEST_SUITE_P(Loads, EnergyAgreement, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kvsim::model
