// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/lesson_run.h"

#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

std::vector<std::string> settings(const LessonPoint& point) {
  std::vector<std::string> all = {fmt::format("workload.prompt={}", point.depth),
                                  fmt::format("workload.cached={}", point.depth - 1),
                                  fmt::format("workload.threads={}", point.streams),
                                  "engine.kv_layout=" + point.layout, "engine.kv_block_order=shuffled"};
  if (point.map != Map::rk3588) {
    all.push_back(fmt::format("device.controller.mapping.order={}",
                              point.map == Map::bank_row_column ? "bank-row-column" : "row-bank-column"));
    all.push_back(fmt::format("device.controller.mapping.hash={}", point.map == Map::hashed));
  }
  all.insert(all.end(), point.changes.begin(), point.changes.end());
  return all;
}

Traffic attention_of(const nlohmann::json& result) {
  for (const nlohmann::json& op : result["operators"]) {
    if (op["operator"] == "attention") {
      const double bytes = op["read_bytes"];
      const double time = op["time_ms"];
      return {.milliseconds = time,
              .gigabytes_per_second = bytes / time / 1e6,
              .lines = bytes / 64,
              .conflict = op["row_conflict"],
              .miss = op["row_miss"]};
    }
  }
  throw std::runtime_error("no attention among the operators");
}

}  // namespace

LessonFigures measure(const LessonPoint& point) {
  std::vector<std::string> arguments = {
      "run", "scenarios/lessons/" + point.scenario, "--format", "json", "--fidelity", point.fidelity};
  for (const std::string& change : settings(point)) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  const Outcome outcome = kvsim(arguments);
  if (outcome.exit_code != 0) {
    throw std::runtime_error(outcome.err + outcome.out);
  }
  const nlohmann::json result = nlohmann::json::parse(outcome.out);
  LessonFigures figures;
  const nlohmann::json& dram = result["dram"];
  const double time = result["latency"]["itl_ms"]["p50"];
  const double speed = dram["read_gbs"];
  figures.token = {.milliseconds = time,
                   .gigabytes_per_second = speed,
                   .lines = speed * time * 1e6 / 64,
                   .conflict = dram["row_conflict"],
                   .miss = dram["row_miss"]};
  figures.attention = attention_of(result);
  for (const nlohmann::json& item : result["memory"]["items"]) {
    figures.kv_bytes += item["kind"] == "kv" ? item["bytes"].get<double>() : 0;
  }
  return figures;
}

CacheFigures measure_cache(const CachePoint& point) {
  std::vector<std::string> arguments = {"run", "scenarios/lessons/a10_no_cache/recompute.yaml", "--format",
                                        "json"};
  std::vector<std::string> changes = {
      fmt::format("workload.generate={}", point.tokens - 1),
      std::string("engine.kv_cache=") + (point.cached ? "kept" : "recomputed")};
  changes.insert(changes.end(), point.changes.begin(), point.changes.end());
  for (const std::string& change : changes) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  const Outcome outcome = kvsim(arguments);
  if (outcome.exit_code != 0) {
    throw std::runtime_error(outcome.err + outcome.out);
  }
  const nlohmann::json result = nlohmann::json::parse(outcome.out);
  const nlohmann::json& throughput = result["throughput"];
  CacheFigures figures{.computed = throughput["kv_computations"]["tokens"]};
  figures.total = result["latency"]["ttft_ms"].get<double>() +
                  (point.tokens - 1) * 1e3 / throughput["decode_mean_tokens_per_s"].get<double>();
  figures.last = 1e3 / throughput["decode"].back()["tokens_per_s"].get<double>();
  for (const nlohmann::json& op : result["operators"]) {
    figures.read += op["read_bytes"].get<double>();
  }
  for (const nlohmann::json& item : result["memory"]["items"]) {
    const bool scratch = item["name"] == "compute buffer";
    figures.kv_bytes += item["kind"] == "kv" ? item["bytes"].get<double>() : 0;
    figures.scratch_bytes += scratch ? item["bytes"].get<double>() : 0;
  }
  return figures;
}

TileFigures measure_tiles(const TilePoint& point) {
  std::vector<std::string> arguments = {
      "attention", "--device", "rk3588",   "--model", "llama3_8b", "--tokens", std::to_string(point.tokens),
      "--sram",    point.sram, "--format", "json"};
  if (point.naive) {
    arguments.emplace_back("--naive");
  }
  arguments.insert(arguments.end(), point.options.begin(), point.options.end());
  const Outcome outcome = kvsim(arguments);
  if (outcome.exit_code != 0) {
    throw std::runtime_error(outcome.err + outcome.out);
  }
  const nlohmann::json result = nlohmann::json::parse(outcome.out);
  return {.milliseconds = result["time_ms"],
          .mac_bound = result["bound_ms"]["macs"],
          .waiting = result["waiting_ms_per_core"],
          .read = result["dram_bytes"]["read"],
          .written = result["dram_bytes"]["written"],
          .most = result["sram"]["most_bytes"],
          .tile_queries = result["tile"]["queries"],
          .tile_keys = result["tile"]["keys"],
          .spilled_tiles = result["tiles_spilled"],
          .spill_bytes = result["spill_bytes"]};
}

std::string name_of(Map map) {
  switch (map) {
    case Map::rk3588:
      return "RK3588's masks";
    case Map::row_bank_column:
      return "row-bank-column";
    case Map::hashed:
      return "the same, XOR-hashed";
    case Map::bank_row_column:
      return "bank-row-column";
  }
  return "";
}

}  // namespace kvsim::testing
