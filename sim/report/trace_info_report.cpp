// SPDX-License-Identifier: Apache-2.0
#include "sim/report/trace_info_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/stream/engine_stream.h"
#include "sim/metrics/human.h"

namespace kvsim::sim {

using nlohmann::ordered_json;
using trace::KindInfo;
using trace::ScopeInfo;

namespace {

ordered_json span_json(trace::Address begin, trace::Address end) {
  return end == 0 ? ordered_json(nullptr)
                  : ordered_json{{"begin", fmt::format("{:#x}", begin)}, {"end", fmt::format("{:#x}", end)}};
}

/// First and last byte that any kind has.
std::pair<trace::Address, trace::Address> span_of(const ScopeInfo& scope) {
  std::pair<trace::Address, trace::Address> span{~trace::Address{0}, 0};
  for (const KindInfo& kind : scope.kinds) {
    if (kind.end != 0) {
      span = {std::min(span.first, kind.begin), std::max(span.second, kind.end)};
    }
  }
  return span;
}

ordered_json regions_json(const ScopeInfo& scope, const trace::RegionMap& regions) {
  ordered_json json = ordered_json::array();
  for (std::size_t i = 0; i < scope.kinds.size(); ++i) {
    const KindInfo& kind = scope.kinds[i];
    json.push_back({{"kind", regions.kinds()[i]},
                    {"distinct_read_bytes", kind.distinct_read_bytes},
                    {"read_bytes", kind.read_bytes},
                    {"write_bytes", kind.write_bytes},
                    {"reread_bytes", kind.read_bytes - kind.distinct_read_bytes},
                    {"distinct_write_bytes", kind.distinct_write_bytes},
                    {"distinct_read_lines", kind.distinct_read_lines},
                    {"distinct_lines", kind.distinct_lines},
                    {"reads", kind.reads},
                    {"writes", kind.writes},
                    {"span", span_json(kind.begin, kind.end)}});
  }
  return json;
}

ordered_json cache_json(const config::CacheSpec& spec, const FillCounts& counts) {
  return {{"size_bytes", spec.size.count()},
          {"ways", spec.ways},
          {"hits", counts.hits},
          {"fills", counts.fills},
          {"fill_bytes", counts.fills * model::kLineBytes},
          {"write_backs", counts.write_backs},
          {"write_back_bytes", counts.write_backs * model::kLineBytes}};
}

/// What the file and a token have in common.
ordered_json scope_json(const ScopeInfo& scope, const trace::RegionMap& regions) {
  const auto [begin, end] = span_of(scope);
  return {{"accesses", scope.accesses()},
          {"loads", scope.loads},
          {"stores", scope.stores},
          {"modifies", scope.modifies},
          {"instructions", scope.instructions},
          {"distinct_lines", scope.distinct_lines},
          {"span", span_json(begin, end)},
          {"regions", regions_json(scope, regions)},
          {"caches", ordered_json::array()}};
}

std::string count(std::uint64_t bytes) {
  return fmt::format("{:>14}", bytes);
}

std::string scope_text(const ScopeInfo& scope, const trace::RegionMap& regions) {
  const auto [begin, end] = span_of(scope);
  std::string text = fmt::format(
      "  accesses        {} ({} loads, {} stores, {} both)\n  instructions    {}\n"
      "  distinct lines  {} of 64 B\n  span            {}\n",
      scope.accesses(), scope.loads, scope.stores, scope.modifies,
      scope.instructions == 0 ? "none in the trace" : fmt::format("{}", scope.instructions),
      scope.distinct_lines, end == 0 ? "nothing" : fmt::format("{:#x} to {:#x}", begin, end));
  text += fmt::format("  {:<12}{:>14}{:>14}{:>9}{:>14}{:>14}{:>9}\n", "bytes", "distinct read", "read",
                      "re-read", "dist. written", "written", "lines");
  for (std::size_t i = 0; i < scope.kinds.size(); ++i) {
    const KindInfo& kind = scope.kinds[i];
    const std::string again = kind.distinct_read_bytes == 0
                                  ? "-"
                                  : fmt::format("{:.2f}x", static_cast<double>(kind.read_bytes) /
                                                               static_cast<double>(kind.distinct_read_bytes));
    text += fmt::format("  {:<12}{}{}{:>9}{}{}{:>9}\n", regions.kinds()[i], count(kind.distinct_read_bytes),
                        count(kind.read_bytes), again, count(kind.distinct_write_bytes),
                        count(kind.write_bytes), kind.distinct_lines);
  }
  return text;
}

std::string cache_text(const config::CacheSpec& spec, const FillCounts& counts) {
  const auto megabytes = [](std::int64_t lines) {
    return static_cast<double>(lines * model::kLineBytes) / 1e6;
  };
  return fmt::format("  cache {}, {} ways: fills {} lines ({:.3f} MB), write-backs {} lines ({:.3f} MB)\n",
                     human(spec.size), spec.ways, counts.fills, megabytes(counts.fills), counts.write_backs,
                     megabytes(counts.write_backs));
}

}  // namespace

std::string trace_info_text(const TraceInfoReport& report) {
  std::string text = fmt::format("{}\n{}", report.file, scope_text(report.info.file, report.regions));
  for (const CacheFills& cache : report.caches) {
    text += cache_text(cache.spec(), cache.file());
  }
  for (std::size_t i = 0; i < report.info.tokens.size(); ++i) {
    const ScopeInfo& token = report.info.tokens[i];
    text += fmt::format("token {}\n{}", token.token.value_or(0), scope_text(token, report.regions));
    for (const CacheFills& cache : report.caches) {
      text += cache_text(cache.spec(), cache.tokens()[i]);
    }
  }
  return text;
}

std::string trace_info_json(const TraceInfoReport& report) {
  ordered_json json = {{"schema", kTraceInfoSchema}, {"file", report.file}};
  json.update(scope_json(report.info.file, report.regions));
  for (const CacheFills& cache : report.caches) {
    json["caches"].push_back(cache_json(cache.spec(), cache.file()));
  }
  json["tokens"] = ordered_json::array();
  for (std::size_t i = 0; i < report.info.tokens.size(); ++i) {
    const ScopeInfo& scope = report.info.tokens[i];
    ordered_json token = {{"token", scope.token.value_or(0)}};
    token.update(scope_json(scope, report.regions));
    for (const CacheFills& cache : report.caches) {
      token["caches"].push_back(cache_json(cache.spec(), cache.tokens()[i]));
    }
    json["tokens"].push_back(std::move(token));
  }
  return json.dump(2) + "\n";
}

}  // namespace kvsim::sim
