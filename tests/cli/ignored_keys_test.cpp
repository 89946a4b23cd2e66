// SPDX-License-Identifier: Apache-2.0
// Keys that say nothing in a run are told or refused, not passed over.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

struct IgnoredKeys : ::testing::Test {
  Outcome run(const Texts& changes, Texts options = {}) const {
    Texts arguments = {"run", scenario, "--format", "json"};
    for (const std::string& change : changes) {
      arguments.insert(arguments.end(), {"--set", change});
    }
    arguments.insert(arguments.end(), options.begin(), options.end());
    return kvsim(arguments);
  }
  Texts notes(const Texts& changes, const std::string& fidelity = "auto") const {
    const Outcome outcome = run(changes, {"--fidelity", fidelity});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.exit_code == 0 ? nlohmann::json::parse(outcome.out)["verdict"]["notes"].get<Texts>()
                                  : Texts{};
  }
  void expect_refused(const std::string& change, const std::string& why) const {
    const Outcome outcome = run({change});
    EXPECT_EQ(outcome.exit_code, 2) << change;
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }

  TemporaryFolder folder;
  std::string scenario =
      folder.file("small.yaml",
                  "device: rk3588\n"
                  "model: {extends: tinyllama_1_1b, layers: 1, vocabulary: 512, ffn: 256}\n"
                  "engine: {weights: Q4_0}\n"
                  "workload: {prompt: 1, generate: 1, threads: 1}\n");
};

TEST_F(IgnoredKeys, AQuietRunHasNoNotes) {
  for (const char* fidelity : {"exact", "train", "auto"}) {
    EXPECT_THAT(notes({}, fidelity), IsEmpty()) << fidelity;
  }
}

TEST_F(IgnoredKeys, QueuesOfTrainsAreTold) {
  const std::string c = "device.controller.";
  for (const char* change : {"queue=bank", "read_queue=8", "age_cap=1 us", "write_queue=80"}) {
    const std::string key = std::string(change).substr(0, std::string(change).find('='));
    EXPECT_THAT(notes({c + change}, "train"),
                ElementsAre(c + key + " has no effect in train, which books row trains; use exact for it"));
  }
  EXPECT_THAT(notes({c + "queue=bank", c + "read_queue=8", c + "age_cap=1 us"}, "exact"), IsEmpty());
  EXPECT_THAT(notes({c + "read_queue=8", c + "age_cap=1 us"}),
              ElementsAre(HasSubstr("device.controller.read_queue, age_cap has no effect in auto")));
  EXPECT_THAT(notes({c + "write_high=40"}, "train"), IsEmpty()) << "it has one";
}

/// What makes trains go burst by burst is told, and then the queues count.
TEST_F(IgnoredKeys, TrainsThatGoBurstByBurstAreTold) {
  const std::string c = "device.controller.";
  for (const char* change :
       {"power_down=1 us", "self_refresh=2 us", "postponed_refreshes=4", "page_policy=closed"}) {
    const std::string key = std::string(change).substr(0, std::string(change).find('='));
    const Texts expected = {"train goes burst by burst here: row trains do not know " + c + key};
    EXPECT_EQ(notes({c + change}, "train"), expected) << change;
  }
  EXPECT_THAT(notes({c + "power_down=1 us", c + "read_queue=8"}, "train"),
              ElementsAre(HasSubstr("burst by burst")));
  EXPECT_THAT(notes({c + "power_down=1 us"}, "exact"), IsEmpty());
  EXPECT_THAT(notes({"device.clusters.0.priority=1"}),
              ElementsAre(HasSubstr("auto goes burst by burst here: row trains do not know "
                                    "device.clusters.N.priority")));
}

TEST_F(IgnoredKeys, PagesWithoutPagingAreTold) {
  EXPECT_THAT(
      notes({"engine.kv_block=32", "engine.kv_block_order=shuffled"}),
      ElementsAre("engine.kv_block, engine.kv_block_order has no effect: engine.kv_layout is not paged"));
  EXPECT_THAT(notes({"engine.kv_block=32", "engine.kv_layout=paged"}), IsEmpty());
}

TEST_F(IgnoredKeys, RailsWithoutEnergyAreTold) {
  const Outcome outcome = run({"device.dram.energy=none"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("has rails but no energy"));
  EXPECT_EQ(run({"device.dram.energy=none", "device.dram.rails=none"}).err, "");
}

TEST_F(IgnoredKeys, WhatIsPlainlyAMistakeIsRefused) {
  expect_refused("device.controller.mapping.hash=true", "mapping.hash: is of a named order");
  expect_refused("device.controller.mapping.channel_granule=1 KiB",
                 "mapping.channel_granule: is of a named order");
  expect_refused("device.controller={refresh: none, self_refresh: 1 us}",
                 "self_refresh: a rank that is not refreshed");
  EXPECT_EQ(run({"device.controller.mapping={order: row-bank-column, hash: true, channel_granule: 1 KiB}"})
                .exit_code,
            0);
}

/// A recording has every key, set or not: it must not be told more than the run was.
TEST_F(IgnoredKeys, AReplayHasTheNotesOfItsRun) {
  const std::string trace = folder.path("t.kvt");
  const Outcome recorded = run(
      {"device.controller.mapping={order: row-bank-column, hash: true}", "device.controller.read_queue=8"},
      {"--record", trace});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  const Outcome replayed = kvsim({"replay", trace, "--format", "json"});
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  EXPECT_EQ(nlohmann::json::parse(replayed.out)["verdict"]["notes"],
            nlohmann::json::parse(recorded.out)["verdict"]["notes"]);
}

}  // namespace
}  // namespace kvsim::testing
