// SPDX-License-Identifier: Apache-2.0
// DRAM that cannot be is refused, with one message each; what is odd but possible is noted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/catalogue.h"
#include "configs/spec/scenario_test_support.h"

namespace kvsim::config {
namespace {

using testing::HasSubstr;

struct BadDram {
  std::string change;  ///< of the device rk3588
  std::string words;
};

const BadDram kBadTimings[] = {
    {"tRCD: 50 ns", "timing.tRAS: '42 ns min 3 tCK' is less than tRCD, which is 50 ns"},
    {"tRPpb: 30 ns", "timing.tRPab: '21 ns min 4 tCK' is less than tRPpb, which is 30 ns"},
    {"tRRD_L: 5 ns", "timing.tRRD_L: '5 ns' is less than tRRD, which is 10 ns min 4 tCK"},
    {"tFAW: 5 ns", "timing.tFAW: '5 ns' is less than tRRD, which is 10 ns min 4 tCK"},
    {"tCCD_L: 7 tCK", "timing.tCCD_L: '7 tCK' is less than tCCD, which is 8 tCK"},
    {"tCCD_L_WR: 4 tCK", "timing.tCCD_L_WR: '4 tCK' is less than tCCD_L, which is 8 tCK"},
    {"tCCDMW: 4 tCK", "timing.tCCDMW: '4 tCK' is less than tCCD, which is 8 tCK"},
    {"tWTR_L: 5 ns", "timing.tWTR_L: '5 ns' is less than tWTR, which is 10 ns min 8 tCK"},
    {"tRFCpb: 300 ns", "timing.tRFCab: '280 ns' is less than tRFCpb, which is 300 ns"},
    {"tRFCab: 5000 ns", "timing.tRFCab: '5 us' is not below tREFI, 3904 ns"},
    {"tRFCab: 3904 ns, tXSR: 1 us", "timing.tRFCab: '3904 ns' is not below tREFI, 3904 ns"},
    {"read_latency: 0 tCK", "timing.read_latency: is 0, which no part"},
    {"tRCD: 0 ns", "timing.tRCD: is 0, which no part of this standard can do"},
    {"tRAS: 1 ms",
     "timing.tRAS: '1 ms' is not below tREFI, 3904 ns: nothing could be done between refreshes"},
    {"tFAW: 1 ms", "timing.tFAW: '1 ms' is not below tREFI"},
    {"tXP: 4 us", "timing.tXP: '4 us' is not below tREFI"},
    {"tWR: 0 ns", "timing.tWR: is 0"},
    {"write_latency: 41 tCK", "timing.read_latency: '40 tCK' is less than write_latency, which is 41 tCK"},
    {"tRFCpb: 0 tCK",
     "controller.refresh: is per_bank, but lpddr4x_4224_8gb (changed) has no refresh of one bank"},
    {"tpbR2pbR: 500 ns",
     "controller.refresh: at 45 C the DRAM is refreshed every 3904 ns, and refreshes of 4 us in all do not "
     "fit into that; use refresh: all_bank"},
    {"tXP: -1 ns", "timing.tXP: '-1 ns' is negative"},
    {"tRC: 60 ns", "timing.tRC: unknown key, did you mean 'tRCD'?"},
};

const BadDram kBadParts[] = {
    {"banks: 0", "dram.banks: '0' is out of range; allowed is 1 to 64"},
    {"banks: 12", "dram.banks: '12' is not a power of two"},
    {"rows: 0", "dram.rows: '0' is out of range"},
    {"banks_per_refresh: 16", "dram.banks_per_refresh: a refresh cannot take 16 of 8 banks"},
    {"banks_per_refresh: 3", "dram.banks_per_refresh: '3' is not a power of two"},
    {"width_bits: 128", "dram.width_bits: '128' is out of range; allowed is 8 to 64"},
    {"width_bits: 24", "dram.width_bits: '24' is not a power of two"},
    {"bank_groups: 4", "dram.bank_groups: 4 is not what this standard has: 1"},
    {"burst_length: 8", "dram.burst_length: 8 is not what this standard has: 16 or 32"},
    {"transfers_per_clock: 8", "dram.transfers_per_clock: 8 is not what this standard has: 2"},
    {"width_bits: 64",
     "dram.burst_length: a burst of 16 on 64 data lines is 128 B, which does not divide a line of 64 B"},
    {"rows: 131072", "mapping.row: has 16 bits, but 131072 rows need 17"},
    {"banks: 16", "mapping.bank: has 3 bits, but 16 banks need 4"},
    {"columns: 2048", "mapping.column: has 11 bits, but 4096 bytes of a row need 12"},
    {"standard: lpddr6",
     "dram.standard: 'lpddr6' is not one of lpddr3, lpddr4, lpddr4x, lpddr5, lpddr5x, ddr4, ddr5, psram"},
    {"standard: psram", "missing 'psram', which a part of its standard has its timings in"},
    {"psram: {command: 3 tCK, read_latency: 9 tCK, write_latency: 4 tCK, tCPH: 2 tCK, tCEM: 8 us}",
     "dram.psram: is not for this standard, whose timings are in 'timing'"},
    {"data_rate: 1.6 GHz", "dram.data_rate: '1.6 GHz' is a frequency; a data rate is in MT/s"},
    {"data_rate: 1600", "dram.data_rate: '1600' has no unit; write it as 1600 MT/s, 1600 GT/s, ..."},
    {"data_rate: 10 MT/s", "dram.data_rate: '10 MT/s' is out of range; allowed is 100 MT/s to 20000 MT/s"},
    {"energy: 3", "dram.energy: expects a map with the keys activate, read_burst"},
    {"energy: {activate: -1 nJ}", "energy.activate: '-1 nJ' is negative"},
    {"energy: {activate: 1 W}", "energy.activate: '1 W' has the unknown unit 'W'"},
    {"energy: {read: 1 nJ}", "energy.read: unknown key"},
    {"energy: {read_burst: 2 nJ}",
     "dram.rails: read_burst adds up to 1591 pJ over the rails, but is 2000 pJ in energy; change both, or "
     "use "
     "rails: none"},
    {"rails: {VDD2: none}",
     "dram.rails: activate adds up to 144.6 pJ over the rails, but is 1205 pJ in energy"},
    {"rails: {VDD3: none}", "rails.VDD3: unknown key"},
};

const BadDram kBadControllers[] = {
    {"postponed_refreshes: 9", "postponed_refreshes: '9' is out of range; allowed is 0 to 8"},
    {"temperature: 126 C", "temperature: '126 C' is out of range; allowed is -40 C to 125 C"},
    {"temperature: 96 C",
     "temperature: at 96 C the DRAM is refreshed every 976 ns (tREFI, 3904 ns, by 4), and refreshes of 1.12 "
     "us in all do not fit into that; use refresh: all_bank"},
    {"page_policy: closing", "page_policy: 'closing' is not one of open, closed, adaptive"},
    {"page_policy: adaptive", "page_timeout: is 0, but the adaptive policy closes rows after it"},
    {"queue: pool", "queue: 'pool' is not one of shared, bank"},
    {"power_down: 2 s", "power_down: '2 s' is out of range"},
    {"power_down: 1 us, self_refresh: 1 us",
     "self_refresh: '1 us' is not above the 1 us after which a rank powers down; it would never power down"},
    {"refresh: none, self_refresh: 1 us",
     "self_refresh: a rank that is not refreshed (refresh is none) does not refresh itself either"},
    {"mapping: {hash: true}", "controller.mapping.hash: is of a named order, and this map has masks"},
    {"mapping: {channel_granule: 1 KiB}", "controller.mapping.channel_granule: is of a named order"},
    {"mapping: {order: row-bank-column, channel_granule: 256}",
     "channel_granule: '256' has no unit; write it as 256 B, 256 MiB, ..."},
    {"mapping: {order: row-bank-column-xor}",
     "did you mean 'row-bank-column'? A hash is asked for with hash: true beside it"},
    // One mistake in all rows is told once.
    {"mapping: {row: [15, 16-21, 23-31]}", "row: bit 0"},
    {"ranks: 9", "ranks: '9' is out of range"},
    {"mapping: {bank: [13^11, 14^12, 13^11]}", "bank bit 0 (13^11) and bank bit 2 (13^11) repeat each other"},
};

class BadDramTest : public ScenarioTest {
 protected:
  void expect_refused(const std::string& device, const std::string& words) const {
    const std::string text = "device: {extends: rk3588, " + device + "}\nmodel: tinyllama_1_1b\n";
    const std::string error = error_of(text);
    EXPECT_THAT(error, HasSubstr(words)) << text;
    EXPECT_EQ(error.find('\n'), std::string::npos) << "one mistake, one line: " << error;
  }
};

TEST_F(BadDramTest, TimingsAreRefused) {
  for (const BadDram& bad : kBadTimings) {
    expect_refused("dram: {timing: {" + bad.change + "}}", bad.words);
  }
}

TEST_F(BadDramTest, PartsAreRefused) {
  for (const BadDram& bad : kBadParts) {
    expect_refused("dram: {" + bad.change + "}", bad.words);
  }
}

TEST_F(BadDramTest, ControllersAreRefused) {
  for (const BadDram& bad : kBadControllers) {
    if (bad.change.find("mapping") == std::string::npos) {
      expect_refused("controller: {" + bad.change + "}", bad.words);
    }
  }
}

TEST_F(BadDramTest, MapsThatOverlapLeaveAHoleToo) {
  const std::string error = error_of("device: {extends: rk3588, controller: {" +
                                     std::end(kBadControllers)[-1].change + "}}\nmodel: tinyllama_1_1b\n");
  EXPECT_THAT(error, HasSubstr(std::end(kBadControllers)[-1].words));
  EXPECT_THAT(error, HasSubstr("address bit 15 is in no coordinate; it is missing"));
}

TEST_F(BadDramTest, LinesThatNoBurstDividesAreRefused) {
  expect_refused("dram: {burst_length: 32, width_bits: 32, timing: {tCCD: 16 tCK, tCCD_L: 16 tCK}}",
                 "a burst of 32 on 32 data lines is 128 B, which does not divide a line of 64 B");
}

TEST_F(BadDramTest, SerialPartsAreRefused) {
  const std::string base = "extends: psram_aps6408l_esp32s3\n";
  const auto refused = [&](const std::string& change) {
    return message_of([&] { static_cast<void>(load_dram_part(write("p.yaml", base + change).string())); });
  };
  EXPECT_THAT(refused("banks: 2"), HasSubstr("banks: a serial PSRAM has one bank in one group"));
  EXPECT_THAT(refused("psram: {tCEM: 600 ns}"), HasSubstr("psram.tCEM: '600 ns' is less than the"));
  EXPECT_THAT(refused("burst_length: 128"), HasSubstr("burst_length: '128' is out of range"));
  EXPECT_THAT(refused("timing: {tRCD: 18 ns}"), HasSubstr("timing"));
  EXPECT_EQ(refused("psram: {tCEM: 1 us}"), "no error");
}

TEST_F(BadDramTest, WhatIsPossibleIsTaken) {
  for (const char* device :
       {"controller: {temperature: 96 C, refresh: all_bank}",
        "controller: {temperature: 125 C, refresh: none}", "controller: {temperature: 95 C}",
        "controller: {temperature: -40 C, postponed_refreshes: 8}",
        "controller: {page_policy: adaptive, page_timeout: 200 ns, queue: bank}",
        "controller: {power_down: 0 ns, self_refresh: 1 us}",
        "dram: {timing: {tRFCpb: 0 tCK}}, controller: {refresh: "
        "all_bank}",
        "dram: {energy: none}", "dram: {energy: {read_burst: 2 nJ}, rails: none}"}) {
    EXPECT_EQ(error_of(std::string("device: {extends: rk3588, ") + device + "}\nmodel: tinyllama_1_1b\n"),
              "no error")
        << device;
  }
}

TEST_F(BadDramTest, AShortFawIsNotedAndTaken) {
  const RunSpec run =
      load("device: {extends: rk3588, dram: {timing: {tFAW: 39 ns}}}\nmodel: tinyllama_1_1b\n");
  EXPECT_THAT(
      part_notes(run.device.dram),
      testing::ElementsAre("lpddr4x_4224_8gb (changed): tFAW, 39 ns, is less than 4 tRRD, 10 ns min 4 tCK "
                           "each, and never binds"));
  const RunSpec rails = load("device: {extends: rk3588, dram: {energy: none}}\nmodel: tinyllama_1_1b\n");
  EXPECT_THAT(part_notes(rails.device.dram), testing::ElementsAre(HasSubstr("has rails but no energy")));
  for (const std::string& id : catalogue_ids("dram")) {
    EXPECT_THAT(part_notes(load_dram_part(id)), testing::IsEmpty());
  }
}

}  // namespace
}  // namespace kvsim::config
