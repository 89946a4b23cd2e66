// SPDX-License-Identifier: Apache-2.0
// `kvsim compare`.
#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/schema/yaml.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/compare/run_variants.h"
#include "sim/compare/variant.h"
#include "sim/report/compare_report.h"
#include "sim/report/quality_report.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

using nlohmann::ordered_json;
using Texts = std::vector<std::string>;
using Writer = std::string (*)(const CompareReport&);

Writer writer_of(const std::string& format) {
  const std::map<std::string, Writer> writers = {
      {"text", compare_text}, {"json", compare_json}, {"csv", compare_csv}, {"md", compare_markdown}};
  const auto found = writers.find(format);
  if (found == writers.end()) {
    throw UserError(fmt::format("--format: '{}' is unknown; text, json, csv or md", format));
  }
  return found->second;
}

/// By the canonical name of a KV specification.
using Qualities = std::map<std::string, VariantQuality>;

void read_qualities(const std::string& path, Qualities& qualities) {
  const ordered_json json = ordered_json::parse(config::read_source(path).text, nullptr, false);
  if (!json.is_object() || json.value("schema", "") != kQualitySchema || !json.contains("kv") ||
      !json.at("kv").is_array()) {
    throw UserError(fmt::format("--quality {}: is not what 'kvsim quality --format json' writes", path));
  }
  try {
    for (const ordered_json& entry : json.at("kv")) {
      const ordered_json& recall = entry.at("recall");
      qualities[name(config::parse_kv_spec(entry.at("spec").get<std::string>()))] = {
          .perplexity_change_percent = entry.at("perplexity_change_percent").get<double>(),
          .recall = recall.is_null() ? std::nullopt : std::optional(recall.get<double>())};
    }
  } catch (const ordered_json::exception& error) {
    throw UserError(fmt::format("--quality {}: is not what 'kvsim quality --format json' writes: {}", path,
                                error.what()));
  }
}

std::vector<Job> jobs_of(const std::vector<Variant>& variants, const Options& options) {
  std::vector<Job> jobs;
  for (const Variant& variant : variants) {
    Job& job = jobs.emplace_back(
        Job{.name = variant.name, .arguments = {"run", variant.scenario, "--format", "json"}});
    for (const std::string& change : variant.set) {
      job.arguments.insert(job.arguments.end(), {"--set", change});
    }
    if (options.has("fidelity")) {
      job.arguments.insert(job.arguments.end(), {"--fidelity", options.text("fidelity")});
    }
  }
  return jobs;
}

std::vector<JobResult> run(const std::vector<Job>& jobs, int at_once) {
  ProgressBar bar;
  return run_jobs(
      jobs,
      {.at_once = at_once, .progress = [&bar](double done) { bar.show(done); }, .stop = &interrupt_flag()});
}

/// Each note once, with the variants it was told of if not all.
void tell_notes(const std::vector<Variant>& variants, const std::vector<JobResult>& results) {
  std::vector<std::pair<std::string, Texts>> notes;
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const std::string& note : results[i].notes) {
      const auto known = std::ranges::find(notes, note, &std::pair<std::string, Texts>::first);
      (known == notes.end() ? notes.emplace_back(note, Texts{}) : *known).second.push_back(variants[i].name);
    }
  }
  for (const auto& [note, names] : notes) {
    const bool of_all = names.size() == variants.size();
    write_stderr(of_all ? note + "\n" : fmt::format("{} ({})\n", note, fmt::join(names, "; ")));
  }
}

}  // namespace

int run_compare(const Command& self, const Texts& arguments) {
  Options options(self);
  options.add()("vary", po::value<Texts>()->composing(),
                "PATH=VALUE,VALUE...: run the scenario with each value; may be repeated, then with all "
                "combinations; separate by ; if a value has a comma")(
      "set", po::value<Texts>()->composing(), "PATH=VALUE: change a key in all variants; may be repeated")(
      "jobs,j", po::value<std::string>(), "variants run at the same time (one per core of this machine)")(
      "fidelity", po::value<std::string>(), "exact, train or auto, for all")(
      "quality", po::value<Texts>()->composing(),
      "output of 'kvsim quality --format json': accuracy of the variants' engine.kv; may be repeated")(
      "format", po::value<std::string>()->default_value("text"), "text, json, csv or md");
  options.positional("arguments");
  if (!options.parse(arguments)) {
    return 0;
  }
  const Writer writer = writer_of(options.text("format"));
  const int at_once = options.count("jobs", std::max(1U, std::thread::hardware_concurrency()), 1024);
  Qualities qualities;
  for (const std::string& path : options.list("quality")) {
    read_qualities(path, qualities);
  }
  if (const Texts vary = options.list("vary");
      options.has("fidelity") &&
      std::ranges::any_of(vary, [](const std::string& v) { return v.starts_with("run.fidelity="); })) {
    throw UserError("--fidelity: --vary varies run.fidelity already; leave one out");
  }
  const std::vector<Variant> variants =
      variants_of(options.list("arguments"), options.list("vary"), options.list("set"));
  const std::vector<JobResult> results = run(jobs_of(variants, options), at_once);
  tell_notes(variants, results);
  CompareReport report;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    report.variants.push_back(figures_of(variants[i].name, ordered_json::parse(results[i].out)));
    report.changes.push_back(variants[i].set);
    report.scenarios.push_back(variants[i].scenario);
    const auto quality = qualities.find(name(variants[i].resolved.spec.engine.kv));
    if (quality != qualities.end()) {
      report.variants.back().quality = quality->second;
    }
  }
  mark_pareto(report.variants);
  report.answer = answer(report.variants);
  write_stdout(writer(report));
  return 0;
}

}  // namespace kvsim::sim
