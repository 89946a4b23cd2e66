// SPDX-License-Identifier: Apache-2.0
// Long checks (make validate): whole runs in train fidelity against auto, predictions against measured
// boards, random DRAM traffic through the checker (with the argument `legality` only that), the trained model
// beside two other engines (with `quality` only that), storage parts beside measured devices (with `storage`
// only that), the memory's clocks (with `clocks` only that), boards' temperatures and clocks beside logs
// (with `heat` only that), and devices with less memory than the model (with `paging` only that). Prints a
// table; ends with 1 if a figure lies outside its bound.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/spec/dram_rate.h"
#include "configs/spec/dram_temperature.h"
#include "configs/spec/grammar.h"
#include "configs/spec/resolve.h"
#include "tests/support/process.h"
#include "tests/validation/board.h"
#include "tests/validation/heat.h"
#include "tests/validation/kv_quality.h"
#include "tests/validation/legality.h"
#include "tests/validation/paging.h"
#include "tests/validation/storage.h"

namespace kvsim::testing {
namespace {

using Texts = std::vector<std::string>;

class Table {
 public:
  void title(const std::string& text) { fmt::print("\n{}\n", text); }
  /// A predicted figure beside the true one; `bound` is the allowed relative error.
  void row(const std::string& what, double expected, double got, double bound) {
    const double error = got / expected - 1;
    const bool good = std::abs(error) <= bound;
    failed_ = failed_ || !good;
    fmt::print("  {:<58} {:>9.3f} {:>9.3f}  {:>+6.1f} % (bound {:.0f} %){}\n", what, expected, got,
               100 * error, 100 * bound, good ? "" : "   <-- OUTSIDE");
    std::fflush(stdout);
  }
  /// The same of a figure whose order of size counts.
  void factor(const std::string& what, double expected, double got, double most) {
    const double ratio = std::max(got / expected, expected / got);
    const bool good = ratio <= most;
    failed_ = failed_ || !good;
    fmt::print("  {:<58} {:>9.3f} {:>9.3f}  factor {:.2f} (bound {:.0f}){}\n", what, expected, got, ratio,
               most, good ? "" : "   <-- OUTSIDE");
    std::fflush(stdout);
  }
  /// A figure whose difference counts.
  void difference(const std::string& what, double expected, double got, double bound) {
    const bool good = std::abs(got - expected) <= bound;
    failed_ = failed_ || !good;
    fmt::print("  {:<58} {:>9.3f} {:>9.3f}  {:>+6.2f} (bound {:.3g}){}\n", what, expected, got,
               got - expected, bound, good ? "" : "   <-- OUTSIDE");
    std::fflush(stdout);
  }
  /// The same of a share in percent; `bound` is in points.
  void points(const std::string& what, double expected, double got, double bound) {
    const bool good = std::abs(got - expected) <= bound;
    failed_ = failed_ || !good;
    fmt::print("  {:<58} {:>9.3f} {:>9.3f}  {:>+6.1f} points (bound {:.0f}){}\n", what, expected, got,
               got - expected, bound, good ? "" : "   <-- OUTSIDE");
    std::fflush(stdout);
  }
  /// Beside a figure that it is not held to.
  static void told(const std::string& what, double expected, double got) {
    fmt::print("  {:<58} {:>9.3f} {:>9.3f}  {:>+6.1f} % (no bound)\n", what, expected, got,
               100 * (got / expected - 1));
    std::fflush(stdout);
  }
  void claim(const std::string& what, bool holds) {
    failed_ = failed_ || !holds;
    fmt::print("  {:<58} {}\n", what, holds ? "holds" : "DOES NOT HOLD");
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

nlohmann::json run(const Texts& changes, const std::string& fidelity = "auto") {
  Texts arguments = {"run", "scenarios/rk3588_llama8b.yaml", "--format", "json", "--fidelity", fidelity};
  for (const std::string& change : changes) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  const Outcome outcome = kvsim(arguments);
  if (outcome.exit_code != 0) {
    fmt::print("{}", outcome.err);
  }
  return nlohmann::json::parse(outcome.out);
}

double mean_speed(const Texts& changes) {
  return run(changes)["throughput"]["decode_mean_tokens_per_s"];
}

void board_memory(Table& table) {
  const config::DeviceSpec device = config::load_device("rk3588");
  table.title("RK3588, LPDDR4X at 2112 MHz: memory (sbc-bench results/1Xuf1O1.txt)     measured simulated");
  table.row("one Cortex-A76 reads, GB/s", 16.81, read_bandwidth(device, 1).count() / 1e9, 0.15);
  table.row("random read latency in 4 MiB, ns beyond L1", 37.3,
            nanoseconds(random_latency(device, Bytes(4 << 20))), 0.1);
  table.row("random read latency in 16 MiB, ns beyond L1", 101.2,
            nanoseconds(random_latency(device, Bytes(16 << 20))), 0.1);
  table.row("random read latency in 64 MiB, ns beyond L1", 115.4,
            nanoseconds(random_latency(device, Bytes(64 << 20))), 0.1);
}

void board_decode(Table& table) {
  table.title(
      "RK3588, CPU decode (field rows of llama.cpp and its derivatives), tokens/s    measured simulated");
  const auto at = [](const char* model, const char* format, const char* threads) {
    return Texts{fmt::format("model={}", model), fmt::format("engine.weights={}", format),
                 fmt::format("workload.threads={}", threads), "workload.prompt=128", "workload.generate=64"};
  };
  table.row("F0467 Qwen3-0.6B Q4_0, 4 threads", 45.93, mean_speed(at("qwen3_0_6b", "Q4_0", "4")), 0.25);
  table.row("F0473 Qwen3-1.7B Q4_0, 4 threads", 20.29, mean_speed(at("qwen3_1_7b", "Q4_0", "4")), 0.25);
  const double four = mean_speed(at("phi3_mini", "IQ4_XS", "4"));
  const double eight = mean_speed(at("phi3_mini", "IQ4_XS", "8"));
  table.row("F1610 Phi-3-mini IQ4_XS, 4 threads", 7.1, four, 0.25);
  table.row("F1612 Phi-3-mini IQ4_XS, 8 threads (little cores included)", 3.81, eight, 0.25);
  table.claim("eight threads are slower than four", eight < four);
}

/// The memory's clock, its timings at that clock, and what of the way to it are the memory's clocks.
void memory_clocks(Table& table) {
  const config::DeviceSpec fast = config::load_device("rk3588");
  const auto at = [&](std::int64_t megahertz) {
    return config::at_data_rate(fast, config::DataRate(Hertz(2 * megahertz * 1'000'000)));
  };
  table.title(
      "RK3588 with its memory at 528 MHz: Orange Pi 5 under dmc_ondemand (sbc-bench results, tinymembench)");
  table.row("* random read latency in 64 MiB, ns beyond L1", 227.4,
            nanoseconds(random_latency(at(528), Bytes(64 << 20))), 0.15);
  table.row("  random read latency in 16 MiB, ns beyond L1", 192.6,
            nanoseconds(random_latency(at(528), Bytes(16 << 20))), 0.15);
  table.row("  random read latency in 4 MiB, ns beyond L1", 69.6,
            nanoseconds(random_latency(at(528), Bytes(4 << 20))), 0.15);
  table.title("RK3588 at each of its memory clocks: decode of Qwen3-1.7B Q4_0, tokens/s, below its roofline");
  double before = 0;
  for (const std::int64_t megahertz : {528, 1068, 1560, 2112}) {
    const config::DeviceSpec device = at(megahertz);
    const Texts changes{
        "model=qwen3_1_7b",
        "engine.weights=Q4_0",
        "workload.prompt=128",
        "workload.generate=32",
        fmt::format("device.dram.data_rate={} MT/s", 2 * megahertz),
        fmt::format("device.dram.timing.read_latency={} tCK", device.dram.timing.read_latency.clocks),
        fmt::format("device.dram.timing.write_latency={} tCK", device.dram.timing.write_latency.clocks),
        fmt::format("device.interconnect.request_latency={} ps",
                    device.interconnect.request_latency.count())};
    const nlohmann::json report = run(changes);
    const double speed = report["throughput"]["decode_mean_tokens_per_s"];
    const double roofline = report["roofline"]["tokens_per_s"];
    table.claim(fmt::format("{} MHz: {:.2f} tokens/s, more than at the clock below, at most {:.2f}",
                            megahertz, speed, roofline),
                speed > before && speed < roofline);
    before = speed;
  }
  table.title("Raspberry Pi 5, 8 GB: a copy with refreshes twice as often, over one with normal ones");
  const config::DeviceSpec pi = config::load_device("raspberry_pi_5");
  const auto copy = [&](double temperature) {
    config::DeviceSpec device = pi;
    device.controller.temperature = Celsius(temperature);
    return load_bandwidth(device, {.copiers = 1}).all.count();
  };
  double normal = 60, twice = 60;
  while (config::refresh_rate(pi.dram, Celsius(normal)) > 1) {
    --normal;
  }
  while (config::refresh_rate(pi.dram, Celsius(twice)) < 2) {
    ++twice;
  }
  table.points("share of the speed, percent (raspberrypi/firmware #1854)", 90.3,
               100 * copy(twice) / copy(normal), 3);
}

void train_against_auto(Table& table) {
  table.title(
      "TinyLlama-1.1B, 512 + 256 tokens, whole: train against auto                    train      auto");
  const Texts tiny = {"model=tinyllama_1_1b", "engine.weights=Q4_K_M"};
  const nlohmann::json train = run(tiny, "train");
  const nlohmann::json automatic = run(tiny);
  for (const char* figure : {"p50", "p95", "max"}) {
    table.row(fmt::format("inter-token latency {}, ms", figure), train["latency"]["itl_ms"][figure],
              automatic["latency"]["itl_ms"][figure], 0.01);
  }
  table.row("time to first token, ms", train["latency"]["ttft_ms"], automatic["latency"]["ttft_ms"], 0.01);

  table.title(
      "Llama-3-8B Q4_K_M, one token: train against auto                               train      auto");
  for (const int depth : {512, 640, 767}) {
    const Texts token = {fmt::format("workload.prompt={}", depth),
                         fmt::format("workload.cached={}", depth - 1), "workload.generate=1"};
    const double truth = run(token, "train")["latency"]["itl_ms"]["p50"];
    const nlohmann::json sampled = run(token);
    const double got = sampled["latency"]["itl_ms"]["p50"];
    const double interval = sampled["fidelity"]["relative_ci"];
    table.row(fmt::format("depth {}, ms", depth), truth, got, 0.01);
    table.claim(fmt::format("the interval of {:.2f} % covers it", 100 * interval),
                std::abs(got - truth) <= interval * got);
  }
}

/// Commands of the controller, of each standard, with policies, ranks, queues and traffic drawn at random.
void dram_legality(Table& table) {
  constexpr std::int64_t kCommands = 10'000'000;
  table.title("DRAM commands of random traffic, by the checker");
  for (const auto& standard : EnumNames<config::DramStandard>::kAll) {
    if (standard.value == config::DramStandard::psram) {
      continue;
    }
    const LegalityCount count = check_standard(standard.value, kCommands);
    std::string kinds;
    for (std::size_t i = 0; i < count.by_command.size(); ++i) {
      kinds += fmt::format(" {} {}", to_string(static_cast<model::Command>(i)), count.by_command[i]);
    }
    table.claim(fmt::format("{}: {} commands of {} controllers, {} violations", standard.name, count.commands,
                            count.controllers, count.violations),
                count.violations == 0);
    fmt::print("   {}\n{}", kinds, count.first.empty() ? "" : fmt::format("    {}\n", count.first));
  }
}

/// Perplexity within 1e-4 relative of the engine's for F32 and F16, within 5e-4 for the other types, whose
/// queries that engine also rounds; recall within 8 answers.
void quality(Table& table) {
  table.title("Trained model by KV type, beside other engines");
  for (const KvQualityRow& row : kv_quality_rows()) {
    const double change = row.perplexity / row.expected_perplexity - 1;
    const bool plain = row.spec.starts_with("f32 ") || row.spec.starts_with("f16 ");
    table.claim(
        fmt::format("{:<36} {:.6f} {:.6f} {:+.1e}  {} {}", row.spec, row.expected_perplexity, row.perplexity,
                    change, row.expected_recalled, row.recalled),
        std::abs(change) <= (plain ? 1e-4 : 5e-4) && std::abs(row.recalled - row.expected_recalled) <= 8);
  }
}

/// Rows that set parameters are marked; the others are predicted.
void storage(Table& table) {
  measure_storage([&](const std::string& text) { table.title(text + "; * sets the part"); },
                  [&](const StorageRow& row) {
                    const std::string what = (row.sets_part ? "* " : "  ") + row.what;
                    row.is_factor ? table.factor(what, row.measured, row.simulated, row.bound)
                                  : table.row(what, row.measured, row.simulated, row.bound);
                  });
}

void heat(Table& table) {
  measure_heat(
      {.title = [&](const std::string& text) { table.title(text); },
       .row = [&](const HeatRow& row) { table.difference(row.what, row.measured, row.simulated, row.bound); },
       .claim = [&](const std::string& what, bool holds) { table.claim(what, holds); }});
}

void paging(Table& table) {
  measure_paging([&](const std::string& text) { table.title(text + "; * sets a parameter"); },
                 [&](const PagingRow& row) {
                   const std::string what = (row.sets ? "* " : "  ") + row.what;
                   switch (row.rule) {
                     case PagingRow::Rule::share:
                       return table.row(what, row.measured, row.simulated, row.bound);
                     case PagingRow::Rule::points:
                       return table.points(what, row.measured, row.simulated, row.bound);
                     case PagingRow::Rule::told:
                       return Table::told(what, row.measured, row.simulated);
                   }
                 },
                 [&](const std::string& what, bool holds) { table.claim(what, holds); });
}

}  // namespace
}  // namespace kvsim::testing

int main(int argc, char** argv) {
  kvsim::testing::Table table;
  if (argc > 1 && std::string(argv[1]) == "quality") {
    kvsim::testing::quality(table);
    return table.failed() ? 1 : 0;
  }
  if (argc > 1 && std::string(argv[1]) == "storage") {
    kvsim::testing::storage(table);
    return table.failed() ? 1 : 0;
  }
  if (argc > 1 && std::string(argv[1]) == "heat") {
    kvsim::testing::heat(table);
    return table.failed() ? 1 : 0;
  }
  if (argc > 1 && std::string(argv[1]) == "paging") {
    kvsim::testing::paging(table);
    return table.failed() ? 1 : 0;
  }
  if (argc > 1 && std::string(argv[1]) == "clocks") {
    kvsim::testing::memory_clocks(table);
    return table.failed() ? 1 : 0;
  }
  kvsim::testing::dram_legality(table);
  if (argc > 1 && std::string(argv[1]) == "legality") {
    return table.failed() ? 1 : 0;
  }
  kvsim::testing::board_memory(table);
  kvsim::testing::board_decode(table);
  kvsim::testing::memory_clocks(table);
  kvsim::testing::train_against_auto(table);
  kvsim::testing::quality(table);
  kvsim::testing::storage(table);
  kvsim::testing::heat(table);
  kvsim::testing::paging(table);
  return table.failed() ? 1 : 0;
}
