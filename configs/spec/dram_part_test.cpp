// SPDX-License-Identifier: Apache-2.0
// The parts of the catalogue against closed forms and against the figures they come from; defaults of
// timings.
#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/catalogue.h"
#include "configs/spec/dram_temperature.h"
#include "configs/spec/explain.h"
#include "configs/spec/scenario_test_support.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;
using testing::HasSubstr;

/// What the name of a part says, and what its standard says of its geometry.
struct KnownPart {
  std::string id;
  double peak_gbs;  ///< data rate x width / 8
  double clock_mhz;
  Bytes row;
  Bytes burst;
  Bytes rank;
  std::int64_t burst_clocks;
};

const KnownPart kParts[] = {
    {"ddr4_3200", 25.6, 1600, 8_KiB, 64_B, 8_GiB, 4},
    {"ddr5_4800", 19.2, 2400, 4_KiB, 64_B, 8_GiB, 8},
    {"ddr5_6400", 25.6, 3200, 4_KiB, 64_B, 8_GiB, 8},
    {"lpddr3_1600", 6.4, 800, 4_KiB, 32_B, 1_GiB, 4},
    {"lpddr3_1866", 7.464, 933, 4_KiB, 32_B, 1_GiB, 4},
    {"lpddr4-3200", 12.8, 1600, 4_KiB, 64_B, 2_GiB, 8},
    {"lpddr4_3200_16gb", 6.4, 1600, 2_KiB, 32_B, 2_GiB, 8},
    {"lpddr4_3200_8gb", 6.4, 1600, 2_KiB, 32_B, 1_GiB, 8},
    {"lpddr4_3733_16gb", 7.466, 1866.5, 2_KiB, 32_B, 2_GiB, 8},
    {"lpddr4_3733_8gb", 7.466, 1866.5, 2_KiB, 32_B, 1_GiB, 8},
    {"lpddr4_4266_16gb", 8.532, 2133, 2_KiB, 32_B, 2_GiB, 8},
    {"lpddr4_4266_8gb", 8.532, 2133, 2_KiB, 32_B, 1_GiB, 8},
    {"lpddr4x_4224_16gb", 8.448, 2112, 2_KiB, 32_B, 2_GiB, 8},
    {"lpddr4x_4224_8gb", 8.448, 2112, 2_KiB, 32_B, 1_GiB, 8},
    {"lpddr4x_4266_16gb", 8.532, 2133, 2_KiB, 32_B, 2_GiB, 8},
    {"lpddr4x_4266_16gb_x32", 17.064, 2133, 4_KiB, 64_B, 4_GiB, 8},
    {"lpddr4x_4266_8gb", 8.532, 2133, 2_KiB, 32_B, 1_GiB, 8},
    {"lpddr5_4800_16gb", 9.6, 600, 2_KiB, 32_B, 2_GiB, 2},
    {"lpddr5_5500_16gb", 11, 687.5, 2_KiB, 32_B, 2_GiB, 2},
    {"lpddr5_6400_16gb", 12.8, 800, 2_KiB, 32_B, 2_GiB, 2},
    {"lpddr5_6400_16gb_8bank", 12.8, 800, 4_KiB, 64_B, 2_GiB, 4},
    {"lpddr5_6400_8gb", 12.8, 800, 2_KiB, 32_B, 1_GiB, 2},
    {"lpddr5x_8533_16gb", 17.066, 1066.625, 2_KiB, 32_B, 2_GiB, 2},
    {"psram_aps6408l_esp32s3", 0.16, 80, 1_KiB, 64_B, 8_MiB, 32},
};

TEST(DramParts, AreTheseInThisOrder) {
  std::vector<std::string> ids;
  for (const KnownPart& known : kParts) {
    ids.push_back(known.id);
  }
  EXPECT_EQ(catalogue_ids("dram"), ids);
  const auto first =
      std::ranges::find_if(ids, [](const std::string& id) { return id.starts_with("lpddr4"); });
  EXPECT_EQ(*first, "lpddr4-3200") << "tools take the first id that holds the string";
}

TEST(DramParts, HavePeakGeometryAndCapacityOfTheirGrade) {
  for (const KnownPart& known : kParts) {
    SCOPED_TRACE(known.id);
    const DramPartSpec part = load_dram_part(known.id);
    EXPECT_NEAR(command_clock(part).as_double(), known.clock_mhz * 1e6, 1);
    EXPECT_EQ(row_bytes(part), known.row);
    EXPECT_EQ(burst_bytes(part), known.burst);
    EXPECT_EQ(rank_bytes(part), known.rank);
    EXPECT_EQ(part.burst_length / part.transfers_per_clock, known.burst_clocks);
    const double peak = part.data_rate.as_double() * static_cast<double>(part.width_bits) / 8;
    EXPECT_NEAR(peak, known.peak_gbs * 1e9, 1);
    const double burst_seconds = static_cast<double>(known.burst_clocks) / command_clock(part).as_double();
    EXPECT_NEAR(burst_bytes(part).as_double() / burst_seconds, peak, peak * 1e-6);
  }
}

TEST(DramParts, Lpddr4xHasTheCoreTimingsOfLpddr4) {
  for (const std::string size : {"8gb", "16gb"}) {
    const DramPartSpec x = load_dram_part("lpddr4x_4266_" + size);
    EXPECT_EQ(x.timing, load_dram_part("lpddr4_4266_" + size).timing);
    EXPECT_EQ(x.standard, DramStandard::lpddr4x);
  }
}

TEST(DramParts, FollowTheRulesTheyAreDerivedBy) {
  // gem5: tRTP of LPDDR5 is the larger of 2 tCK and 7.5 ns, less 2 tCK.
  for (const std::string& id : catalogue_ids("dram")) {
    const DramPartSpec part = load_dram_part(id);
    if (part.standard == DramStandard::lpddr5 || part.standard == DramStandard::lpddr5x) {
      const double two_clocks = 2 * kPicosecondsPerSecond / command_clock(part).as_double();
      EXPECT_NEAR(part.timing.tRTP.time.as_double(), std::max(two_clocks, 7500.0) - two_clocks, 5) << id;
    }
  }
  const DramPartSpec x = load_dram_part("lpddr5x_8533_16gb");
  EXPECT_EQ(x.timing.read_latency.clocks, std::ceil(17 * 4 / 3.0) + 1);
  EXPECT_EQ(x.timing.write_latency.clocks, 9 * 4 / 3);
  EXPECT_EQ(x.timing.tCCD_L, (ClockedTime{5_ns, 4}));
}

/// Currents in mA on VDD1, VDD2 and VDDQ of DRAMSys' JEDEC_8Gb_LPDDR4-3200_16bit.json; nanoseconds give pJ.
TEST(DramParts, EnergyOfLpddr4FollowsFromItsCurrents) {
  using Rails = std::array<double, 3>;
  const Rails volts{1.8, 1.1, 1.1};
  const Rails idd0{3.5, 45, 0.75}, idd2n{2, 27, 0.75}, idd3n{2.25, 30, 0.75}, idd2p{1.2, 3, 0.75};
  const Rails idd3p{1.2, 9, 0.75}, idd4r{2.25, 275, 150}, idd4w{2.25, 210, 55}, idd5{10, 90, 0.75};
  const Rails idd5pb{2.5, 30, 0.75}, idd6{0.3, 0.5, 0.1};
  const auto sum = [&](const Rails& current) {  // of two dies
    return 2 * (volts[0] * current[0] + volts[1] * current[1] + volts[2] * current[2]);
  };
  const double clock = 0.625;
  const DramEnergy energy = load_dram_part("lpddr4-3200").energy.value();
  const auto expect_pj = [](Joules found, double wanted) {
    EXPECT_NEAR(found.count() * 1e12, wanted, wanted * 1e-3);
  };
  const auto expect_mw = [](Watts found, double wanted) {
    EXPECT_NEAR(found.count() * 1e3, wanted, wanted * 1e-3);
  };
  expect_pj(energy.activate, clock * (sum(idd0) * 97 - sum(idd3n) * 68 - sum(idd2n) * 29));
  expect_pj(energy.read_burst, clock * 8 * (sum(idd4r) - sum(idd3n)));
  expect_pj(energy.write_burst, clock * 8 * (sum(idd4w) - sum(idd3n)));
  expect_pj(energy.refresh_all, clock * 448 * (sum(idd5) - sum(idd2n)));
  expect_pj(energy.refresh_bank, clock * 780 * (sum(idd5pb) - sum(idd2n)));
  expect_mw(energy.active_standby, sum(idd3n));
  expect_mw(energy.precharge_standby, sum(idd2n));
  expect_mw(energy.active_power_down, sum(idd3p));
  expect_mw(energy.precharge_power_down, sum(idd2p));
  expect_mw(energy.self_refresh, sum(idd6));
}

/// The split of a read and of standby, in the same currents as above; LPDDR4X lowers VDDQ alone.
TEST(DramParts, RailsAreThoseThatSourcesSplit) {
  const DramRails rails = load_dram_part("lpddr4-3200").rails.value();
  EXPECT_NEAR(rails.VDDQ.value().read_burst.count() * 1e12, 2 * 1.1 * (150 - 0.75) * 8 * 0.625, 1);
  EXPECT_NEAR(rails.VDD2.value().read_burst.count() * 1e12, 2 * 1.1 * (275 - 30) * 8 * 0.625, 1);
  EXPECT_NEAR(rails.VDD1.value().active_standby.count() * 1e3, 2 * 1.8 * 2.25, 0.01);
  const DramRails x = load_dram_part("lpddr4x_4266_16gb").rails.value();
  const double lower = 0.6 * 0.6 / 1.1 / 1.1;
  EXPECT_NEAR(x.VDDQ.value().read_burst.count(), rails.VDDQ.value().read_burst.count() / 2 * lower, 1e-12);
  EXPECT_EQ(x.VDD2.value().read_burst.count(),
            load_dram_part("lpddr4_3200_8gb").rails.value().VDD2.value().read_burst.count());
  EXPECT_EQ(load_dram_part("lpddr3_1866").rails.value().VDDQ, std::nullopt);
  for (const char* id : {"lpddr5_6400_16gb", "lpddr5x_8533_16gb", "ddr4_3200", "ddr5_4800"}) {
    EXPECT_EQ(load_dram_part(id).rails, std::nullopt) << id;
  }
}

TEST(DramParts, EveryOneHasAPlausibleEnergy) {
  for (const std::string& id : catalogue_ids("dram")) {
    SCOPED_TRACE(id);
    const DramPartSpec part = load_dram_part(id);
    if (part.psram) {  // no source tells currents by command
      EXPECT_FALSE(part.energy);
      continue;
    }
    const DramEnergy energy = part.energy.value();
    const double bits = burst_bytes(part).as_double() * 8;
    EXPECT_GT(energy.read_burst.count() * 1e12 / bits, 3.5);
    EXPECT_LT(energy.read_burst.count() * 1e12 / bits, 12);
    EXPECT_GT(energy.active_standby, energy.precharge_standby);
    EXPECT_GT(energy.active_standby, energy.active_power_down);
    EXPECT_GT(energy.precharge_standby, energy.precharge_power_down);
    EXPECT_EQ(energy.refresh_bank == Joules(), part.timing.tRFCpb == ClockedTime());
    EXPECT_LE(energy.refresh_bank, energy.refresh_all);
  }
}

/// Only what a table cannot do without.
const std::string kBarePart =
    "data_rate: 3200 MT/s\n"
    "timing: {read_latency: 28 tCK, write_latency: 14 tCK, tRCD: 18 ns, tRPpb: 18 ns, tRPab: 21 ns, tRAS: 42 "
    "ns, "
    "tRRD: 10 ns min 4 tCK, tFAW: 40 ns, tCCD: 8 tCK, tWTR: 10 ns, tRTP: 7.5 ns, tWR: 18 ns, tRTRS: 4 tCK, "
    "tREFI: 3904 ns, tRFCab: 448 tCK";

class BarePartTest : public ScenarioTest {
 protected:
  DramPartSpec load_bare(const std::string& standard, const std::string& more) const {
    const bool lpddr = standard.starts_with("lpddr");
    const std::string text =
        "standard: " + standard + "\ntransfers_per_clock: " + (standard.starts_with("lpddr5") ? "8" : "2") +
        "\nburst_length: " + (standard == "lpddr3" || standard == "ddr4" ? "8" : "16") +
        "\nbank_groups: " + (lpddr ? "1" : "4") + "\nwidth_bits: 16\nbanks: 8\nrows: 65536\ncolumns: 1024\n" +
        kBarePart + more + "}\n";
    return load_dram_part(write("bare.yaml", text).string());
  }
};

TEST_F(BarePartTest, TimingsThatWereLeftOutAreResolved) {
  const DramPartSpec part = load_bare("lpddr4", "");
  const DramTiming& timing = part.timing;
  EXPECT_EQ(timing.tRRD_L, timing.tRRD);
  EXPECT_EQ(timing.tCCD_L, (ClockedTime{0_ps, 8}));
  EXPECT_EQ(timing.tCCD_L_WR, timing.tCCD_L);
  EXPECT_EQ(timing.tCCDMW, (ClockedTime{0_ps, 32}));
  EXPECT_EQ(timing.tWTR_L, timing.tWTR);
  EXPECT_EQ(timing.tPPD, ClockedTime());
  EXPECT_EQ(timing.tRFCpb, ClockedTime());
  EXPECT_EQ(timing.tpbR2pbR, ClockedTime());
  EXPECT_EQ(timing.tpbR2act, timing.tRRD);
  EXPECT_EQ(timing.tCKE, (ClockedTime{7500_ps, 4}));
  EXPECT_EQ(timing.tXP, (ClockedTime{7500_ps, 5}));
  EXPECT_EQ(timing.tSR, (ClockedTime{15_ns, 3}));
  EXPECT_EQ(timing.tXSR, (ClockedTime{287'500_ps, 0}));  // 448 x 625 ps + 7.5 ns
  EXPECT_EQ(part.energy, std::nullopt);
}

TEST_F(BarePartTest, OneTimingFollowsAnother) {
  const DramTiming timing =
      load_bare("lpddr4", ", tCCD_L: 12 tCK, tRFCpb: 140 ns, tXSR: 300 ns, tCCDMW: 40 tCK").timing;
  EXPECT_EQ(timing.tCCD_L_WR, (ClockedTime{0_ps, 12}));
  EXPECT_EQ(timing.tpbR2pbR, (ClockedTime{140_ns, 0}));
  EXPECT_EQ(timing.tXSR, (ClockedTime{300_ns, 0}));
  EXPECT_EQ(timing.tCCDMW, (ClockedTime{0_ps, 40}));
}

TEST_F(BarePartTest, OnlyLpddr4DelaysMaskedWrites) {
  EXPECT_EQ(load_bare("lpddr4x", "").timing.tCCDMW.clocks, 32);
  for (const char* standard : {"lpddr3", "lpddr5", "lpddr5x", "ddr4", "ddr5"}) {
    EXPECT_EQ(load_bare(standard, "").timing.tCCDMW.clocks, 8) << standard;
  }
}

TEST_F(BarePartTest, IsWrittenInFull) {
  const DramPartSpec part = load_bare("lpddr4x", "");
  const nlohmann::ordered_json json = schema<DramPartSpec>().write(part);
  EXPECT_EQ(json["energy"], "none");
  EXPECT_EQ(json["timing"]["tXSR"], "287.5 ns");
  EXPECT_EQ(load_dram_part(write("again.yaml", json.dump()).string()), part);
}

TEST_F(ScenarioTest, PowerStatesAreNeverEnteredUnlessATimeIsGiven) {
  const MemoryControllerSpec plain = load(kPlain).device.controller;
  EXPECT_EQ(plain.power_down, std::nullopt);
  EXPECT_EQ(plain.self_refresh, std::nullopt);
  EXPECT_EQ(plain.postponed_refreshes, 0);
  EXPECT_EQ(plain.temperature, Celsius(45));
  EXPECT_EQ(plain.page_policy, PagePolicy::open);
  EXPECT_EQ(plain.queue, QueueKind::shared);
  const RunSpec run =
      load(kPlain, {"device.controller.power_down=1 us", "device.controller.self_refresh=1 ms"});
  EXPECT_EQ(run.device.controller.power_down, 1_us);
  EXPECT_EQ(run.device.controller.self_refresh, 1_ms);
  EXPECT_EQ(run_spec_from_json(to_json(run).dump()), run);
  const Scenario back = restore_scenario(to_json(run).dump(), {"device.controller.power_down=none"});
  EXPECT_EQ(back.spec.device.controller.power_down, std::nullopt);
}

TEST(ExplainDram, TellsWhatIsTakenForWhatIsLeftOut) {
  EXPECT_THAT(explain("device.dram.timing.tRRD_L"), HasSubstr("default  tRRD\n"));
  EXPECT_THAT(explain("device.dram.timing.tCCDMW"), HasSubstr("default  4 tCCD of LPDDR4, else tCCD\n"));
  EXPECT_THAT(explain("device.dram.timing.tXSR"), HasSubstr("default  tRFCab + 7.5 ns\n"));
  EXPECT_THAT(explain("device.dram.timing.tXP"), HasSubstr("default  7.5 ns min 5 tCK\n"));
  EXPECT_THAT(explain("device.dram.energy"), HasSubstr("default  none\n"));
  EXPECT_THAT(explain("device.dram.energy"), HasSubstr("device.dram.energy.read_burst"));
  EXPECT_THAT(explain("device.controller.power_down"),
              HasSubstr("type     a time, or none\n  default  none\n"));
}

}  // namespace
}  // namespace kvsim::config
