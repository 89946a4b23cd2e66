// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/capture_command.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/spec/resolve.h"
#include "configs/units/text.h"
#include "sim/capture/capture_replay.h"
#include "sim/cli/output.h"
#include "sim/report/capture_report.h"
#include "sim/run/runner.h"
#include "traces/codec/reader.h"
#include "traces/import/lackey_reader.h"
#include "traces/import/region_map.h"

namespace kvsim::sim {

namespace po = boost::program_options;

namespace {

[[noreturn]] void refuse_issue(const std::string& text, const std::string& why) {
  throw UserError(fmt::format(
      "--issue: '{}' {}; asap, ipc=X@CLOCK as in ipc=1.5@2400MHz, or rate=BANDWIDTH as in rate=10GB/s", text,
      why));
}

/// A quantity, or a bare number in the unit that the option's form names.
template <class Value>
Value quantity_of(const std::string& all, const std::string& text, const char* unit) {
  const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  const Parsed<Value> parsed = parse<Value>(bare ? text + unit : text);
  if (!parsed.value) {
    refuse_issue(all, fmt::format("has '{}', which {}", text, parsed.reason));
  }
  return *parsed.value;
}

/// A figure of an IssueRule.
double work_of(const std::string& text, double per_second) {
  const double work = kPicosecondsPerSecond / per_second;
  if (!std::isfinite(work) || work > IssueRule::kMostWork) {
    refuse_issue(text, "is slower than a million instructions or bytes a second");
  }
  return work;
}

IssueRule issue_of(const std::string& text) {
  IssueRule rule{.text = text};
  if (text == "asap") {
    return rule;
  }
  if (text.starts_with("rate=")) {
    rule.per_byte = work_of(text, quantity_of<BytesPerSecond>(text, text.substr(5), " GB/s").count());
    return rule;
  }
  const std::size_t at = text.find('@');
  if (!text.starts_with("ipc=") || at == std::string::npos) {
    refuse_issue(text, "is no rule");
  }
  const Parsed<double> ipc = parse<double>(text.substr(4, at - 4));
  if (!ipc.value || !(*ipc.value > 0)) {
    refuse_issue(text, fmt::format("has '{}', which is no positive number", text.substr(4, at - 4)));
  }
  const auto clock = quantity_of<Hertz>(text, text.substr(at + 1), " MHz");
  rule.per_instruction = work_of(text, *ipc.value * clock.as_double());
  return rule;
}

/// What a capture has no part in.
void refuse_others(const Options& options) {
  for (const char* name : {"set", "fidelity"}) {
    if (options.has(name)) {
      throw UserError(fmt::format(
          "--{}: a capture has no configuration and is always simulated burst by burst; give another device "
          "with --device (id or file)",
          name));
    }
  }
  if (!options.has("device")) {
    throw UserError("a capture names no device: give one with --device; 'kvsim list devices' has their ids");
  }
}

}  // namespace

void add_capture_options(Options& options) {
  options.add()("regions", po::value<std::string>(),
                "of a capture: names its address ranges; a CSV file with the columns kind, start, end (and "
                "more)")(
      "issue", po::value<std::string>(),
      "of a capture: when accesses are issued. asap (default): as fast as the core's window lets them; "
      "ipc=X@CLOCK: X instructions a cycle (a trace without instruction lines: each access is one); "
      "rate=BANDWIDTH: so many bytes of accesses a second");
}

bool is_capture(const Options& options, const std::string& path) {
  const bool asked = options.has("regions") || options.has("issue");
  if (trace::is_recording(path)) {
    if (asked) {
      throw UserError(fmt::format(
          "{}: was recorded by kvsim, and its regions and order are in it; --regions and --issue are for "
          "captures",
          path));
    }
    return false;
  }
  return asked || trace::looks_like_lackey(path);
}

int replay_capture(const Options& options, const std::string& path) {
  refuse_others(options);
  const std::string format = options.text("format");
  if (format != "text" && format != "json") {
    throw UserError(fmt::format("--format: '{}' is unknown for a capture; text or json", format));
  }
  const IssueRule issue = issue_of(options.has("issue") ? options.text("issue") : "asap");
  const config::DeviceSpec device = config::load_device(options.text("device"));
  const trace::RegionMap regions =
      options.has("regions") ? trace::RegionMap::load(options.text("regions")) : trace::RegionMap();
  trace::LackeyReader reader(path);
  write_notes(part_notes(device.dram));
  CaptureReplay replay(device, regions, issue);
  std::vector<trace::LackeyEvent> batch;
  while (reader.next(batch)) {
    if (interrupt_flag()) {
      throw Interrupted();
    }
    replay.take(batch);
  }
  const CaptureReport report{
      .file = path, .issue = issue.text, .device = device, .regions = regions, .replayed = replay.finish()};
  write_stdout(format == "json" ? capture_json(report) : capture_text(report));
  return 0;
}

}  // namespace kvsim::sim
