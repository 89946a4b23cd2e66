// SPDX-License-Identifier: Apache-2.0
// `kvsim quality`.
#include <algorithm>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/gguf/gguf_model.h"
#include "configs/spec/expand.h"
#include "configs/spec/kv_format.h"
#include "configs/spec/resolve.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/report/quality_report.h"
#include "sim/run/runner.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

using Writer = std::string (*)(const QualityReport&);

Writer writer_of(const std::string& format) {
  if (format == "text") {
    return quality_text;
  }
  if (format == "json") {
    return quality_json;
  }
  if (format == "csv") {
    return quality_csv;
  }
  throw UserError(fmt::format("--format: '{}' is unknown; text, json or csv", format));
}

void add_options(Options& options) {
  options.add()("model", po::value<std::string>(), "GGUF file of a Llama model, in place of a scenario's")(
      "kv", po::value<std::vector<std::string>>()->multitoken()->composing(),
      ("KV specifications, one or more: TYPE or k=TYPE,v=TYPE, then any of the options below. Types: " +
       config::kv_format_choices() +
       "\n"
       "  +window=N  the last N tokens stay\n"
       "  +sinks=N   and the first N\n"
       "  +h2o=N     N stay: the last (+window, else N/2), and those that drew most attention\n"
       "  +entropy=N N stay: the same, and those that add most to attention's entropy\n"
       "  +topk=N    N are read: the pages of 16 whose keys could score highest\n"
       "  +first=N   the first N (or N% of the sequence) are kept in F16\n"
       "  +recent=N  the last N are kept in F16 until they are older\n"
       "  +unrotated GGML's types without llama.cpp's Hadamard transform")
          .c_str())(
      "tokens", po::value<std::string>(),
      "JSON lines {\"tokens\": [...], \"answers\": [[first index, distance], ...]}: an answer's two tokens "
      "repeat a fact")("threads", po::value<std::string>(), "threads of this machine to use (all)")(
      "format", po::value<std::string>()->default_value("text"), "text, json or csv");
  options.positional("arguments");
}

/// The model file and the specification that the scenario names, if there is one.
struct Subject {
  std::string model;
  std::vector<std::string> specs;
};

Subject subject_of(const Options& options) {
  Subject subject{.model = {}, .specs = options.list("kv")};
  const auto arguments = options.list("arguments");
  if (arguments.size() > 1 || arguments.empty() != options.has("model")) {
    throw UserError("give one scenario, or --model FILE.gguf; see --help");
  }
  if (options.has("model")) {
    subject.model = options.text("model");
  } else {
    const config::Scenario scenario = config::load_scenario(arguments[0]);
    const auto file =
        std::find_if(scenario.inputs.begin(), scenario.inputs.end(),
                     [](const config::InputFile& input) { return input.path.ends_with(".gguf"); });
    if (file == scenario.inputs.end()) {
      throw UserError(fmt::format(
          "{}: its model is geometry only; one with numbers is a GGUF file, model: FILE.gguf", arguments[0]));
    }
    subject.model = file->path;
    if (subject.specs.empty()) {
      subject.specs.push_back(name(scenario.spec.engine.kv));
    }
  }
  if (subject.specs.empty()) {
    throw UserError(fmt::format(
        "--kv: give one or more KV specifications, such as f16 q8_0 q4_0+window=512+sinks=4; types: {}",
        config::kv_format_choices()));
  }
  return subject;
}

/// Measures the reference first, then each specification.
QualityReport measure(const trace::LlamaWeights& weights, const std::vector<trace::TokenSequence>& sequences,
                      const std::vector<std::string>& specs, unsigned threads) {
  std::vector<config::KvSpec> parsed;
  for (const std::string& spec : specs) {
    parsed.push_back(config::parse_kv_spec(spec));
    trace::check_spec(weights, parsed.back());
  }
  ProgressBar progress;
  std::size_t done = 0;
  const auto run = [&](const config::KvSpec& spec, bool profile) {
    progress.show(static_cast<double>(done++) / static_cast<double>(specs.size() + 1));
    auto quality = trace::measure_quality(
        weights, spec, sequences, {.threads = threads, .profile = profile, .stop = &interrupt_flag()});
    if (!quality) {
      throw Interrupted();
    }
    return *std::move(quality);
  };
  QualityReport report;
  report.reference = run(config::parse_kv_spec("f32"), true);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    report.entries.push_back({.spec = specs[i], .quality = run(parsed[i], false)});
  }
  return report;
}

}  // namespace

int run_quality(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_options(options);
  if (!options.parse(arguments)) {
    return 0;
  }
  const Writer writer = writer_of(options.text("format"));
  const auto threads = static_cast<unsigned>(
      options.count("threads", std::max(1U, std::thread::hardware_concurrency()), 1024));
  const Subject subject = subject_of(options);
  if (!options.has("tokens")) {
    throw UserError("--tokens: give a file of token sequences; see --help");
  }
  const config::GgufFile file = config::GgufFile::open(subject.model);
  const trace::LlamaWeights weights = trace::llama_weights(file);
  const std::string tokens = options.text("tokens");
  const std::string contents = trace::read_text(tokens);
  const auto sequences = trace::parse_sequences(tokens, contents);
  QualityReport report = measure(weights, sequences, subject.specs, threads);
  report.inputs = {{.path = subject.model, .hash = config::provenance_hash(file)},
                   {.path = tokens, .hash = config::content_hash(contents)}};
  report.sequences = sequences.size();
  for (const trace::TokenSequence& sequence : sequences) {
    report.tokens += sequence.tokens.size();
  }
  write_stdout(writer(report));
  return 0;
}

}  // namespace kvsim::sim
