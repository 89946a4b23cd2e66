// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/paging.h"

#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using Texts = std::vector<std::string>;
using Title = std::function<void(const std::string&)>;
using Row = std::function<void(const PagingRow&)>;
using Claim = std::function<void(const std::string&, bool)>;
using Rule = PagingRow::Rule;

nlohmann::json run(const std::string& scenario, const Texts& changes) {
  Texts arguments = {"run", scenario, "--format", "json"};
  for (const std::string& change : changes) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  const Outcome outcome = kvsim(arguments);
  check(outcome.exit_code == 0, "a run of the validation goes through");
  return nlohmann::json::parse(outcome.out);
}

double speed(const nlohmann::json& run) {
  return run["throughput"]["decode_mean_tokens_per_s"];
}

double mebibytes(const nlohmann::json& run) {
  return run["storage"]["read_bytes_per_token"].get<double>() / (1 << 20);
}

/// A row of the phone's table.
struct Streamed {
  std::string what;
  Texts changes;
  double tokens_per_second;
  double mebibytes;
  double hits;        ///< percent; 0: not told
  bool sets = false;  ///< the core's rate
  Rule rule = Rule::share;
};

nlohmann::json phone(const Texts& changes) {
  return run("scenarios/oneplus_15r_qwen3_30b.yaml", changes);
}

void streaming(const Title& title, const Row& row, const Claim& claim) {
  title(
      "OnePlus 15R, Qwen3-30B-A3B Q4_K_M, 256 tokens: experts streamed (Helldez/BigMoeOnEdge "
      "docs/benchmarks.md); "
      "popularity and reuse of experts are set from both hit shares together");
  const Streamed rows[] = {
      {"cache 0", {"engine.experts.cache=0 MiB"}, 1.709, 1051, 0},
      {"cache 2000 MiB", {"engine.experts.cache=2000 MiB"}, 2.366, 480, 53.0},
      {"cache 4000 MiB", {}, 3.469, 225, 76.5, true},
      {"cache 4000 MiB, overlap", {"engine.experts.overlap=true"}, 3.983, 225, 0},
      {"cache 2000 MiB, 2 reads in flight",
       {"engine.experts.cache=2000 MiB", "engine.experts.in_flight=2"},
       2.01,
       480,
       0,
       false,
       Rule::told},
      {"cache 4000 MiB, 2 reads in flight", {"engine.experts.in_flight=2"}, 3.12, 225, 0, false, Rule::told}};
  double cold = 0;
  for (const Streamed& each : rows) {
    const nlohmann::json result = phone(each.changes);
    cold = each.what == "cache 0" ? speed(result) : cold;
    row({.what = each.what + ", tokens/s",
         .measured = each.tokens_per_second,
         .simulated = speed(result),
         .bound = 0.2,
         .rule = each.rule,
         .sets = each.sets});
    row({.what = each.what + ", MiB per token",
         .measured = each.mebibytes,
         .simulated = mebibytes(result),
         .bound = 0.1,
         .rule = each.rule});
    if (each.hits > 0) {
      row({.what = each.what + ", experts found in it, percent",
           .measured = each.hits,
           .simulated = 100 * result["storage"]["experts"]["hit_share"].get<double>(),
           .bound = 5,
           .rule = Rule::points,
           .sets = true});
    }
  }
  const double overlapped = speed(phone({"engine.experts.cache=0 MiB", "engine.experts.overlap=true"}));
  row({.what = "cache 0, overlap, tokens/s", .measured = 1.27, .simulated = overlapped, .rule = Rule::told});
  claim("without a cache overlap gains less than a quarter", overlapped < 1.25 * cold);
}

void mapped_phone(const Title& title, const Row& row) {
  title("The same with all weights mapped (same source); memory for pages is set from its peak RSS");
  const nlohmann::json result = phone({"engine.experts={place: mapped}"});
  const auto& itl = result["latency"]["itl_ms"];
  row({.what = "tokens/s", .measured = 2.0, .simulated = speed(result), .bound = 0.2});
  row({.what = "p50, ms", .measured = 363, .simulated = itl["p50"], .rule = Rule::told});
  row({.what = "p95, ms", .measured = 1073, .simulated = itl["p95"], .rule = Rule::told});
  row({.what = "max over p50",
       .measured = 18.2,
       .simulated = itl["max"].get<double>() / itl["p50"].get<double>(),
       .rule = Rule::told});
}

void pi_zero(const Title& title, const Row& row) {
  title("Raspberry Pi Zero 2W, SmolLM 360M from an SD card (llm-inference.com blog), tokens/s");
  struct Format {
    const char* name;
    double tokens_per_second;
    int tokens;
    bool sets;
  };
  const Format formats[] = {{"F32", 0.015, 3, false}, {"BF16", 0.03, 3, false}, {"Q4_K_M", 2.6, 16, true}};
  for (const Format& format : formats) {
    const nlohmann::json result = run(
        "scenarios/pi_zero_2w_smollm.yaml",
        {fmt::format("engine.weights={}", format.name), fmt::format("workload.generate={}", format.tokens)});
    row({.what = format.name,
         .measured = format.tokens_per_second,
         .simulated = speed(result),
         .bound = 0.25,
         .sets = format.sets});
  }
}

void pi_5(const Title& title, const Row& row) {
  title("Raspberry Pi 5 4 GB, Qwen2.5 7B, Optane as swap (blog.jeanbruenn.info/?p=1059)");
  const Texts gen3 = {"device.storage.link.data_rate=8 GT/s", "device.storage.link.payload_bits=128",
                      "device.storage.link.line_bits=130"};
  struct Lane {
    const char* name;
    Texts changes;
    double tokens_per_second;
    double rate;  ///< MB/s
  };
  const Lane lanes[] = {{"PCIe Gen 2", {}, 0.10, 277.87}, {"PCIe Gen 3", gen3, 0.16, 397.04}};
  std::vector<double> speeds;
  for (const Lane& lane : lanes) {
    const nlohmann::json result = run("scenarios/pi_5_qwen2_5_7b_swap.yaml", lane.changes);
    const double read = result["storage"]["read_bytes_per_token"];
    row({.what = fmt::format("{}, tokens/s", lane.name),
         .measured = lane.tokens_per_second,
         .simulated = speed(result),
         .rule = Rule::told});
    speeds.push_back(speed(result));
    row({.what = fmt::format("{}, MB/s read (measured over load and prefill, too)", lane.name),
         .measured = lane.rate,
         .simulated = read * speed(result) / 1e6,
         .rule = Rule::told});
  }
  row({.what = "Gen 3 over Gen 2", .measured = 1.6, .simulated = speeds[1] / speeds[0], .bound = 0.25});
}

/// Which storage that board had is not told.
void rk3588(const Title& title, const Row& row) {
  title(
      "RK3588, Qwen3 1.7B Q4_0 with a limit of 1 GB (PowerInfer smallthinker README; storage not named), "
      "tokens/s");
  for (const char* part : {"emmc_foresee_sld64g", "nvme_sm2263xt_1tb"}) {
    const nlohmann::json result =
        run("scenarios/rk3588_llama8b.yaml",
            {"device=rk3588_16gb", "model=qwen3_1_7b", "engine.weights=Q4_0", "device.os.reserve=14862 MiB",
             fmt::format("device.storage={}", part), "workload.prompt=16", "workload.generate=32"});
    row({.what = part, .measured = 1.0, .simulated = speed(result), .rule = Rule::told});
  }
}

}  // namespace

void measure_paging(const Title& title, const Row& row, const Claim& claim) {
  streaming(title, row, claim);
  mapped_phone(title, row);
  pi_zero(title, row);
  pi_5(title, row);
  rk3588(title, row);
}

}  // namespace kvsim::testing
