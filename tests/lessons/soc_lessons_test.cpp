// SPDX-License-Identifier: Apache-2.0
// What the READMEs of lessons E1 to E5 conclude still holds, with one or two layers of the models.
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

}  // namespace
}  // namespace kvsim::testing
