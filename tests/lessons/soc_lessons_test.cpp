// SPDX-License-Identifier: Apache-2.0
// What the READMEs of lessons E1 to E3 and E5 conclude still holds, with one or two layers of the models.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using nlohmann::json;
using Changes = std::vector<std::string>;

json run(const std::string& scenario, const Changes& changes) {
  std::vector<std::string> arguments = {"run", "scenarios/" + scenario, "--format", "json"};
  for (const std::string& change : changes) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  const Outcome outcome = kvsim(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out);
}

Changes operator+(Changes a, const Changes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double p50(const json& run) {
  return run["latency"]["itl_ms"]["p50"];
}

double spread(const json& run) {
  return run["latency"]["itl_ms"]["max"].get<double>() - p50(run);
}

/// Of all tokens' time.
double share_of(const json& run, const std::string& cause) {
  for (const json& each : run["slowdown"]["causes"]) {
    if (each["cause"] == cause) {
      return each["share"];
    }
  }
  return 0;
}

/// The hottest that a sensor's node was, and in the last row.
struct Heat {
  double most = -300, end = -300;
};
Heat heat(const json& run, const char* node) {
  Heat heat;
  for (const json& row : run["timeline"]) {
    heat.end = row["temperature_c"][node];
    heat.most = std::max(heat.most, heat.end);
  }
  return heat;
}

/// E1: "DMA makes tokens jitter by 40 ms": it does not, the driver's core does.
TEST(SocLessons, E1TheDriversCoreCostsAndDmaDoesNot) {
  const Changes cut = {"model.layers=1", "model.vocabulary=4096", "workload.prompt=16",
                       "workload.generate=16"};
  const auto with = [&](const std::string& masters) {
    return run("rk3588_llama8b.yaml", cut + Changes{"device.masters=[" + masters + "]"});
  };
  const double none = p50(with(""));
  EXPECT_LT(p50(with("{master: wifi_mt7925_868m}")), 1.01 * none);
  EXPECT_GT(p50(with("{master: {extends: wifi_mt7925_868m, radio: {core: 0}}}")), 1.05 * none);
}

/// ... nor on the chip of the claim, whose memory is a twentieth as fast as a token needs it; sleep delays
/// packets.
TEST(SocLessons, E1OnAnEsp32S3JitterIsPacketsThatWaitForABeacon) {
  const Changes cut = {"model.layers=1", "workload.generate=40"};
  const auto with = [&](const std::string& masters) {
    return run("lessons/e1_wifi/esp32_s3.yaml", cut + Changes{"device.masters=[" + masters + "]"});
  };
  const json none = with("");
  const json dma = with("{master: {extends: wifi_esp32s3_30m, radio: {core: 1}}}");
  EXPECT_GT(p50(dma), 1.02 * p50(none));
  EXPECT_LT(p50(dma), 1.3 * p50(none));
  EXPECT_LT(spread(dma), 5) << "ms; 40 are claimed";
  const json sleep = with("{master: {extends: wifi_esp32s3_30m_sleep, radio: {core: 1, rate: 1 Mbit/s}}}");
  EXPECT_NEAR(p50(sleep) / p50(none), 1, 0.02);
  EXPECT_GT(sleep["masters"][0]["delay_ms"]["max"], 40);
  EXPECT_LT(sleep["masters"][0]["latency_ms"]["max"], 5);
}

/// E2: a camera and copies share one DMA engine: copies wait longer, and tokens notice little. (That the
/// camera does is seen in longer runs.)
TEST(SocLessons, E2CopiesWaitOnOneEngine) {
  const Changes cut = {"model.layers=2", "model.vocabulary=4096", "workload.prompt=16",
                       "workload.generate=8"};
  const auto with = [&](const std::string& engine) {
    return run("rk3588_llama8b.yaml",
               cut + Changes{"device.masters=[{master: {extends: camera_4k30_nv12, lines: 8" + engine +
                             "}}, {master: {name: kv_copy, burst: {bytes: 16 MiB, period: 20 ms, deadline: "
                             "20 ms}, lines: 8" +
                             engine + "}}]"});
  };
  const json two = with("");
  const json one = with(", engine: dma0");
  const auto p95 = [](const json& run, int master) {
    return run["masters"][master]["latency_ms"]["p95"].get<double>();
  };
  EXPECT_GT(p95(one, 1), p95(two, 1));
  EXPECT_NEAR(p50(one) / p50(two), 1, 0.03);
}

/// E3: "at 70 C the memory clock halves": it is at its fastest in decode, however hot the chip.
TEST(SocLessons, E3HeatLeavesTheMemorysClockAlone) {
  const json hot =
      run("rk3588_llama8b_hour.yaml",
          {"model.layers=1", "model.vocabulary=4096", "workload.prompt=16", "workload.generate=256",
           "device.masters=[]", "device.thermal.ambient=72 C", "soak.duration=2 s", "soak.sample=200 ms"});
  EXPECT_GT(heat(hot, "soc").most, 72);
  int decoding = 0;
  for (const json& row : hot["timeline"]) {
    if (row["t_s"] > 0.5) {
      EXPECT_EQ(row["limit"]["ddr"], "none") << row["t_s"];
      EXPECT_EQ(row["clock_mhz"]["ddr"], 2112) << row["t_s"];
      ++decoding;
    }
  }
  EXPECT_GT(decoding, 5);
}

/// E5: "200 ms to 3.8 s a token at 72 C": at 72 C heat does nothing yet, and never more than a factor of
/// three.
TEST(SocLessons, E5WhatIsSlowIsPagingAndNotHeat) {
  const std::string chat = "lessons/e5_hot_and_paging/chat.yaml";
  const Changes warm = {"model.layers=4", "workload.generate=64", "device.thermal.ambient=33 C"};
  const json fits = run(chat, warm + Changes{"soak.duration=40 s"});
  EXPECT_NEAR(heat(fits, "soc").most, 71, 3);
  EXPECT_EQ(share_of(fits, "heat"), 0);
  EXPECT_EQ(share_of(fits, "paging"), 0);
  const json long_run = run(chat, warm + Changes{"soak.duration=900 s"});
  EXPECT_GT(share_of(long_run, "heat"), 0.2);
  EXPECT_LT(share_of(long_run, "heat"), 0.7);
  const json pages = run(chat, warm + Changes{"device.os.reserve=3410 MiB", "soak.duration=10 s"});
  EXPECT_GT(share_of(pages, "paging"), 0.8);
  EXPECT_EQ(share_of(pages, "heat"), 0);
}

}  // namespace
}  // namespace kvsim::testing
