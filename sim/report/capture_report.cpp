// SPDX-License-Identifier: Apache-2.0
#include "sim/report/capture_report.h"

#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/stream/engine_stream.h"
#include "sim/metrics/human.h"

namespace kvsim::sim {

using nlohmann::ordered_json;

namespace {

constexpr std::array<std::string_view, model::AccessPlayer::kLevels> kLevelNames = {"private", "llc"};

Bytes size_of(const config::DeviceSpec& device, std::size_t level) {
  return level == 0 ? device.clusters.front().core.l2_size : device.llc.size;
}

/// Zero where no time has passed.
BytesPerSecond rate(Bytes bytes, Picoseconds time) {
  return time == Picoseconds() ? BytesPerSecond() : bytes / time;
}

double share(Picoseconds part, Picoseconds whole) {
  return whole == Picoseconds() ? 0 : ratio(part, whole);
}

Bytes lines(std::int64_t count) {
  return Bytes(count * model::kLineBytes);
}

ordered_json levels_json(const ReplayedScope& scope, const config::DeviceSpec& device) {
  ordered_json json = ordered_json::array();
  for (std::size_t i = 0; i < scope.levels.size(); ++i) {
    const model::LevelCounts& level = scope.levels[i];
    json.push_back({{"level", std::string(kLevelNames[i])},
                    {"size_bytes", size_of(device, i).count()},
                    {"hits", level.hits},
                    {"fills", level.fills},
                    {"fill_bytes", lines(level.fills).count()},
                    {"write_backs", level.write_backs},
                    {"write_back_bytes", lines(level.write_backs).count()}});
  }
  return json;
}

ordered_json scope_json(const ReplayedScope& scope, const CaptureReport& report) {
  ordered_json regions = ordered_json::array();
  for (std::size_t i = 0; i < scope.kinds.size(); ++i) {
    const ReplayedKind& kind = scope.kinds[i];
    regions.push_back({{"kind", report.regions.kinds()[i]},
                       {"read_bytes", kind.read_bytes},
                       {"write_bytes", kind.write_bytes},
                       {"fill_bytes", kind.fill_bytes},
                       {"write_back_bytes", kind.write_back_bytes}});
  }
  ordered_json breakdown = ordered_json::object();
  for (int i = 0; i < model::kOwners; ++i) {
    const auto owner = static_cast<model::Owner>(i);
    breakdown[std::string(to_string(owner))] = share(scope.account.part(owner), scope.elapsed);
  }
  const model::MemoryCounters& memory = scope.memory;
  return {{"accesses", scope.accesses},
          {"instructions", scope.instructions},
          {"time_ms", milliseconds(scope.elapsed)},
          {"dram_gbs", rate(memory.read + memory.written, scope.elapsed).count() / 1e9},
          {"levels", levels_json(scope, report.device)},
          {"dram",
           {{"read_bytes", memory.read.count()},
            {"write_bytes", memory.written.count()},
            {"read_gbs", rate(memory.read, scope.elapsed).count() / 1e9},
            {"write_gbs", rate(memory.written, scope.elapsed).count() / 1e9},
            {"row_hits", memory.row_hits},
            {"row_misses", memory.row_misses},
            {"row_conflicts", memory.row_conflicts}}},
          {"regions", regions},
          {"breakdown", breakdown}};
}

std::string scope_text(const ReplayedScope& scope, const CaptureReport& report) {
  const model::MemoryCounters& memory = scope.memory;
  std::string text = fmt::format("  time                {}\n  accesses            {}\n", human(scope.elapsed),
                                 scope.accesses);
  for (std::size_t i = 0; i < scope.levels.size(); ++i) {
    const model::LevelCounts& level = scope.levels[i];
    text += fmt::format("  {:<20}{} hits, {} fills ({}), {} write-backs ({})\n",
                        fmt::format("{} {}", i == 0 ? "private" : "LLC", human(size_of(report.device, i))),
                        level.hits, level.fills, human(lines(level.fills)), level.write_backs,
                        human(lines(level.write_backs)));
  }
  const auto commands = static_cast<double>(memory.row_hits + memory.row_misses + memory.row_conflicts);
  const auto of_all = [&](std::int64_t count) {
    return percent(commands == 0 ? 0 : static_cast<double>(count) / commands);
  };
  text += fmt::format(
      "  DRAM                {} read, {} written, {}; bursts {} row hits, {} misses, {} conflicts\n",
      human(memory.read), human(memory.written), human(rate(memory.read + memory.written, scope.elapsed)),
      of_all(memory.row_hits), of_all(memory.row_misses), of_all(memory.row_conflicts));
  text += "  time goes to        ";
  std::string separator;
  for (int i = 0; i < model::kOwners; ++i) {
    const auto owner = static_cast<model::Owner>(i);
    if (const double part = share(scope.account.part(owner), scope.elapsed); part >= 0.001) {
      text += fmt::format("{}{} {}", std::exchange(separator, ", "), to_string(owner), percent(part));
    }
  }
  text += fmt::format("\n  {:<12}{:>14}{:>14}{:>14}{:>14}\n", "bytes", "read", "written", "filled",
                      "written back");
  for (std::size_t i = 0; i < scope.kinds.size(); ++i) {
    const ReplayedKind& kind = scope.kinds[i];
    text += fmt::format("  {:<12}{:>14}{:>14}{:>14}{:>14}\n", report.regions.kinds()[i], kind.read_bytes,
                        kind.write_bytes, kind.fill_bytes, kind.write_back_bytes);
  }
  return text;
}

}  // namespace

std::string capture_text(const CaptureReport& report) {
  std::string text = fmt::format("{} on one core ({}) of {}, issued {}\n", report.file,
                                 report.device.clusters.front().core.name, report.device.name, report.issue);
  for (const ReplayedScope& token : report.replayed.tokens) {
    text += fmt::format("token {}\n{}", token.token.value_or(0), scope_text(token, report));
  }
  return text + "whole trace\n" + scope_text(report.replayed.file, report);
}

std::string capture_json(const CaptureReport& report) {
  ordered_json json = {{"schema", kCaptureSchema},
                       {"file", report.file},
                       {"device", report.device.name},
                       {"core", report.device.clusters.front().core.name},
                       {"issue", report.issue}};
  json.update(scope_json(report.replayed.file, report));
  json["tokens"] = ordered_json::array();
  for (const ReplayedScope& scope : report.replayed.tokens) {
    ordered_json token = {{"token", scope.token.value_or(0)}};
    token.update(scope_json(scope, report));
    json["tokens"].push_back(std::move(token));
  }
  return json.dump(2) + "\n";
}

}  // namespace kvsim::sim
