// SPDX-License-Identifier: Apache-2.0
// `kvsim attention`.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <systemc>

#include "configs/error/error.h"
#include "configs/spec/kv_format.h"
#include "configs/spec/resolve.h"
#include "configs/units/text.h"
#include "models/npu/tile_engine.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/metrics/human.h"

namespace kvsim::sim {

namespace po = boost::program_options;
using trace::AttentionMethod;

namespace {

struct Asked {
  config::DeviceSpec device;
  config::LlmSpec llm;
  std::string kv;
  trace::TileGeometry geometry;
  trace::TileOptions tiles;
  model::MacFormat macs = model::MacFormat::fp16;
  model::Granularity granularity = model::Granularity::train;
};

void add_options(Options& options) {
  options.add()("device", po::value<std::string>()->default_value("rk3588"), "a device with an NPU")(
      "model", po::value<std::string>()->default_value("llama3_8b"), "language model, for its heads")(
      "tokens", po::value<std::string>()->default_value("2048"), "tokens of the context")(
      "queries", po::value<std::string>(), "tokens computed, the last of the context (all)")(
      "sram", po::value<std::string>(), "SRAM of each core, such as 256KiB (the device's)")(
      "cores", po::value<std::string>(), "NPU cores to use (all)")(
      "naive", "three operators, with the score matrix in DRAM (tiles with an online softmax)")(
      "tile", po::value<std::string>(), "queries x keys of a tile, such as 64x64 (from the SRAM)")(
      "oversize", po::value<std::string>()->default_value("refuse"),
      "refuse a --tile that does not fit, or spill what of it does not")(
      "resident", po::value<std::string>()->default_value("0"),
      "first tokens whose keys and values stay in SRAM")("kv", po::value<std::string>()->default_value("f16"),
                                                         "number format of keys and values in DRAM and SRAM")(
      "macs", po::value<std::string>()->default_value("fp16"), "number format of the products: fp16 or int8")(
      "fidelity", po::value<std::string>()->default_value("train"), "of DRAM: train or exact")(
      "format", po::value<std::string>()->default_value("text"), "text or json");
}

std::int64_t number_of(const std::string& option, const std::string& text) {
  const bool digits =
      !text.empty() && text.size() <= 9 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!digits) {
    throw UserError(fmt::format("--{}: '{}' is not a whole number below 1000000000", option, text));
  }
  return std::stoll(text);
}

/// True for `second`.
bool chosen(const Options& options, const char* name, std::string_view first, std::string_view second) {
  const std::string text = options.text(name);
  if (text != first && text != second) {
    throw UserError(fmt::format("--{}: '{}' is unknown; {} or {}", name, text, first, second));
  }
  return text == second;
}

void read_npu(const Options& options, Asked& asked) {
  asked.device = config::load_device(options.text("device"));
  if (!asked.device.npu) {
    throw UserError(fmt::format("--device: {} has no NPU; rk3588 has one", options.text("device")));
  }
  config::NpuSpec& npu = *asked.device.npu;
  if (options.has("sram")) {
    const auto parsed = parse<Bytes>(options.text("sram"));
    if (!parsed.value || *parsed.value < Bytes(1 << 10) || *parsed.value > Bytes(1 << 30)) {
      throw UserError(fmt::format("--sram: '{}' is not from 1 KiB to 1 GiB", options.text("sram")));
    }
    npu.sram.size = *parsed.value;
  }
  if (options.has("cores")) {
    const std::int64_t cores = number_of("cores", options.text("cores"));
    if (cores < 1 || cores > npu.cores) {
      throw UserError(fmt::format("--cores: {} is not from 1 to the NPU's {}", cores, npu.cores));
    }
    npu.cores = cores;
  }
  asked.tiles.sram = npu.sram.size;
  asked.tiles.cores = npu.cores;
}

void read_tiles(const Options& options, Asked& asked) {
  asked.tiles.method = options.has("naive") ? AttentionMethod::naive : AttentionMethod::tiled;
  asked.tiles.oversize =
      chosen(options, "oversize", "refuse", "spill") ? trace::Oversize::spill : trace::Oversize::refuse;
  asked.tiles.resident_keys = number_of("resident", options.text("resident"));
  if (options.has("tile")) {
    const std::string text = options.text("tile");
    const std::size_t times = text.find('x');
    if (times == std::string::npos) {
      throw UserError(fmt::format("--tile: '{}' is not queries x keys, such as 64x64", text));
    }
    asked.tiles.shape = {number_of("tile", text.substr(0, times)), number_of("tile", text.substr(times + 1))};
  }
}

Asked read(const Options& options) {
  Asked asked;
  read_npu(options, asked);
  read_tiles(options, asked);
  asked.llm = config::load_llm(options.text("model"));
  if (asked.llm.latent) {
    throw UserError(
        "--model: 'kvsim attention' knows K and V of heads, and this model's attention is latent");
  }
  if (asked.llm.local) {
    write_notes({fmt::format("{} has layers that see only {} tokens; this is one that sees all",
                             asked.llm.name, asked.llm.local->window)});
  }
  asked.kv = options.text("kv");
  if (asked.kv.find_first_of(",+") != std::string::npos) {
    throw UserError(fmt::format("--kv: '{}': give one type for K and V, without a policy", asked.kv));
  }
  const std::int64_t tokens = number_of("tokens", options.text("tokens"));
  constexpr std::int64_t kHalf = 2;  // bytes of Q, O and scores: FP16
  asked.geometry = {
      .heads = asked.llm.heads,
      .kv_heads = asked.llm.kv_heads,
      .head_dim = asked.llm.head_dim,
      .queries = options.has("queries") ? number_of("queries", options.text("queries")) : tokens,
      .context = tokens,
      .query_row = Bytes(asked.llm.head_dim * kHalf),
      .kv_row = kv_vector_bytes(config::parse_kv_format(asked.kv), asked.llm.head_dim),
      .score = Bytes(kHalf)};
  asked.macs = chosen(options, "macs", "fp16", "int8") ? model::MacFormat::int8 : model::MacFormat::fp16;
  asked.granularity =
      chosen(options, "fidelity", "train", "exact") ? model::Granularity::burst : model::Granularity::train;
  return asked;
}

std::int64_t macs_of(const trace::TilePlan& plan) {
  std::int64_t all = 0;
  for (const auto& core : plan.cores) {
    for (const trace::TileStep& step : core) {
      all += step.macs;
    }
  }
  return all;
}

nlohmann::ordered_json report(const Asked& asked, const trace::TilePlan& plan, const model::TileResult& r) {
  const config::NpuSpec& npu = *asked.device.npu;
  const std::int64_t macs = macs_of(plan);
  const std::int64_t rate = asked.macs == model::MacFormat::int8 ? npu.int8_macs : npu.fp16_macs;
  const double mac_bound =
      static_cast<double>(macs) / static_cast<double>(rate * npu.cores) / npu.clock.as_double() * 1e3;
  const double cores = static_cast<double>(npu.cores);
  return {
      {"device", asked.device.name},
      {"model", asked.llm.name},
      {"method", asked.tiles.method == AttentionMethod::naive ? "naive" : "tiled"},
      {"kv", asked.kv},
      {"context", asked.geometry.context},
      {"queries", asked.geometry.queries},
      {"cores", npu.cores},
      {"sram_bytes", npu.sram.size.count()},
      {"tile", {{"queries", plan.shape.queries}, {"keys", plan.shape.keys}}},
      {"tiles", plan.tiles},
      {"tiles_spilled", plan.spilled},
      {"spill_bytes", plan.spill_bytes.count()},
      {"planned_bytes", {{"read", plan.read.count()}, {"written", plan.written.count()}}},
      {"dram_bytes", {{"read", r.dram_read.count()}, {"written", r.dram_written.count()}}},
      {"macs", macs},
      {"time_ms", milliseconds(r.elapsed)},
      {"bound_ms",
       {{"macs", mac_bound},
        {"dram_peak", milliseconds((r.dram_read + r.dram_written) / config::peak_bandwidth(asked.device))}}},
      {"arithmetic_ms_per_core", milliseconds(r.arithmetic) / cores},
      {"waiting_ms_per_core", milliseconds(r.waited) / cores},
      {"sram",
       {{"most_bytes", r.most_in_sram.count()},
        {"words", r.sram.words},
        {"conflicts", r.sram.conflicts},
        {"conflict_cycles", r.sram.conflict_cycles}}}};
}

std::string text_of(const nlohmann::ordered_json& j) {
  const auto mb = [](const nlohmann::ordered_json& bytes) { return bytes.get<double>() / 1e6; };
  const auto get = [&](const char* key) { return j[key].get<double>(); };
  return fmt::format(
             "attention   {}, one layer, {} queries of {} tokens, KV {}, {}\n"
             "NPU         {} cores of {}, SRAM {:.0f} KiB each, {:.1f} KiB in use at most\n"
             "tile        {} queries x {} keys; {} tiles, {} spilled ({:.1f} MB moved for that)\n",
             j["model"].get<std::string>(), j["queries"].get<std::int64_t>(),
             j["context"].get<std::int64_t>(), j["kv"].get<std::string>(), j["method"].get<std::string>(),
             j["cores"].get<std::int64_t>(), j["device"].get<std::string>(), get("sram_bytes") / 1024,
             j["sram"]["most_bytes"].get<double>() / 1024, j["tile"]["queries"].get<std::int64_t>(),
             j["tile"]["keys"].get<std::int64_t>(), j["tiles"].get<std::int64_t>(),
             j["tiles_spilled"].get<std::int64_t>(), mb(j["spill_bytes"])) +
         fmt::format(
             "DRAM        {:.1f} MB read, {:.1f} MB written\n"
             "time        {:.3f} ms; MACs alone {:.3f} ms, DRAM's peak alone {:.3f} ms\n"
             "a core      {:.3f} ms arithmetic, {:.3f} ms waiting for DRAM\n"
             "SRAM        {} words, {} accesses delayed by {} cycles of bank conflicts\n",
             mb(j["dram_bytes"]["read"]), mb(j["dram_bytes"]["written"]), get("time_ms"),
             j["bound_ms"]["macs"].get<double>(), j["bound_ms"]["dram_peak"].get<double>(),
             get("arithmetic_ms_per_core"), get("waiting_ms_per_core"),
             j["sram"]["words"].get<std::int64_t>(), j["sram"]["conflicts"].get<std::int64_t>(),
             j["sram"]["conflict_cycles"].get<std::int64_t>());
}

}  // namespace

int run_attention(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_options(options);
  if (!options.parse(arguments)) {
    return 0;
  }
  const bool as_json = chosen(options, "format", "text", "json");
  const Asked asked = read(options);
  const trace::TilePlan plan = plan_tiles(asked.geometry, asked.tiles);
  const Bytes footprint = tile_plan_footprint(asked.geometry, asked.tiles.method);
  if (footprint > dram_capacity(asked.device)) {
    throw UserError(fmt::format("--tokens: Q, K, V, O and scores take {} B, more than the DRAM's {} B",
                                footprint.count(), dram_capacity(asked.device).count()));
  }
  model::TileEngine engine("npu", asked.device, asked.granularity, plan, asked.macs);
  sc_core::sc_start();
  const nlohmann::ordered_json result = report(asked, plan, engine.result());
  write_stdout(as_json ? result.dump(2) + "\n" : text_of(result));
  return 0;
}

}  // namespace kvsim::sim
