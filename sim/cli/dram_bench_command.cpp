// SPDX-License-Identifier: Apache-2.0
// `kvsim dram bench`.
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "models/dram/load_curve.h"
#include "models/dram/request_player.h"
#include "models/psram/psram_player.h"
#include "sim/cli/commands.h"
#include "sim/cli/dram_setup.h"
#include "sim/cli/output.h"
#include "sim/metrics/dram_energy.h"
#include "sim/report/energy_json.h"
#include "sim/run/runner.h"

namespace kvsim::sim {

namespace po = boost::program_options;
using model::Pattern;
using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kLoadRequests = 100'000;  // for each point of the latency curve
constexpr std::array kLoads = {0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95};

std::vector<Pattern> patterns_of(const Options& options) {
  std::vector<Pattern> all;
  std::string known;
  for (int i = 0; i < model::kPatterns; ++i) {
    all.push_back(static_cast<Pattern>(i));
    if (options.has("pattern") && options.text("pattern") == to_string(all.back())) {
      return {all.back()};
    }
    known += fmt::format("{}{}", i == 0 ? "" : ", ", to_string(all.back()));
  }
  if (options.has("pattern")) {
    throw UserError(fmt::format("--pattern: '{}' is unknown; one of {}", options.text("pattern"), known));
  }
  return all;
}

double read_share_of(const Options& options) {
  const std::string text = options.text("read-share");
  double share = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc() || stop != text.data() + text.size() || !(share >= 0 && share <= 1)) {
    throw UserError(fmt::format("--read-share: '{}' is not a number from 0 to 1", text));
  }
  return share;
}

void stop_if_asked() {
  if (interrupt_flag()) {
    throw Interrupted();
  }
}

ordered_json load_json(const DramSetup& setup, const model::PatternSpec& spec, BytesPerSecond measured) {
  ordered_json points = ordered_json::array();
  for (const double load : kLoads) {
    stop_if_asked();
    model::PatternSpec shorter = spec;
    shorter.requests = std::min(spec.requests, kLoadRequests);
    model::PatternSource source(shorter);
    const BytesPerSecond offered(measured.count() * load);
    const model::LoadPoint point = setup.part.psram
                                       ? model::psram_load_point(setup.part, source, offered)
                                       : load_point(setup.part, setup.controller, source, offered);
    points.push_back({{"offered_gbs", point.offered.count() / 1e9},
                      {"served_gbs", point.served.count() / 1e9},
                      {"mean_latency_ns", nanoseconds(point.mean_latency)},
                      {"p99_latency_ns", nanoseconds(point.p99_latency)}});
  }
  return points;
}

template <class Player>
model::PlayResult play(Player player, const model::PatternSpec& spec) {
  model::PatternSource source(spec);
  while (player.take_batch(source)) {
    stop_if_asked();
  }
  return player.result();
}

ordered_json measure(const DramSetup& setup, const model::PatternSpec& spec) {
  const bool serial = setup.part.psram.has_value();
  const model::PlayResult result =
      serial ? play(model::PsramPlayer(setup.part, setup.controller), spec)
             : play(model::RequestPlayer(setup.part, setup.controller, setup.decisions), spec);
  const BytesPerSecond measured = result.moved / result.elapsed;
  const auto shares = static_cast<double>(result.reads) / static_cast<double>(result.requests);
  const BytesPerSecond bound = serial ? model::psram_bound(setup.part, shares)
                                      : bandwidth_bound({.part = setup.part,
                                                         .controller = setup.controller,
                                                         .elapsed = result.elapsed,
                                                         .read_share = spec.read_share,
                                                         .streams = spec.streams},
                                                        spec.pattern);
  return {{"pattern", std::string(to_string(spec.pattern))},
          {"streams", spec.streams},
          {"read_share", spec.read_share},
          {"bandwidth_gbs", measured.count() / 1e9},
          {"bound_gbs", bound.count() / 1e9},
          {"of_bound", ratio(measured, bound)},
          {"mean_read_latency_ns", nanoseconds(result.mean_read_latency)},
          {"energy",
           energy_json(dram_energy(setup.part, result.activity, result.elapsed, result.moved), "total_mj")},
          {"load", load_json(setup, spec, measured)}};
}

std::string to_text(const ordered_json& json) {
  std::string text = fmt::format("{} at peak {:.2f} GB/s, queue {}, mapping {}\n",
                                 json["part"].get<std::string>(), json["peak_gbs"].get<double>(),
                                 json["queue"].get<std::string>(), json["mapping"].get<std::string>());
  text += fmt::format("{:<8} {:>7} {:>10} {:>10} {:>9} {:>12} {:>7} {:>8}\n", "pattern", "streams", "GB/s",
                      "bound", "of bound", "latency ns", "pJ/bit", "mW");
  for (const ordered_json& p : json["patterns"]) {
    const bool known = !p["energy"].is_null();
    const auto energy = [&](const char* key) {
      return known ? fmt::format("{:.2f}", p["energy"][key].get<double>()) : "-";
    };
    text += fmt::format("{:<8} {:>7} {:>10.3f} {:>10.3f} {:>8.1f}% {:>12.1f} {:>7} {:>8}\n",
                        p["pattern"].get<std::string>(), p["streams"].get<std::int64_t>(),
                        p["bandwidth_gbs"].get<double>(), p["bound_gbs"].get<double>(),
                        100 * p["of_bound"].get<double>(), p["mean_read_latency_ns"].get<double>(),
                        energy("pj_per_bit"), energy("average_mw"));
  }
  text += "\nLatency against load (requests at random times)\n";
  for (const ordered_json& p : json["patterns"]) {
    text += fmt::format("{:<8} {:>10} {:>10} {:>10} {:>10}\n", p["pattern"].get<std::string>(), "offered",
                        "served", "mean ns", "p99 ns");
    for (const ordered_json& point : p["load"]) {
      text += fmt::format("{:<8} {:>10.3f} {:>10.3f} {:>10.1f} {:>10.1f}\n", "",
                          point["offered_gbs"].get<double>(), point["served_gbs"].get<double>(),
                          point["mean_latency_ns"].get<double>(), point["p99_latency_ns"].get<double>());
    }
  }
  return text;
}

}  // namespace

int dram_bench(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_dram_options(options);
  options.add()("pattern", po::value<std::string>(),
                "seq, random, stride (4 KiB), kv (heads of a KV cache side by side) or mix (half seq, half "
                "random); all if not given")("read-share", po::value<std::string>()->default_value("1"),
                                             "share of reads, 0 to 1; writes go to a region of their own")(
      "streams", po::value<std::string>(), "streams that take turns line by line (1; kv: 4)")(
      "requests", po::value<std::string>()->default_value("1000000"), "64 B requests of each pattern");
  options.positional("arguments");
  if (!options.parse(arguments)) {
    return 0;
  }
  if (!options.list("arguments").empty()) {
    throw UserError(fmt::format("unknown argument '{}'; see --help", options.list("arguments")[0]));
  }
  const DramSetup setup = dram_setup(options);
  const Bytes capacity = rank_bytes(setup.part) * (setup.controller.ranks * setup.controller.channels);
  const double peak = setup.part.data_rate.as_double() * static_cast<double>(setup.part.width_bits) / 8 *
                      static_cast<double>(setup.controller.channels);
  ordered_json json = {{"part", setup.part_id},
                       {"queue", setup.queue},
                       {"mapping", setup.mapping},
                       {"peak_gbs", peak / 1e9},
                       {"patterns", ordered_json::array()}};
  for (const Pattern pattern : patterns_of(options)) {
    const std::int64_t streams = options.has("streams")   ? number_option(options, "streams", 1, 64)
                                 : pattern == Pattern::kv ? 4
                                                          : 1;
    json["patterns"].push_back(
        measure(setup, {.pattern = pattern,
                        .requests = number_option(options, "requests", 1, 1'000'000'000),
                        .read_share = read_share_of(options),
                        .streams = streams,
                        .capacity = capacity}));
  }
  write_stdout(setup.json ? json.dump(2) + "\n" : to_text(json));
  return 0;
}

}  // namespace kvsim::sim
