// SPDX-License-Identifier: Apache-2.0
// `kvsim run` and `kvsim replay`.
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/spec/resolve.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/report/report.h"
#include "sim/run/runner.h"
#include "sim/version.h"
#include "traces/codec/reader.h"
#include "traces/codec/writer.h"
#include "traces/record/sinks.h"
#include "traces/workload/workload.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

using Texts = std::vector<std::string>;
using Writer = std::string (*)(const Report&);

Writer writer_of(const std::string& format) {
  if (format == "text") {
    return text_report;
  }
  if (format == "json") {
    return json_report;
  }
  if (format == "csv") {
    return csv_report;
  }
  throw UserError(fmt::format("--format: '{}' is unknown; text, json or csv", format));
}

std::string only_argument(const Options& options, const char* what) {
  const Texts arguments = options.list("arguments");
  if (arguments.size() != 1) {
    throw UserError(fmt::format("give one {} ({} given); see --help", what, arguments.size()));
  }
  return arguments[0];
}

/// Overrides of the configuration that the options ask for.
config::Overrides overrides_of(const Options& options) {
  config::Overrides overrides = options.list("set");
  if (options.has("fidelity")) {
    overrides.push_back("run.fidelity=" + options.text("fidelity"));
  }
  return overrides;
}

void add_common(Options& options) {
  options.add()("set", po::value<Texts>()->composing(),
                "PATH=VALUE: change a key of the scenario; may be repeated")(
      "fidelity", po::value<std::string>(), "exact, train or auto: how much is simulated (run.fidelity)")(
      "format", po::value<std::string>()->default_value("text"), "text, json or csv");
  options.positional("arguments");
}

/// Simulates `source` and prints the report; with `record` the access stream goes into that file as well.
int simulate(config::Scenario scenario, trace::AccessSource& source, Writer writer,
             const std::optional<std::string>& record) {
  std::optional<trace::TraceWriter> trace_writer;
  std::optional<trace::Tee> tee;
  if (record) {
    trace_writer.emplace(*record, trace::TraceHeader{.kvsim_version = kVersion,
                                                     .configuration = config::to_json(scenario.spec).dump(),
                                                     .seed = scenario.spec.run.seed,
                                                     .inputs = scenario.inputs});
    tee.emplace(source, *trace_writer);
  }
  Report report{
      .spec = std::move(scenario.spec), .inputs = std::move(scenario.inputs), .record = {}, .summary = {}};
  {
    ProgressBar bar;
    report.record =
        run_stream(report.spec, tee ? static_cast<trace::AccessSource&>(*tee) : source,
                   {.progress = [&bar](double done) { bar.show(done); }, .stop = &interrupt_flag()});
  }
  report.summary = summarise(report.spec, report.record);
  if (trace_writer) {
    trace_writer->finish();
  }
  write_stdout(writer(report));
  return 0;
}

}  // namespace

int run_run(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_common(options);
  options.add()("record", po::value<std::string>(), "write the access stream to this file (.kvt)");
  if (!options.parse(arguments)) {
    return 0;
  }
  const Writer writer = writer_of(options.text("format"));
  config::Scenario scenario =
      config::load_scenario(only_argument(options, "scenario file"), overrides_of(options));
  trace::LlmWorkload workload(trace::llm_run(scenario.spec));
  const auto record = options.has("record") ? std::optional(options.text("record")) : std::nullopt;
  return simulate(std::move(scenario), workload, writer, record);
}

int run_replay(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_common(options);
  options.add()("device", po::value<std::string>(), "replace the recorded device by this one (id or file)");
  if (!options.parse(arguments)) {
    return 0;
  }
  const Writer writer = writer_of(options.text("format"));
  const std::string path = only_argument(options, "trace file");
  trace::TraceReader reader(path);
  config::Overrides overrides;
  if (options.has("device")) {
    overrides.push_back("device=" + options.text("device"));
  }
  for (std::string& change : overrides_of(options)) {
    overrides.push_back(std::move(change));
  }
  config::Scenario scenario = config::restore_scenario(reader.header().configuration, overrides, path);
  scenario.inputs = reader.header().inputs;
  return simulate(std::move(scenario), reader, writer, std::nullopt);
}

}  // namespace kvsim::sim
