// SPDX-License-Identifier: Apache-2.0
#include "models/testing/test_device.h"

#include <sstream>
#include <string>

#include "configs/units/quantity.h"

namespace kvsim::model::testing {

using namespace literals;

namespace {

config::ClockedTime tenths(std::int64_t of_a_nanosecond) {
  return {Picoseconds(of_a_nanosecond * 100), 0};
}
config::ClockedTime clocks(std::int64_t count) {
  return {Picoseconds(), count};
}

}  // namespace

std::vector<config::AddressBit> address_bits(std::string_view text) {
  std::vector<config::AddressBit> bits;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    std::istringstream parts(word);
    std::uint64_t mask = 0;
    for (std::string bit; std::getline(parts, bit, '^');) {
      mask ^= std::uint64_t{1} << std::stoi(bit);
    }
    bits.push_back({mask});
  }
  return bits;
}

namespace {

config::CoreSpec core() {
  config::CoreSpec spec;
  spec.name = "core";
  spec.clock = Hertz(2'300'000'000);
  spec.simd_ops_per_cycle = 2;
  spec.reorder_buffer = 128;
  spec.demand_misses = 8;
  spec.prefetch_lines = 20;
  spec.prefetch_page = 4_KiB;
  spec.prefetch_training = 3;
  spec.store_lines = 16;
  spec.l2_size = 512_KiB;
  spec.l2_latency = 3_ns;
  spec.tlb_reach = 5_MiB;
  spec.tlb_walk = 14_ns;
  return spec;
}

config::DramTiming timing() {
  return {.read_latency = clocks(40),
          .write_latency = clocks(19),
          .tRCD = tenths(180),
          .tRPpb = tenths(180),
          .tRPab = tenths(210),
          .tRAS = tenths(420),
          .tRRD = tenths(100),
          .tRRD_L = tenths(100),
          .tFAW = tenths(400),
          .tCCD = clocks(8),
          .tCCD_L = clocks(8),
          .tCCD_L_WR = clocks(8),
          .tCCDMW = clocks(32),
          .tWTR = tenths(100),
          .tWTR_L = tenths(100),
          .tRTP = tenths(75),
          .tWR = tenths(180),
          .tPPD = clocks(0),
          .tRTRS = clocks(4),
          .tRFCab = tenths(2800),
          .tRFCpb = tenths(1400),
          .tpbR2pbR = tenths(1400),
          .tpbR2act = tenths(100),
          .tREFI = tenths(39040),
          .tCKE = tenths(75),
          .tXP = tenths(75),
          .tSR = tenths(150),
          .tXSR = tenths(2875)};
}

config::DramEnergy energy() {
  return {.activate = Joules(1e-9),
          .read_burst = Joules(1.5e-9),
          .write_burst = Joules(1.25e-9),
          .refresh_all = Joules(20e-9),
          .refresh_bank = Joules(2e-9),
          .active_standby = Watts(40e-3),
          .precharge_standby = Watts(32e-3),
          .active_power_down = Watts(12e-3),
          .precharge_power_down = Watts(6e-3),
          .self_refresh = Watts(1e-3)};
}

}  // namespace

config::DeviceSpec device() {
  config::DeviceSpec d;
  d.name = "test";
  d.clusters = {{.core = core(), .count = 4}};
  d.llc = {.size = 3_MiB, .ways = 12, .line = 64_B, .latency = 16_ns, .bandwidth = 30_GBps};
  d.interconnect = {.request_latency = 25_ns, .response_latency = 20_ns, .bandwidth = 100_GBps};
  d.os = {.firmware = 200_MiB, .reserve = 300_MiB, .page = 4_KiB};

  d.dram.name = "lpddr4x-4224";
  d.dram.data_rate = Hertz(4'224'000'000);
  d.dram.timing = timing();
  d.dram.energy = energy();

  config::MemoryControllerSpec& c = d.controller;
  c.channels = 4;
  c.ranks = 2;
  c.refresh = config::RefreshMode::per_bank;
  c.age_cap = Picoseconds(2'000'000);
  c.mapping.column = address_bits("0 1 2 3 4 5 6 9 10 11 12");
  c.mapping.channel = address_bits("7 8");
  c.mapping.bank = address_bits("13^11 14^12 15^13");
  c.mapping.rank = address_bits("24^14");
  c.mapping.row = address_bits("16 17 18 19 20 21 22 23 25 26 27 28 29 30 31 32");
  return d;
}

config::DeviceSpec plain_device() {
  config::DeviceSpec d = device();
  d.controller.channels = 1;
  d.controller.ranks = 1;
  config::AddressMapSpec& map = d.controller.mapping;
  map = {};
  map.column = address_bits("0 1 2 3 4 5 6 7 8 9 10");
  map.bank = address_bits("11 12 13");
  map.row = address_bits("14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29");
  return d;
}

config::DeviceSpec one_rank_device() {
  config::DeviceSpec d = device();
  d.controller.ranks = 1;
  d.controller.mapping.rank.clear();
  d.controller.mapping.row = address_bits("16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31");
  return d;
}

config::DeviceSpec lpddr5_device() {
  config::DeviceSpec d = device();
  config::DramPartSpec& p = d.dram;
  p.name = "lpddr5-4800";
  p.standard = config::DramStandard::lpddr5;
  p.data_rate = Hertz(4'800'000'000);
  p.transfers_per_clock = 8;
  p.bank_groups = 4;
  p.banks = 16;
  p.banks_per_refresh = 2;
  p.timing = {.read_latency = clocks(15),
              .write_latency = clocks(7),
              .tRCD = tenths(180),
              .tRPpb = tenths(180),
              .tRPab = tenths(210),
              .tRAS = tenths(420),
              .tRRD = tenths(50),
              .tRRD_L = tenths(50),
              .tFAW = tenths(200),
              .tCCD = clocks(2),
              .tCCD_L = clocks(4),
              .tCCD_L_WR = clocks(4),
              .tCCDMW = clocks(4),
              .tWTR = tenths(120),
              .tWTR_L = tenths(120),
              .tRTP = tenths(42),
              .tWR = tenths(340),
              .tPPD = clocks(0),
              .tRTRS = clocks(2),
              .tRFCab = tenths(2800),
              .tRFCpb = tenths(1400),
              .tpbR2pbR = tenths(900),
              .tpbR2act = tenths(75),
              .tREFI = tenths(39060),
              .tCKE = tenths(75),
              .tXP = tenths(75),
              .tSR = tenths(150),
              .tXSR = tenths(2875)};
  config::AddressMapSpec& map = d.controller.mapping;
  // Neighbouring lines lie in different bank groups, so that a stream in order can use all of the bus.
  map.column = address_bits("0 1 2 3 4 5 10 11 12 13 14");
  map.channel = address_bits("8 9");
  map.bank = address_bits("15^18 16^19 6^20 7^21");
  map.rank = address_bits("17^22");
  map.row = address_bits("18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33");
  return d;
}

}  // namespace kvsim::model::testing
