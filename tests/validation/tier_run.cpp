// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/tier_run.h"

#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/spec/resolve.h"
#include "tests/support/process.h"
#include "tests/validation/board.h"

namespace kvsim::testing {
namespace {

using Say = std::function<void(const std::string&)>;
using Changes = std::vector<std::string>;

nlohmann::json run_json(const std::vector<std::string>& arguments) {
  const Outcome outcome = kvsim(arguments);
  if (outcome.exit_code != 0) {
    throw std::runtime_error(outcome.err + outcome.out);
  }
  return nlohmann::json::parse(outcome.out);
}

double number(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : 0;
}

Changes joined(Changes a, const Changes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string mib(double bytes) {
  return fmt::format("{:.2f} MiB", bytes / 1048576);
}

/// With the claim's own 40 MB/s: a faster clock, reads that overlap, and no gaps.
const Changes kClaimedNand = {"device.storage.link.data_rate=104 MT/s",
                              "device.storage.link.packet_overhead=200 B",
                              "device.storage.flash.cache_read=true"};

void d1(const Say& say) {
  say("| tokens in the cache | 52 MHz | read per token | 104 MHz, reads overlapped | all in memory |\n"
      "|---|---|---|---|---|");
  for (const int depth : {256, 512, 640, 1024, 2048}) {
    const TierRun slow = measure_tiers_run("d1_spi_nand", at_depth(depth));
    const TierRun fast = measure_tiers_run("d1_spi_nand", joined(at_depth(depth), kClaimedNand));
    const TierRun memory =
        measure_tiers_run("d1_spi_nand", joined(at_depth(depth), {"engine.kv_tiers=none"}));
    say(fmt::format("| {} | {:.0f} ms | {} | {:.0f} ms | {:.0f} ms |", depth, slow.p50, mib(slow.read),
                    fast.p50, memory.p50));
  }
}

struct Row {
  const char* name;
  Changes changes;
};

const std::vector<Row>& d2_rows() {
  static const Changes kMapped = {"engine.kv_tiers.through=mapped"};
  static const std::vector<Row> kRows = {
      {"direct, prefetch", {}},
      {"direct, no prefetch", {"engine.kv_tiers.prefetch=0"}},
      {"mapped, read-ahead, locked, WILLNEED", kMapped},
      {"mapped, read-ahead, locked", joined(kMapped, {"engine.kv_tiers.prefetch=0"})},
      {"mapped, read-ahead",
       joined(kMapped, {"engine.kv_tiers.prefetch=0", "engine.kv_tiers.lock_current=false"})},
      {"mapped, no read-ahead, locked",
       joined(kMapped, {"engine.kv_tiers.prefetch=0", "engine.kv_tiers.read_ahead=false"})},
  };
  return kRows;
}

void d2(const Say& say) {
  say("| way | 256 tokens: p50, max | 512 | 1024 | read per token at 512 | major faults at 512 |\n"
      "|---|---|---|---|---|---|");
  for (const Row& row : d2_rows()) {
    std::string line = fmt::format("| {} |", row.name);
    TierRun middle;
    for (const int depth : {256, 512, 1024}) {
      const TierRun run = measure_tiers_run("d2_emmc_blocks", joined(at_depth(depth), row.changes));
      line += fmt::format(" {:.0f}, {:.0f} ms |", run.p50, run.max);
      middle = depth == 512 ? run : middle;
    }
    say(fmt::format("{} {} | {:.0f} |", line, mib(middle.read), middle.faults));
  }
}

void d3(const Say& say) {
  say("| part | random read of 4 KiB | times a random read of DRAM |\n|---|---|---|");
  const double dram = 1e9 * seconds(random_latency(config::load_device("rk3588"), Bytes(64 << 20)));
  for (const char* part : {"emmc_foresee_sld64g", "emmc_samsung_bjtd4r", "emmc_sandisk_dg4016",
                           "sd_sandisk_extreme_a1", "ufs_3_1", "nvme_sm2263xt_1tb", "spi_nand_w25n01gv"}) {
    const double us = random_read_us(part);
    say(fmt::format("| {} | {:.0f} us | {:.0f} |", part, us, us * 1e3 / dram));
  }
  say(fmt::format("\nDRAM: {:.0f} ns", dram));
}

void d4(const Say& say) {
  say("| file | tokens written together | requests' bytes written per token | programmed for each | p50 | "
      "max "
      "| days to the rated endurance |\n|---|---|---|---|---|---|---|");
  for (const char* file : {"in_place", "log"}) {
    for (const int batch : {1, 4, 16, 128}) {
      const TierRun run =
          measure_tiers_run("d4_write_batching", {fmt::format("engine.kv_tiers.file={}", file),
                                                  fmt::format("engine.kv_tiers.write_batch={}", batch)});
      say(fmt::format("| {} | {} | {:.1f} KiB | {:.2f} | {:.0f} ms | {:.0f} ms | {:.0f} |", file, batch,
                      run.written / 1024, run.amplification, run.p50, run.max, run.days));
    }
  }
}

void d5(const Say& say) {
  say("| pieces of | direct | mapped |\n|---|---|---|");
  for (const char* extent : {"none", "1 MiB", "256 KiB", "64 KiB", "16 KiB", "4 KiB"}) {
    std::string line = fmt::format("| {} |", extent);
    for (const char* way : {"direct", "mapped"}) {
      const TierRun run =
          measure_tiers_run("d5_preallocated_image",
                            {fmt::format("engine.kv_tiers.extent={}", extent),
                             fmt::format("engine.kv_tiers.through={}", way), "engine.kv_tiers.prefetch=0"});
      line += fmt::format(" {:.0f} ms |", run.p50);
    }
    say(line);
  }
}

void c11(const Say& say) {
  say("| tokens | SRAM: share, a block | DRAM | eMMC | read from DRAM | p50 | without SRAM |\n"
      "|---|---|---|---|---|---|---|");
  for (const int depth : {64, 512, 1000, 1200, 4096}) {
    const TierRun run = measure_tiers_run("c11_three_tiers", at_depth(depth));
    const TierRun without =
        measure_tiers_run("c11_three_tiers", joined(at_depth(depth), {"engine.kv_tiers.sram=0 B"}));
    std::string line = fmt::format("| {} |", depth);
    for (std::size_t tier = 0; tier < 3; ++tier) {
      line += fmt::format(" {:.1f} %, {:.1f} us |", 100 * run.shares[tier], run.latencies[tier]);
    }
    say(fmt::format("{} {:.2f} GB/s | {:.1f} ms | {:.1f} ms |", line, run.dram_read, run.p50, without.p50));
  }
}

}  // namespace

std::vector<std::string> at_depth(int tokens) {
  return {fmt::format("workload.prompt={}", tokens), fmt::format("workload.cached={}", tokens - 1)};
}

TierRun measure_tiers_run(const std::string& scenario, const std::vector<std::string>& changes) {
  std::vector<std::string> arguments = {"run", fmt::format("scenarios/lessons/{}/chat.yaml", scenario),
                                        "--format", "json"};
  for (const std::string& change : changes) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  const nlohmann::json json = run_json(arguments);
  if (json["latency"].is_null()) {
    throw std::runtime_error(json["verdict"]["message"].get<std::string>());
  }
  TierRun run;
  run.p50 = json["latency"]["itl_ms"]["p50"];
  run.max = json["latency"]["itl_ms"]["max"];
  run.dram_read = json["dram"]["read_gbs"];
  const nlohmann::json& storage = json["storage"];
  if (storage.is_null()) {
    return run;
  }
  run.read = storage["read_bytes_per_token"];
  run.written = storage["write_bytes_per_token"];
  run.hit = storage["hit_share"];
  run.stall = storage["stall_share"];
  run.faults = storage["major_faults_per_token"];
  run.amplification = number(storage["waf"]);
  run.days = number(storage["days_to_endurance"]);
  for (const nlohmann::json& tier : storage["tiers"]) {
    run.shares.push_back(tier["hit_share"]);
    run.latencies.push_back(tier["latency_us"]);
  }
  return run;
}

double random_read_us(const std::string& part) {
  const nlohmann::json json = run_json(
      {"storage", "bench", "--part", part, "--rw", "randread", "--runtime", "1s", "--format", "json"});
  return json["jobs"][0]["read"]["clat_ns"]["mean"].get<double>() / 1e3;
}

void tell_tier_lesson(const std::string& lesson, const Say& say) {
  static const std::map<std::string, std::pair<const char*, void (*)(const Say&)>> kLessons = {
      {"c11", {"three tiers: Qwen2.5 0.5B on RK3588", c11}},
      {"d1", {"Qwen2.5 0.5B on i.MX8M Mini with serial NAND", d1}},
      {"d2", {"TinyLlama on RK3588 with eMMC, by way and depth", d2}},
      {"d3", {"random reads of 4 KiB", d3}},
      {"d4", {"TinyLlama on RK3588 with eMMC: what is written", d4}},
      {"d5", {"a file in pieces", d5}}};
  const auto& [title, tell] = kLessons.at(lesson);
  say(fmt::format("\n## {}: {}\n", lesson, title));
  tell(say);
}

}  // namespace kvsim::testing
