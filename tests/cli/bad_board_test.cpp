// SPDX-License-Identifier: Apache-2.0
// Mistakes in masters, clocks, heat and long runs: each is told with its place in the user's file, and ends
// with 2.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::HasSubstr;

struct Bad {
  const char* device;  ///< what the device's map says beside `extends`
  const char* more;    ///< of the scenario
  const char* message;
};

const Bad kBad[] = {
    {"thermal: {zones: {0: {trips: {0: {at: 20 C}}}}}", "",
     "main.yaml:3:41: device.thermal.zones.0.trips.0.at: '20 C' is not above ambient, 25 C"},
    {"thermal: {cases: {0: {links: {0: {resistance: -5 K/W}}}}}", "",
     "main.yaml:3:49: device.thermal.cases.0.links.0.resistance: '-5 K/W' is negative"},
    {"thermal: {zones: {0: {sensor: cpu}}}", "",
     "main.yaml:3:33: device.thermal.zones.0.sensor: there is no sensor 'cpu'; there is soc_thermal"},
    {"clocks: {domains: {4: {down_differential: 40}}}", "",
     "main.yaml:3:45: device.clocks.domains.4.down_differential: 40 is not below up_threshold, 40"},
    {"clocks: {domains: {0: {opps: {1: {clock: 300 MHz}}}}}", "",
     "main.yaml:3:44: device.clocks.domains.0.opps.1.clock: '300 MHz' is not above the one before, 408 MHz"},
    {"masters: [{master: {burst: {bytes: 1 MiB, period: 10 ms, deadline: 1 ms}}, qos: limiter, bandwidth: "
     "500 MB/s}]",
     "", "main.yaml:3:103: device.masters.0.bandwidth: 4 Gbit/s: the largest transfer of custom takes"},
    {"masters: [{master: display_4k60, qos: regulator, priority: 1, bandwidth: 40 GB/s}]", "",
     "main.yaml:3:12: device.masters: regulators are promised 40 GB/s together; the peak is 33.792 GB/s"},
    {"masters: [{master: {series: {file: ./bad.csv}}}]", "",
     "bad.csv:3:1: device.masters.0.master.series.file: '0.2;64' does not have two fields"},
    {"description: none",
     "soak: {duration: 1 s, rules: [{sensor: gpu, above: 60 C, below: 50 C, pause: true}]}",
     "main.yaml:5:40: soak.rules.0.sensor: there is no sensor 'gpu'; there is soc_thermal"},
    {"description: none",
     "soak: {duration: 1 s, rules: [{sensor: soc_thermal, above: 60 C, below: 50 C, set: nonsense}]}",
     "main.yaml:5:84: soak.rules.0.set: 'nonsense' changes nothing of engine, nor workload.threads"},
    {"description: none",
     "soak: {duration: 1 s, rules: [{sensor: soc_thermal, above: 60 C, below: 50 C, set: "
     "workload.prompt=5}]}",
     "main.yaml:5:84: soak.rules.0.set: 'workload.prompt=5' changes nothing of engine"},
    {"description: none",
     "soak: {duration: 1 s, rules: [{sensor: soc_thermal, above: 60 C, below: 50 C, set: "
     "workload.threads=99}]}",
     "main.yaml:5:84: soak.rules.0.set: 'workload.threads=99': workload.threads: 99 threads on the 8 cores"},
    {"description: none",
     "soak: {duration: 1 s, rules: [{sensor: soc_thermal, above: 60 C, below: 50 C, set: engine.kv=bogus}]}",
     "main.yaml:5:84: soak.rules.0.set: "},
};

TEST(BadBoardCli, IsToldOnceWithItsPlace) {
  const TemporaryFolder folder;
  static_cast<void>(folder.file("bad.csv", "time,bytes\n0.1,64\n0.2;64\n"));
  for (const Bad& bad : kBad) {
    const std::string text =
        std::string("device:\n  extends: rk3588\n  ") + bad.device + "\nmodel: llama3_8b\n" + bad.more + "\n";
    const Outcome outcome = kvsim({"validate", folder.file("main.yaml", text)});
    EXPECT_EQ(outcome.exit_code, 2) << text;
    EXPECT_THAT(outcome.err, HasSubstr(bad.message)) << text;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

}  // namespace
}  // namespace kvsim::testing
