// SPDX-License-Identifier: Apache-2.0
// Clocks, heat and power of devices: what is wrong in them is told, and scenarios may change them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/spec/catalogue.h"
#include "configs/spec/scenario_test_support.h"

namespace kvsim::config {
namespace {

using testing::HasSubstr;

class BoardSpecTest : public ScenarioTest {};

struct BadBoard {
  std::string change;
  std::string key;
  std::string words;
};

const BadBoard kBadBoards[] = {
    {"device.thermal.ambient=80 C",
     "device.thermal.zones.0.trips.0.at: ", "'75 C' is not above ambient, 80 C"},
    {"device.thermal.ambient=90 C", "device.thermal.caps.0.above: ", "'85 C' is not above ambient, 90 C"},
    {"device.thermal.case=box", "device.thermal.case: ", "there is no case 'box'; there are bare, heatsink"},
    {"device.thermal.cases.0.links.0.resistance=-5 K/W",
     "device.thermal.cases.0.links.0.resistance: ", "is negative"},
    {"device.thermal.cases.0.links.0.resistance=0 K/W",
     "device.thermal.cases.0.links.0.resistance: ", "is out of range"},
    {"device.thermal.cases.0.links.0.resistance=5",
     "device.thermal.cases.0.links.0.resistance: ", "has no unit; write it as 5 K/W"},
    {"device.thermal.cases.0.nodes.0.capacity=none",
     "device.thermal.cases.0.nodes.0.capacity: ", "is left out, and there is no foster chain either"},
    {"device.thermal.cases.0.links.2.from=chip",
     "device.thermal.cases.0.links.2.from: ", "there is no node 'chip'; there are soc, dram, board"},
    {"device.thermal.cases.0.links.2.to=soc",
     "device.thermal.cases.0.nodes.0: ", "from 'soc' no links lead to ambient"},
    {"device.thermal.zones.0.trips.1.at=70 C",
     "device.thermal.zones.0.trips.1.at: ", "'70 C' is not above the trip before, 75 C"},
    {"device.thermal.zones.0.trips.0.kind=active",
     "device.thermal.zones.0.trips.0.kind: ", "an active trip stands among the trips of a case's fan"},
    {"device.thermal.zones.0.trips.1.kind=critical",
     "device.thermal.zones.0.trips.2.at: ", "is above the critical trip"},
    {"device.thermal.zones.0.sensor=cpu",
     "device.thermal.zones.0.sensor: ", "there is no sensor 'cpu'; there is soc_thermal"},
    {"device.thermal.caps.1.sensor=cpu", "device.thermal.caps.1.sensor: ", "there is no sensor 'cpu'"},
    {"device.thermal.sensors.0.node=gpu", "device.thermal.sensors.0.node: ",
     "there is no node 'gpu' in the case 'bare'; there are soc, dram, board"},
    {"device.thermal.dram_node=ddr", "device.thermal.dram_node: ", "there is no node 'ddr'"},
    {"device.thermal.zones.0.governor=step_wise",
     "device.thermal.zones.0.sustainable_power: ", "is for power_allocator only"},
    {"device.thermal.zones.0.cooling.0.domain=npu",
     "device.thermal.zones.0.cooling.0.domain: ", "'npu' has no power_coefficient"},
    {"device.thermal.zones.0.cooling.0.domain=a78", "device.thermal.zones.0.cooling.0.domain: ",
     "there is no clock domain 'a78'; there are a76_0, a76_1, a55, npu, ddr"},
    {"device.thermal.zones.0.cooling=[]", "device.thermal.zones.0.cooling: ", "nothing to slow down"},
    {"device.clocks.domains.0.opps.1.clock=300 MHz",
     "device.clocks.domains.0.opps.1.clock: ", "'300 MHz' is not above the one before, 408 MHz"},
    {"device.clocks.domains.0.opps.10.voltage=0.9 V",
     "device.clocks.domains.0.opps.10.voltage: ", "'0.9 V' is below that of the slower 2208 MHz, 987.5 mV"},
    {"device.clocks.domains.0.opps=[]", "device.clocks.domains.0.opps: ", "is empty"},
    {"device.clocks.domains.4.down_differential=40",
     "device.clocks.domains.4.down_differential: ", "40 is not below up_threshold, 40"},
    {"device.clocks.domains.0.governor=userspace", "device.clocks.domains.0.pinned: ", "needs it"},
    {"device.clocks.domains.0.pinned=1 GHz",
     "device.clocks.domains.0.pinned: ", "for the governor userspace only"},
    {"device.clocks.domains.0.governor=interactive", "device.clocks.domains.0.governor: ", "schedutil"},
    {"device.clocks.domains.4.status=gaming",
     "device.clocks.domains.4.status: ", "'gaming' is none of the floors' statuses"},
    {"device.clocks.domains.4.floors.0.clock=1561 MHz",
     "device.clocks.domains.4.floors.0.clock: ", "is no operating point"},
    {"device.clocks.domains.1.name=a76_0", "device.clocks.domains.1.name: ", "is the name of two domains"},
    {"device.clocks.domains.4.governor=tegra_votes", "device.clocks.domains.4.votes: ", "is empty"},
    {"device.power.parts.0.node=heatsink", "device.power.parts.0.node: ", "there is no node 'heatsink'"},
    {"device.power.parts.0.domain=big", "device.power.parts.0.domain: ", "there is no clock domain 'big'"},
    {"device.power.parts.4.capacitance=1 pF", "device.power.parts.4.capacitance: ", "is of logic only"},
    {"device.power.limits=[{name: oc, limit: 5 W, window: 1 ms, rail: vdd_gpu, domains: [a55]}]",
     "device.power.limits.0.rail: ", "no part is on a rail 'vdd_gpu'"},
    {"device.power.limits=[{name: oc, limit: 5 W, window: 1 ms, domains: [gpu]}]",
     "device.power.limits.0.domains: ", "there is no clock domain 'gpu'"},
    {"device.thermal=none", "device.power: ", "needs `thermal`"},
    {"device.power=none", "device.thermal: ", "needs `power`"},
    {"device.clocks=none", "device.thermal: ", "needs `clocks`"},
};

TEST_F(BoardSpecTest, WhatIsWrongIsTold) {
  for (const BadBoard& bad : kBadBoards) {
    const std::string message = error_of(kPlain, {bad.change});
    EXPECT_THAT(message, HasSubstr(bad.key)) << bad.change;
    EXPECT_THAT(message, HasSubstr(bad.words)) << bad.change;
  }
}

TEST_F(BoardSpecTest, AmbientAndCaseAreSetFromOutside) {
  const RunSpec spec = load(kPlain, {"device.thermal.ambient=40 C", "device.thermal.case=bare"});
  EXPECT_EQ(spec.device.thermal->ambient, Celsius(40));
  EXPECT_EQ(chosen_case(*spec.device.thermal).name, "bare");
}

TEST_F(BoardSpecTest, EveryBoardIsWhole) {
  for (const char* id : {"rk3588", "rk3588_lpddr5", "raspberry_pi_5", "raspberry_pi_4b", "raspberry_pi_500",
                         "orin_nano_8gb", "iphone_17_pro"}) {
    const DeviceSpec device = load_device(id);
    ASSERT_TRUE(device.clocks && device.thermal && device.power) << id;
    EXPECT_FALSE(device.thermal->zones.empty()) << id;
    // The fastest operating point of the cores is what they run at without a long run, or a little above.
    const ClockDomainSpec& cores = device.clocks->domains.front();
    EXPECT_NEAR(ratio(cores.opps.back().clock, device.clusters.at(0).core.clock), 1, 0.05) << id;
  }
}

TEST_F(BoardSpecTest, NoneOfItIsNeeded) {
  const DeviceSpec device =
      load(kPlain, {"device.thermal=none", "device.power=none", "device.clocks=none"}).device;
  EXPECT_FALSE(device.clocks || device.thermal || device.power);
}

TEST_F(BoardSpecTest, ClocksAloneWillDo) {
  EXPECT_TRUE(load(kPlain, {"device.thermal=none", "device.power=none"}).device.clocks.has_value());
}

}  // namespace
}  // namespace kvsim::config
