// SPDX-License-Identifier: Apache-2.0
// `kvsim run` with a KV cache in tiers, and `kvsim session`, as a user meets them.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

Texts chat(const Texts& changes, bool json = true) {
  Texts arguments = {"run", "scenarios/lessons/d2_emmc_blocks/chat.yaml"};
  for (const std::string& change : changes) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  if (json) {
    arguments.insert(arguments.end(), {"--format", "json"});
  }
  return arguments;
}

nlohmann::json json_of(const Texts& changes) {
  const Outcome outcome = kvsim(chat(changes));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

/// 22 layers, 4 KV heads of 64 numbers in F16: 22 KiB for a token.
constexpr double kToken = 22 * 1024;

TEST(KvTiersCli, OldBlocksAreReadForEachTokenAndNewTokensAreWritten) {
  const nlohmann::json json = json_of({});
  EXPECT_TRUE(json["verdict"]["fits"]);
  const auto& storage = json["storage"];
  EXPECT_DOUBLE_EQ(storage["write_bytes_per_token"], kToken);
  EXPECT_NEAR(storage["read_bytes_per_token"], 3 * 128 * kToken, 0.02 * 3 * 128 * kToken)
      << "512 to 543 tokens in blocks of 128, of which two are in memory";
  EXPECT_NEAR(storage["hit_share"], 1 - 3 * 128 / 528.0, 0.01);
  EXPECT_DOUBLE_EQ(storage["major_faults_per_token"], 0);
  EXPECT_NEAR(storage["waf"], 1, 0.1);
  EXPECT_GT(storage["days_to_endurance"], 1000);
  EXPECT_EQ(storage["cliff_tokens"], 256);
  EXPECT_EQ(storage["tiers"][2]["tier"], "storage");
  double shares = 0;
  for (const auto& tier : storage["tiers"]) {
    shares += tier["hit_share"].get<double>();
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  double parts = 0;
  for (const auto& part : json["breakdown"]) {
    parts += part["share"].get<double>();
  }
  EXPECT_NEAR(parts, 1, 1e-9);
  EXPECT_GT(storage["stall_share"], 0.2);
}

TEST(KvTiersCli, MemoryHoldsTheBudgetAndBlocksOnTheirWay) {
  const nlohmann::json json = json_of({});
  double kv = 0;
  double staging = 0;
  for (const auto& item : json["memory"]["items"]) {
    kv += item["name"] == "KV cache" ? item["bytes"].get<double>() : 0;
    staging += item["name"] == "KV blocks on their way" ? item["bytes"].get<double>() : 0;
  }
  EXPECT_DOUBLE_EQ(kv, 256 * kToken);
  EXPECT_DOUBLE_EQ(staging, 2 * (6 - 2) * 128 * kToken / 22) << "768 cells; the layer in hand and the next";
}

/// Where everything fits, the run is the same to the bit as without tiers, but for what is written behind.
TEST(KvTiersCli, WhatFitsCostsNothing) {
  const nlohmann::json tiers = json_of({"engine.kv_tiers.dram=64 MiB"});
  const nlohmann::json plain = json_of({"engine.kv_tiers=none"});
  EXPECT_EQ(tiers["latency"], plain["latency"]);
  EXPECT_EQ(tiers["dram"], plain["dram"]);
  EXPECT_DOUBLE_EQ(tiers["storage"]["hit_share"], 1);
  EXPECT_TRUE(plain["storage"].is_null());
}

TEST(KvTiersCli, DutyStretchesTheDays) {
  const double all_day = json_of({})["storage"]["days_to_endurance"];
  const double some = json_of({"workload.duty=6"})["storage"]["days_to_endurance"];
  EXPECT_NEAR(some / all_day, 4, 1e-6);
}

TEST(KvTiersCli, AWindowKeepsWhatIsReadFlat) {
  const auto read = [](int depth) {
    return json_of({"engine.kv=f16+window=508+sinks=4", "workload.prompt=" + std::to_string(depth),
                    "workload.cached=" + std::to_string(depth - 1)})["storage"]["read_bytes_per_token"]
        .get<double>();
  };
  const double shallow = read(1100);
  EXPECT_GT(shallow, 0);
  EXPECT_NEAR(read(1900) / shallow, 1, 0.15);
  const nlohmann::json fits = json_of({"engine.kv=f16+window=508+sinks=4", "engine.kv_tiers.dram=64 MiB",
                                       "workload.prompt=1900", "workload.cached=1899"});
  EXPECT_EQ(fits["storage"]["cliff_tokens"], 2048) << "the model's own";
  EXPECT_LT(fits["storage"]["read_bytes_per_token"], 128 * kToken);
}

/// 72 B in place of 256 for a head's 64 numbers of K and V, in whole blocks and whole batches.
TEST(KvTiersCli, FewerBitsInTheFileAreFewerBytesReadAndWritten) {
  const Texts blocks = {"engine.kv_tiers.block=256", "engine.kv_tiers.write_batch=32"};
  const nlohmann::json f16 = json_of(blocks);
  const nlohmann::json q4 = json_of({blocks[0], blocks[1], "engine.kv_tiers.format=q4_0"});
  const double share = 72.0 / 256;
  EXPECT_DOUBLE_EQ(f16["storage"]["write_bytes_per_token"], kToken);
  EXPECT_DOUBLE_EQ(q4["storage"]["write_bytes_per_token"], share * kToken);
  EXPECT_DOUBLE_EQ(q4["storage"]["read_bytes_per_token"],
                   share * f16["storage"]["read_bytes_per_token"].get<double>());
  EXPECT_EQ(q4["storage"]["hit_share"], f16["storage"]["hit_share"]);
  EXPECT_LT(q4["storage"]["stall_share"], f16["storage"]["stall_share"]);
  EXPECT_THAT(q4["verdict"]["notes"].dump(), HasSubstr("kvsim quality --kv q4_0"));
}

/// Pages of 16 tokens are blocks. In memory are 16 of 32 to 34 in each layer.
TEST(KvTiersCli, WhereAttentionChoosesPagesOthersStayOnStorage) {
  const auto run = [](const std::string& placement, const std::string& reuse) {
    return json_of({"engine.kv=f16+topk=64", "engine.kv_tiers.block=16",
                    "engine.kv_tiers.placement=" + placement, "workload.pages.reuse=" + reuse,
                    "engine.kv_tiers.prefetch=0"});
  };
  const nlohmann::json age = run("age", "0.8");
  const nlohmann::json score = run("score", "0.8");
  const double all = 17 * 16 * kToken;
  EXPECT_GT(age["storage"]["read_bytes_per_token"], 0.1 * all);
  EXPECT_LT(age["storage"]["read_bytes_per_token"], 0.5 * all);
  EXPECT_LT(score["storage"]["read_bytes_per_token"],
            0.7 * age["storage"]["read_bytes_per_token"].get<double>());
  EXPECT_GT(score["storage"]["hit_share"], age["storage"]["hit_share"]);
  EXPECT_LT(run("score", "1")["storage"]["read_bytes_per_token"],
            0.5 * score["storage"]["read_bytes_per_token"].get<double>())
      << "what is read again and again is in memory";
  EXPECT_THAT(score["verdict"]["notes"].dump(), HasSubstr("which pages topk reads is drawn"));
  double bounds = 0;
  for (const auto& item : score["memory"]["items"]) {
    bounds += item["name"] == "bounds of KV pages" ? item["bytes"].get<double>() : 0;
  }
  EXPECT_DOUBLE_EQ(bounds, 768 / 16 * 22 * 4 * 64 * 4) << "pages, layers, heads, channels, two in F16";
}

/// Where the bounds of a page are no whole number of cells, other contexts are told apart all the same.
TEST(KvTiersCli, BoundsOfPagesHaveTheirOwnSize) {
  const nlohmann::json json =
      json_of({"engine.kv=q8_0+topk=64", "engine.kv_tiers.block=256", "workload.generate=2"});
  EXPECT_TRUE(json["verdict"]["fits"]);
  EXPECT_EQ(json["storage"]["cliff_tokens"], 256);
}

TEST(KvTiersCli, FidelitiesAgree) {
  const nlohmann::json automatic = json_of({"workload.generate=4"});
  const nlohmann::json train = json_of({"workload.generate=4", "run.fidelity=train"});
  EXPECT_EQ(automatic["storage"]["read_bytes_per_token"], train["storage"]["read_bytes_per_token"]);
  const double ratio =
      automatic["latency"]["itl_ms"]["p50"].get<double>() / train["latency"]["itl_ms"]["p50"].get<double>();
  EXPECT_NEAR(ratio, 1, 0.03);
}

TEST(KvTiersCli, MappedIsPagedByTheKernel) {
  const nlohmann::json json = json_of({"engine.kv_tiers.through=mapped"});
  EXPECT_GT(json["storage"]["major_faults_per_token"], 10);
  EXPECT_GT(json["storage"]["read_bytes_per_token"], 3 * 128 * kToken);
  const Outcome text = kvsim(chat({"engine.kv_tiers.through=mapped"}, false));
  EXPECT_THAT(text.out, HasSubstr("nothing is read up to 256 tokens of context; this run has 544"));
}

TEST(KvTiersCli, WhatTheDeviceRefusesIsAVerdictWithItsPlace) {
  const nlohmann::json read_only = json_of({"device.storage.read_only=true"});
  EXPECT_FALSE(read_only["verdict"]["fits"]);
  EXPECT_EQ(read_only["verdict"]["limit"], "storage");
  EXPECT_EQ(read_only["verdict"]["token"], 0) << "the last token of the prompt fills a batch";
  EXPECT_THAT(read_only["verdict"]["message"].get<std::string>(), HasSubstr("read-only"));
  const Texts tiny = {"device.storage.flash.pages_per_block=16",
                      "device.storage.flash.over_provisioning=0.9"};
  const auto with = [&](const Texts& more) {
    Texts all = tiny;
    all.insert(all.end(), more.begin(), more.end());
    return json_of(all);
  };
  const nlohmann::json small = with({"device.storage.capacity=8 MiB"});
  EXPECT_EQ(small["verdict"]["limit"], "storage");
  EXPECT_TRUE(small["verdict"]["token"].is_null());
  EXPECT_THAT(small["verdict"]["message"].get<std::string>(), HasSubstr("does not fit"));
  const nlohmann::json full =
      with({"device.storage.capacity=12 MiB", "engine.kv_tiers.file=log", "workload.generate=128"});
  EXPECT_EQ(full["verdict"]["limit"], "storage");
  EXPECT_EQ(full["verdict"]["token"], 48) << "12 MiB hold 34 batches of 16, tokens 0 to 543";
  EXPECT_THAT(full["verdict"]["message"].get<std::string>(),
              HasSubstr("a write of 352 KiB at 11968 KiB: device full"));
}

TEST(KvTiersCli, PagedWeightsAndTiersDoNotShareTheStorage) {
  const Outcome outcome =
      kvsim({"run", "scenarios/rk3588_llama8b.yaml", "--set", "device=rk3588_4gb", "--set",
             "engine.kv_tiers.dram=64 MiB", "--set", "workload.prompt=16", "--set", "workload.generate=1"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("the KV cache in tiers has the storage to itself"));
}

TEST(KvTiersCli, ARecordingReplaysTheSame) {
  const std::string path = ::testing::TempDir() + "kvsim_tiers.kvt";
  Texts arguments = chat({"workload.generate=3"});
  arguments.insert(arguments.end(), {"--record", path});
  const Outcome run = kvsim(arguments);
  const Outcome replay = kvsim({"replay", path, "--format", "json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["storage"], nlohmann::json::parse(replay.out)["storage"]);
  EXPECT_EQ(nlohmann::json::parse(run.out)["latency"], nlohmann::json::parse(replay.out)["latency"]);
}

TEST(SessionCli, SaysWhenRestoringBeatsComputing) {
  const Outcome outcome =
      kvsim({"session", "scenarios/rk3588_llama8b.yaml", "--prefix", "128,32", "--format", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["prefixes"].size(), 2U);
  EXPECT_EQ(json["prefixes"][0]["tokens"], 32) << "in order";
  EXPECT_EQ(json["prefixes"][1]["bytes"], 128 * 131072);
  EXPECT_NEAR(json["prefixes"][1]["restore_ms"], 64, 5) << "16 MiB at 262 MB/s";
  EXPECT_GT(json["prefixes"][1]["prefill_ms"], 1000);
  EXPECT_EQ(json["break_even_tokens"], 32);
  EXPECT_THAT(kvsim({"session", "scenarios/rk3588_llama8b.yaml", "--prefix", "32"}).out,
              HasSubstr("from 32 tokens on, the shortest prefix asked for"));
}

TEST(SessionCli, RefusesWhatMakesNoSense) {
  const auto error = [](const Texts& more) {
    Texts arguments = {"session", "scenarios/rk3588_llama8b.yaml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = kvsim(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_THAT(error({"--prefix", "0"}), HasSubstr("--prefix: '0' is not a number of tokens from 1"));
  EXPECT_THAT(error({"--prefix", "12,x"}), HasSubstr("'x' is not a number of tokens"));
  EXPECT_THAT(error({"--set", "device.storage=none"}), HasSubstr("the device has none"));
  EXPECT_THAT(error({"--set", "engine.kv_cache=recomputed"}), HasSubstr("no KV cache to save"));
  EXPECT_THAT(error({"--format", "csv"}), HasSubstr("--format: 'csv' is unknown"));
  EXPECT_THAT(error({"another.yaml"}), HasSubstr("give one scenario file (2 given)"));
}

}  // namespace
}  // namespace kvsim::testing
