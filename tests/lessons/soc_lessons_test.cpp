// SPDX-License-Identifier: Apache-2.0
// What the README of lesson E1 concludes still holds, with one or two layers of the models.
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
  const Changes cut = {"model.layers=1", "workload.generate=24"};
  const auto with = [&](const std::string& masters) {
    return run("lessons/e1_wifi/esp32_s3.yaml", cut + Changes{"device.masters=[" + masters + "]"});
  };
  const json none = with("");
  const json dma = with("{master: {extends: wifi_esp32s3_30m, radio: {core: 1}}}");
  EXPECT_GT(p50(dma), 1.02 * p50(none));
  EXPECT_LT(p50(dma), 1.3 * p50(none));
  EXPECT_LT(spread(dma), 5) << "ms; 40 are claimed";
  const json sleep = with("{master: {extends: wifi_esp32s3_30m_sleep, radio: {core: 1, rate: 2 Mbit/s}}}");
  EXPECT_NEAR(p50(sleep) / p50(none), 1, 0.02);
  EXPECT_GT(sleep["masters"][0]["delay_ms"]["max"], 40);
  EXPECT_LT(sleep["masters"][0]["latency_ms"]["max"], 5);
}

}  // namespace
}  // namespace kvsim::testing
