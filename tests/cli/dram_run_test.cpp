// SPDX-License-Identifier: Apache-2.0
// `kvsim dram run` and `bench` as a user meets them.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Reads and writes over a few rows, some in order, some not.
std::string trace(int requests) {
  std::string text;
  for (int i = 0; i < requests; ++i) {
    const int line = i % 3 == 0 ? i : (i * 7919) % 65536;
    char request[32];
    std::snprintf(request, sizeof request, "%c 0x%x\n", i % 5 == 0 ? 'W' : 'R', line * 64);
    text += request;
  }
  return text;
}

struct DramRun : ::testing::Test {
  Outcome run(const std::string& text, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments = {"dram",        "run",     "--part",
                                          "lpddr4-3200", "--trace", folder.file("t.txt", text)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return kvsim(arguments);
  }

  TemporaryFolder folder;
};

TEST_F(DramRun, OddPartsAreNotedOnce) {
  const std::string odd = folder.file("odd.yaml", "extends: lpddr4-3200\ntiming: {tFAW: 63 tCK}\n");
  const Outcome outcome = run(trace(100), {"--part", odd});
  EXPECT_EQ(outcome.exit_code, 2) << "given twice";
  const Outcome noted =
      kvsim({"dram", "run", "--part", odd, "--trace", folder.file("n.txt", trace(100)), "--format", "json"});
  EXPECT_EQ(noted.exit_code, 0);
  EXPECT_TRUE(json::accept(noted.out));
  EXPECT_EQ(noted.err, "note: odd: tFAW, 63 tCK, is less than 4 tRRD, 16 tCK each, and never binds\n");
  EXPECT_EQ(run(trace(100)).err, "");
}

TEST_F(DramRun, SerialPartsAreServedButHaveNoCommands) {
  const std::string file = folder.file("p.txt", trace(2000));
  const auto psram = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"dram", "run", "--part", "psram_aps6408l_esp32s3", "--trace", file};
    all.insert(all.end(), more.begin(), more.end());
    return kvsim(all);
  };
  const json result = json::parse(psram({"--format", "json"}).out);
  EXPECT_NEAR(result["bandwidth_gbs"].get<double>(), 0.087, 0.003);
  double sum = 0;
  for (const auto& [name, share] : result["bus"].items()) {
    sum += share.get<double>();
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_THAT(psram({"--commands", folder.file("c.csv", "")}).err, HasSubstr("has no DRAM commands"));
  EXPECT_THAT(psram({"--fidelity", "train"}).err, HasSubstr("which has no row trains"));
  EXPECT_THAT(psram({"--refresh", "per_bank"}).err, HasSubstr("has no refresh of one bank"));
}

TEST_F(DramRun, ShortRunsHaveATime) {
  EXPECT_THAT(run("R 0x0\n").out, HasSubstr("simulated       46.88 ns\n"));
}

TEST_F(DramRun, JsonHasTheKeysOfItsContract) {
  const Outcome outcome = run(trace(5000), {"--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["requests"], 5000);
  for (const char* key : {"seconds_simulated", "bandwidth_gbs", "mean_read_latency_ns", "cpu_seconds",
                          "requests_per_cpu_second"}) {
    EXPECT_GT(result[key].get<double>(), 0) << key;
  }
  EXPECT_NEAR(result["row_hit"].get<double>() + result["row_miss"].get<double>() +
                  result["row_conflict"].get<double>(),
              1, 1e-9);
  EXPECT_NEAR(result["bandwidth_gbs"].get<double>(),
              5000 * 64 / result["seconds_simulated"].get<double>() / 1e9, 1e-6);
  double bus = 0;
  for (const auto& [name, share] : result["bus"].items()) {
    bus += share.get<double>();
  }
  EXPECT_NEAR(bus, 1, 1e-12);
  EXPECT_EQ(result["banks"].size(), 8U);
}

/// Lines a whole row of each bank apart: one bank by turns, unless the row is in the bank's hash.
TEST_F(DramRun, AHashSpreadsRowsOfOneBank) {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    char request[32];
    std::snprintf(request, sizeof request, "R 0x%x\n", i % 16000 * 8 * 4096);  // 8 banks of rows of 4 KiB
    text += request;
  }
  const auto bandwidth = [&](const char* mapping) {
    return json::parse(run(text, {"--format", "json", "--mapping", mapping}).out)["bandwidth_gbs"]
        .get<double>();
  };
  EXPECT_GT(bandwidth("row-bank-column-xor"), 4 * bandwidth("row-bank-column"));
}

TEST_F(DramRun, AMappingFileHasBitsAndNoOrder) {
  const std::string file = folder.file("m.yaml", "order: row-bank-column\n");
  const Outcome refused = run(trace(10), {"--mapping", file});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("an order is given by its name"));
  const Outcome hashed = run(trace(10), {"--mapping", folder.file("h.yaml", "hash: true\n")});
  EXPECT_EQ(hashed.exit_code, 2);
  EXPECT_THAT(hashed.err, HasSubstr("h.yaml: hash: is of an order by name"));
  const std::string shifted = "column: [6-17]\nbank: [0-2]\nrow: [18-31, 3, 4]\n";
  const Outcome bad = run(trace(10), {"--mapping", folder.file("b.yaml", shifted)});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_EQ(std::count(bad.err.begin(), bad.err.end(), '\n'), 3) << "one for each coordinate: " << bad.err;
}

TEST_F(DramRun, ItsCommandsAreLegal) {
  for (const char* part : {"lpddr4-3200", "lpddr4x_4266_8gb", "lpddr5_6400_16gb", "lpddr5x_8533_16gb",
                           "lpddr3_1600", "ddr4_3200", "ddr5_6400"}) {
    const std::string commands = folder.path("c.csv");
    for (const std::vector<std::string>& options : {std::vector<std::string>{},
                                                    {"--page-policy", "closed"},
                                                    {"--queue", "bank:8"},
                                                    {"--page-policy", "adaptive"},
                                                    {"--power-down", "20ns"},
                                                    {"--power-down", "20ns", "--self-refresh", "200ns"},
                                                    {"--postponed-refreshes", "4"},
                                                    {"--mapping", "bank-row-column"},
                                                    {"--mapping", "row-bank-column-xor"}}) {
      std::vector<std::string> all = {"--part", part, "--commands", commands};
      all.insert(all.end(), options.begin(), options.end());
      std::vector<std::string> arguments = {"dram", "run", "--trace", folder.file("t.txt", trace(20000))};
      arguments.insert(arguments.end(), all.begin(), all.end());
      const Outcome played = kvsim(arguments);
      ASSERT_EQ(played.exit_code, 0) << played.err;
      const Outcome checked = kvsim({"dram", "check", commands, "--part", part});
      EXPECT_EQ(checked.exit_code, 0) << part << checked.out << checked.err;
      EXPECT_THAT(checked.out, HasSubstr("violations  0\n"));
    }
  }
}

TEST_F(DramRun, EnergyAddsUp) {
  const json result = json::parse(run(trace(20000), {"--format", "json", "--power-down", "50ns"}).out);
  const json& energy = result["energy"];
  double sum = 0;
  for (const char* kind : {"by_command", "background"}) {
    for (const auto& [part, millijoules] : energy[kind].items()) {
      sum += millijoules.get<double>();
    }
  }
  const double total = energy["total_mj"];
  EXPECT_NEAR(sum, total, 1e-9 * total);
  EXPECT_NEAR(energy["by_command"]["read"].get<double>(), result["reads"].get<double>() * 4.337e-6, 1e-9);
  EXPECT_NEAR(energy["by_command"]["activate"].get<double>(), result["activates"].get<double>() * 2.409e-6,
              1e-9);
  EXPECT_NEAR(energy["average_mw"], total / result["seconds_simulated"].get<double>(), 1e-6 * total / 1e-6);
  EXPECT_NEAR(energy["pj_per_bit"], total * 1e9 / (20000 * 512), 1e-6);
  double rails = 0;
  for (const auto& [rail, power] : energy["rail_mw"].items()) {
    rails += power.get<double>();
  }
  EXPECT_EQ(energy["rail_mw"].size(), 3U);
  EXPECT_NEAR(rails, energy["average_mw"], 0.002 * rails);
}

/// Mean power over the rows of a CSV, each as long as it lasts, is the run's.
TEST_F(DramRun, PowerOverTimeIsTheEnergyInPieces) {
  const std::string csv = folder.path("power.csv");
  for (const char* fidelity : {"exact", "train"}) {
    const Outcome outcome = run(trace(20000), {"--format", "json", "--power-over-time", csv, "--fidelity",
                                               fidelity, "--power-interval", "7 us"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json result = json::parse(outcome.out);
    std::ifstream file(csv);
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(
        line,
        "time_ns,total_mw,activate_mw,read_mw,write_mw,refresh_mw,background_mw,VDD1_mw,VDD2_mw,VDDQ_mw");
    std::vector<std::array<double, 3>> rows;  // time, all, rails
    while (std::getline(file, line)) {
      std::array<double, 10> cells{};
      std::istringstream text(line);
      for (double& cell : cells) {
        text >> cell;
        text.get();
      }
      rows.push_back({cells[0], cells[1], cells[7] + cells[8] + cells[9]});
      EXPECT_NEAR(cells[1], cells[2] + cells[3] + cells[4] + cells[5] + cells[6], 0.004);
      EXPECT_NEAR(cells[1], rows.back()[2], 0.002 * cells[1]);
    }
    const double end = result["seconds_simulated"].get<double>() * 1e9;
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(std::ceil(end / 7000)));
    double millijoules = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i][0], 7000.0 * static_cast<double>(i));
      millijoules += rows[i][1] * ((i + 1 < rows.size() ? rows[i + 1][0] : end) - rows[i][0]) * 1e-9;
    }
    EXPECT_NEAR(millijoules, result["energy"]["total_mj"], 1e-4 * millijoules);
  }
}

TEST_F(DramRun, PowerOptionsAreChecked) {
  const auto refused = [&](const std::vector<std::string>& options, const std::string& message) {
    const Outcome outcome = run(trace(10), options);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(message));
  };
  const Outcome none = run(trace(10), {"--power-down", "none", "--self-refresh", "none"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  refused({"--power-down", "never"}, "--power-down: 'never' is written none here");
  refused({"--power-down", "1"}, "--power-down: '1' has no unit");
  refused({"--power-down", "2s"}, "--power-down: '2s' is not up to 1 s");
  refused({"--power-down", "2us", "--self-refresh", "1us"},
          "--self-refresh: '1 us' is not above the 2 us after which a rank powers down");
  refused({"--self-refresh", "1us", "--refresh", "none"}, "--self-refresh: a rank that is not refreshed");
  refused({"--temperature", "126 C"}, "--temperature: '126 C' is not from -40 C to 125 C");
  refused({"--postponed-refreshes", "9"}, "--postponed-refreshes: '9' is not a whole number from 0 to 8");
  refused({"--power-over-time", folder.path("p.csv"), "--power-interval", "0 ns"}, "--power-interval: ");
  refused({"--power-over-time", "/nowhere/p.csv"}, "cannot write /nowhere/p.csv: No such file");
  refused({"--power-over-time", folder.path(".")}, "it exists and is not a regular file");
  refused({"--power-interval", "1 us"}, "--power-interval: is that of --power-over-time, which is not given");
}

TEST_F(DramRun, HeatCostsRefreshes) {
  const json cool = json::parse(run(trace(20000), {"--format", "json"}).out);
  const json hot = json::parse(run(trace(20000), {"--format", "json", "--temperature", "90 C"}).out);
  EXPECT_NEAR(hot["refreshes"].get<double>() / hot["seconds_simulated"].get<double>(),
              2 * cool["refreshes"].get<double>() / cool["seconds_simulated"].get<double>(),
              0.05 * 2 * cool["refreshes"].get<double>() / cool["seconds_simulated"].get<double>());
}

TEST_F(DramRun, ABinaryTraceIsTheSameAsText) {
  std::string binary;
  for (std::uint64_t address : {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{1 << 20}}) {
    for (int byte = 0; byte < 8; ++byte) {
      binary += static_cast<char>(address << 1 >> (8 * byte) & 0xff);
    }
  }
  json text = json::parse(run("R 0x0\nR 0x40\nR 0x100000\n", {"--format", "json"}).out);
  json bytes = json::parse(run(binary, {"--format", "json"}).out);
  for (const char* key : {"cpu_seconds", "requests_per_cpu_second"}) {
    text.erase(key);
    bytes.erase(key);
  }
  EXPECT_EQ(text, bytes);
}

TEST_F(DramRun, AMappingFileSaysWhereBitsGo) {
  const std::string named = run(trace(3000), {"--format", "json", "--mapping", "bank-row-column"}).out;
  const std::string file =
      folder.file("map.yaml",
                  "column: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n"
                  "row: [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27]\n"
                  "bank: [28, 29, 30]\n");
  const Outcome mapped = run(trace(3000), {"--format", "json", "--mapping", file});
  ASSERT_EQ(mapped.exit_code, 0) << mapped.err;
  EXPECT_EQ(json::parse(named)["seconds_simulated"], json::parse(mapped.out)["seconds_simulated"]);
  const std::string holes = folder.file("holes.yaml", "column: [0, 1, 2]\nrow: [12]\nbank: [28, 29, 30]\n");
  const Outcome refused = run(trace(10), {"--mapping", holes});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("column: has 3 bits"));
}

TEST_F(DramRun, WrongInputEndsWithTwo) {
  const std::string good = trace(10);
  EXPECT_EQ(run("R 0x80000000\n").exit_code, 2);  // 2 GiB, the end of the part
  EXPECT_THAT(run("R 0x80000000\n").err, HasSubstr("beyond the memory's end, 0x80000000"));
  EXPECT_EQ(run("R 0x0\nnonsense\n").exit_code, 2);
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--queue", "shared"},
                                                  {"--queue", "shared:0"},
                                                  {"--queue", "bank:x"},
                                                  {"--queue", "pool:8"},
                                                  {"--fidelity", "auto"},
                                                  {"--mapping", "row-column"},
                                                  {"--format", "yaml"},
                                                  {"--page-policy", "shut"},
                                                  {"--refresh", "never"},
                                                  {"--part", "lpddr9"},
                                                  {"--nonsense"},
                                                  {"extra"}}) {
    const Outcome outcome = run(good, options);
    EXPECT_EQ(outcome.exit_code, 2) << options[0];
    EXPECT_NE(outcome.err, "") << options[0];
    EXPECT_EQ(outcome.out, "") << options[0];
  }
  const Outcome commands = run(good, {"--fidelity", "train", "--commands", folder.path("never.csv")});
  EXPECT_EQ(commands.exit_code, 2);
  EXPECT_EQ(folder.entries(), 1U) << "nothing but the trace";
  EXPECT_EQ(kvsim({"dram", "run", "--part", "lpddr4-3200"}).exit_code, 2);
  EXPECT_EQ(kvsim({"dram", "walk"}).exit_code, 2);
  EXPECT_EQ(kvsim({"dram"}).exit_code, 2);
  EXPECT_EQ(kvsim({"dram", "--help"}).exit_code, 0);
  EXPECT_EQ(kvsim({"dram", "run", "--help"}).exit_code, 0);
}

TEST_F(DramRun, AnEmptyTraceIsServedAtOnce) {
  const Outcome outcome = run("", {"--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::StartsWith("note: "));
  EXPECT_THAT(outcome.err, HasSubstr("t.txt: has no requests\n"));
  EXPECT_EQ(json::parse(outcome.out)["requests"], 0);
  EXPECT_EQ(json::parse(outcome.out)["bandwidth_gbs"], 0);
  EXPECT_EQ(run("").exit_code, 0);
}

TEST_F(DramRun, BenchStaysBelowItsBounds) {
  const Outcome outcome = kvsim({"dram", "bench", "--part", "lpddr4-3200", "--requests", "30000", "--streams",
                                 "2", "--read-share", "0.8", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  ASSERT_EQ(result["patterns"].size(), 5U);
  for (const json& pattern : result["patterns"]) {
    EXPECT_LE(pattern["bandwidth_gbs"], pattern["bound_gbs"]) << pattern["pattern"];
    EXPECT_GT(pattern["bandwidth_gbs"], 0) << pattern["pattern"];
    EXPECT_LT(pattern["load"].front()["mean_latency_ns"], pattern["load"].back()["mean_latency_ns"]);
  }
  EXPECT_EQ(kvsim({"dram", "bench", "--part", "lpddr4-3200", "--pattern", "zigzag"}).exit_code, 2);
  EXPECT_EQ(kvsim({"dram", "bench", "--part", "lpddr4-3200", "--read-share", "1.5"}).exit_code, 2);
  EXPECT_EQ(kvsim({"dram", "bench", "--part", "lpddr4-3200", "--streams", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace kvsim::testing
