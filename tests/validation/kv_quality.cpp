// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/kv_quality.h"

#include <cstdlib>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using nlohmann::json;

constexpr const char* kTiny = "tests/data/tiny/";

std::string in_source(const std::string& path) {
  return std::string(KVSIM_SOURCE_DIR) + "/" + path;
}

/// What kvsim finds for each specification, in their order.
json measured(const std::string& weights, const std::vector<std::string>& specs) {
  std::vector<std::string> arguments = {"quality",
                                        "--model",
                                        fmt::format("{}tiny-{}.gguf", kTiny, weights),
                                        "--tokens",
                                        fmt::format("{}sequences.jsonl", kTiny),
                                        "--format",
                                        "json",
                                        "--kv"};
  arguments.insert(arguments.end(), specs.begin(), specs.end());
  const Outcome outcome = kvsim(arguments);
  if (outcome.exit_code != 0) {
    fmt::print("{}", outcome.err);
    std::exit(1);
  }
  return json::parse(outcome.out)["kv"];
}

KvQualityRow expected_row(const std::string& engine, const std::string& spec, const json& figures) {
  return {.spec = fmt::format("{} ({})", spec, engine),
          .expected_perplexity = figures["perplexity"],
          .expected_recalled = figures["recall"][0]};
}

}  // namespace

std::vector<KvQualityRow> kv_quality_rows() {
  std::map<std::string, std::pair<std::vector<std::string>, std::vector<KvQualityRow>>> by_weights;
  const auto add = [&](const std::string& weights, const std::string& spec, const KvQualityRow& row) {
    by_weights[weights].first.push_back(spec);
    by_weights[weights].second.push_back(row);
  };
  const json torch = json::parse(std::ifstream(in_source(std::string(kTiny) + "sequences.reference.json")));
  for (const char* type : {"f32", "f16"}) {
    add("f32", type, expected_row("PyTorch", type, torch[fmt::format("kv_{}", type)]));
  }
  std::ifstream lines(in_source(std::string(kTiny) + "llamacpp.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    const std::string weights = row.value("weights", "f32");
    const std::string k = row["k"], v = row["v"];
    const std::string spec = k == v ? k : fmt::format("k={},v={}", k, v);
    add(weights, spec, expected_row(fmt::format("llama.cpp, weights {}", weights), spec, row));
  }
  std::vector<KvQualityRow> rows;
  for (auto& [weights, asked] : by_weights) {
    const json found = measured(weights, asked.first);
    for (std::size_t i = 0; i < asked.second.size(); ++i) {
      KvQualityRow& row = rows.emplace_back(asked.second[i]);
      row.perplexity = found[i]["perplexity"];
      row.recalled = found[i]["recalled"];
    }
  }
  return rows;
}

}  // namespace kvsim::testing
