// SPDX-License-Identifier: Apache-2.0
// `kvsim session`.
#include <algorithm>
#include <charconv>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/resolve.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/compare/run_variants.h"
#include "sim/report/session_report.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

using nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr std::int64_t kMostTokens = 1 << 24;
constexpr const char* kPrefixes = "128,512,1024,2048,4096";

std::vector<std::int64_t> prefixes_of(const std::string& text) {
  std::vector<std::int64_t> prefixes;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::int64_t tokens = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), tokens);
    if (error != std::errc() || stop != part.data() + part.size() || tokens < 1 || tokens > kMostTokens) {
      throw UserError(
          fmt::format("--prefix: '{}' is not a number of tokens from 1 to {}", part, kMostTokens));
    }
    prefixes.push_back(tokens);
  }
  std::ranges::sort(prefixes);
  const auto rest = std::ranges::unique(prefixes);
  prefixes.erase(rest.begin(), rest.end());
  if (prefixes.empty()) {
    throw UserError("--prefix: names no number of tokens");
  }
  return prefixes;
}

/// Prefill is measured by runs, one for each prefix, without an answer.
std::vector<JobResult> run_prefills(const std::string& scenario, const Texts& set,
                                    const std::vector<std::int64_t>& prefixes, int at_once) {
  std::vector<Job> jobs;
  for (const std::int64_t tokens : prefixes) {
    Job& job = jobs.emplace_back(
        Job{.name = fmt::format("prefix of {}", tokens), .arguments = {"run", scenario, "--format", "json"}});
    Texts changes = set;
    changes.insert(changes.end(),
                   {fmt::format("workload.prompt={}", tokens), "workload.cached=0", "workload.generate=0"});
    for (const std::string& change : changes) {
      job.arguments.insert(job.arguments.end(), {"--set", change});
    }
  }
  ProgressBar bar;
  return run_jobs(
      jobs,
      {.at_once = at_once, .progress = [&bar](double done) { bar.show(done); }, .stop = &interrupt_flag()});
}

SessionPoint point_of(const config::RunSpec& spec, std::int64_t tokens, const JobResult& prefill) {
  SessionPoint point{.tokens = tokens, .bytes = session_bytes(spec, tokens)};
  point.save = save_time(spec, point.bytes);
  point.restore = restore_time(spec, point.bytes);
  const ordered_json json = ordered_json::parse(prefill.out);
  if (!json.at("latency").is_null()) {
    const double ms = json.at("latency").at("ttft_ms").get<double>();
    point.compute = Picoseconds(static_cast<std::int64_t>(ms * 1e9));
  }
  return point;
}

}  // namespace

int run_session(const Command& self, const Texts& arguments) {
  Options options(self);
  options.add()("prefix", po::value<std::string>()->default_value(kPrefixes),
                "tokens of prompts whose KV cache is saved, restored and computed again")(
      "set", po::value<Texts>()->composing(), "PATH=VALUE: change a key of the scenario; may be repeated")(
      "jobs,j", po::value<std::string>(), "prefills run at the same time (one per core of this machine)")(
      "format", po::value<std::string>()->default_value("text"), "text or json");
  options.positional("arguments");
  if (!options.parse(arguments)) {
    return 0;
  }
  const std::string format = options.text("format");
  if (format != "text" && format != "json") {
    throw UserError(fmt::format("--format: '{}' is unknown; text or json", format));
  }
  const Texts files = options.list("arguments");
  if (files.size() != 1 || files[0].empty()) {
    throw UserError(fmt::format("give one scenario file ({} given); see --help", files.size()));
  }
  const std::vector<std::int64_t> prefixes = prefixes_of(options.text("prefix"));
  const Texts set = options.list("set");
  config::Overrides overrides;
  for (const std::string& change : set) {
    overrides.emplace_back(change);
  }
  const config::RunSpec spec = config::load_scenario(files[0], overrides).spec;
  if (!spec.device.storage) {
    throw UserError("device.storage: a session is saved to storage, and the device has none; give it one");
  }
  if (spec.engine.kv_cache == config::KvCacheUse::recomputed) {
    throw UserError("engine.kv_cache: is recomputed: there is no KV cache to save");
  }
  const int at_once = options.count("jobs", std::max(1U, std::thread::hardware_concurrency()), 1024);
  const std::vector<JobResult> prefills = run_prefills(files[0], set, prefixes, at_once);
  std::vector<SessionPoint> points;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    points.push_back(point_of(spec, prefixes[i], prefills[i]));
  }
  write_stdout(format == "json" ? session_json(spec, points) : session_text(spec, points));
  return 0;
}

}  // namespace kvsim::sim
