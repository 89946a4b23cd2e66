// SPDX-License-Identifier: Apache-2.0
#include "sim/report/session_report.h"

#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/metrics/human.h"
#include "sim/version.h"

namespace kvsim::sim {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSchema = "kvsim.session/1";

ordered_json json_of(const std::optional<Picoseconds>& time) {
  return time ? ordered_json(milliseconds(*time)) : ordered_json(nullptr);
}

std::string text_of(const std::optional<Picoseconds>& time) {
  return time ? human(*time) : "-";
}

}  // namespace

std::string session_json(const config::RunSpec& spec, const std::vector<SessionPoint>& points) {
  ordered_json prefixes = ordered_json::array();
  for (const SessionPoint& p : points) {
    prefixes.push_back({{"tokens", p.tokens},
                        {"bytes", p.bytes.count()},
                        {"save_ms", json_of(p.save)},
                        {"restore_ms", json_of(p.restore)},
                        {"prefill_ms", json_of(p.compute)}});
  }
  const std::optional<std::int64_t> from = break_even(points);
  const ordered_json json = {{"schema", kSchema},
                             {"version", kVersion},
                             {"model", spec.model.name},
                             {"device", spec.device.name},
                             {"part", spec.device.storage->name},
                             {"kv", name(spec.engine.kv)},
                             {"prefixes", std::move(prefixes)},
                             {"break_even_tokens", from ? ordered_json(*from) : ordered_json(nullptr)}};
  return json.dump(2) + "\n";
}

std::string session_text(const config::RunSpec& spec, const std::vector<SessionPoint>& points) {
  std::string text = fmt::format("{} {}, KV {}, on {} with {}\n\n", spec.model.name, spec.engine.weights.name,
                                 name(spec.engine.kv), spec.device.name, spec.device.storage->name);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{:>8}  {:>12}  {:>12}  {:>12}  {:>14}\n", "prefix", "KV", "save", "restore",
                 "prefill again");
  for (const SessionPoint& p : points) {
    fmt::format_to(out, "{:>8}  {:>12}  {:>12}  {:>12}  {:>14}\n", p.tokens, human(p.bytes), text_of(p.save),
                   text_of(p.restore), text_of(p.compute));
  }
  if (const std::optional<std::int64_t> from = break_even(points)) {
    fmt::format_to(out, "\nRestoring is faster than computing from {} tokens on{}.\n", *from,
                   *from == points.front().tokens ? ", the shortest prefix asked for" : "");
  } else {
    fmt::format_to(out, "\nRestoring is not faster than computing at any of these lengths.\n");
  }
  return text;
}

}  // namespace kvsim::sim
