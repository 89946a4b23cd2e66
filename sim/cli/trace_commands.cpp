// SPDX-License-Identifier: Apache-2.0
// `kvsim trace info`.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"
#include "sim/capture/cache_fills.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/report/trace_info_report.h"
#include "sim/run/runner.h"
#include "traces/import/lackey_reader.h"
#include "traces/import/region_map.h"
#include "traces/import/trace_info.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

constexpr std::int64_t kMostWays = 1024;
constexpr Bytes kLargestCache{256 << 20};

constexpr Command kInfo{
    "trace info", "FILE [options]",
    "Tells what a captured trace touches: distinct bytes and lines by region, for each token.",
    "  kvsim trace info decode.lackey.zst --regions decode.regions.csv\n"
    "  kvsim trace info decode.lackey.zst --cache 1MiB --cache 4MiB,ways=8 --format json",
    trace_info};

/// "4 MiB" or "4MiB,ways=8".
config::CacheSpec cache_of(const std::string& text) {
  const std::size_t comma = std::min(text.find(','), text.size());
  const Parsed<Bytes> size = parse<Bytes>(text.substr(0, comma));
  if (!size.value) {
    throw UserError(fmt::format("--cache: '{}' {}", text.substr(0, comma), size.reason));
  }
  config::CacheSpec spec{.size = *size.value, .ways = 16, .line = Bytes(64), .latency = {}, .bandwidth = {}};
  if (comma < text.size()) {
    const std::string rest = text.substr(comma + 1);
    const Parsed<std::int64_t> ways =
        parse<std::int64_t>(rest.substr(std::min(rest.find('=') + 1, rest.size())));
    if (!rest.starts_with("ways=") || !ways.value || *ways.value < 1 || *ways.value > kMostWays) {
      throw UserError(fmt::format(
          "--cache: '{}' is not 'ways=N' with N from 1 to {}; write it as in 4MiB,ways=16", rest, kMostWays));
    }
    spec.ways = *ways.value;
  }
  const std::int64_t set = spec.ways * spec.line.count();
  if (spec.size.count() < set || spec.size.count() % set != 0 || spec.size > kLargestCache) {
    throw UserError(fmt::format("--cache: '{}' is not a multiple of {} B ({} ways of lines of 64 B) up to {}",
                                text, set, spec.ways, to_text(kLargestCache)));
  }
  return spec;
}

}  // namespace

int run_trace(const Command& self, const std::vector<std::string>& arguments) {
  const std::string help = fmt::format("usage: kvsim {} {}\n\n{}\n\n  info   {}\n\nExamples:\n{}\n",
                                       self.name, self.arguments, self.summary, kInfo.summary, self.examples);
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    write_stdout(help);
    return arguments.empty() ? 2 : 0;
  }
  if (arguments[0] != "info") {
    throw UserError(fmt::format("unknown command 'trace {}'; there is 'kvsim trace info'", arguments[0]));
  }
  return trace_info(kInfo, {arguments.begin() + 1, arguments.end()});
}

int trace_info(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  options.add()("regions", po::value<std::string>(),
                "names address ranges: a CSV file with the columns kind, start, end (and more)")(
      "cache", po::value<std::vector<std::string>>()->composing(),
      "SIZE[,ways=N]: also count what a cache of this size fetches and writes back: LRU, lines of 64 B, 16 "
      "ways unless given, empty where a token starts; may be repeated")(
      "format", po::value<std::string>()->default_value("text"), "text or json");
  options.positional("files");
  if (!options.parse(arguments)) {
    return 0;
  }
  const std::vector<std::string> files = options.list("files");
  if (files.size() != 1) {
    throw UserError(fmt::format("give one trace file ({} given); see --help", files.size()));
  }
  const std::string format = options.text("format");
  if (format != "text" && format != "json") {
    throw UserError(fmt::format("--format: '{}' is unknown; text or json", format));
  }
  std::vector<CacheFills> caches;
  for (const std::string& text : options.list("cache")) {
    caches.emplace_back(cache_of(text));
  }
  const trace::RegionMap regions =
      options.has("regions") ? trace::RegionMap::load(options.text("regions")) : trace::RegionMap();
  trace::LackeyReader reader(files[0]);
  trace::TraceInfoCollector collector(regions);
  std::vector<trace::LackeyEvent> batch;
  while (reader.next(batch)) {
    if (interrupt_flag()) {
      throw Interrupted();
    }
    collector.take(batch);
    for (CacheFills& cache : caches) {
      cache.take(batch);
    }
  }
  for (CacheFills& cache : caches) {
    cache.finish();
  }
  const TraceInfoReport report{
      .file = files[0], .regions = regions, .info = collector.finish(), .caches = std::move(caches)};
  write_stdout(format == "json" ? trace_info_json(report) : trace_info_text(report));
  return 0;
}

}  // namespace kvsim::sim
