// SPDX-License-Identifier: Apache-2.0
// `kvsim storage bench`.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "configs/error/diagnostics.h"
#include "configs/error/error.h"
#include "configs/spec/resolve.h"
#include "configs/units/text.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/report/fio_report.h"
#include "sim/run/runner.h"

namespace kvsim::sim {

namespace po = boost::program_options;
using namespace kvsim::literals;
using model::FioPattern;

namespace {

constexpr Bytes kRandomBlock = 4_KiB;
constexpr Bytes kSequentialBlock = 1024_KiB;
constexpr Bytes kLargestBlock = 1_GiB;
constexpr Bytes kDefaultSize = 100_MiB;  // as the iozone rows that the parts of boards come from
constexpr std::int64_t kMostInFlight = 65'536;

struct NamedPattern {
  std::string_view name;
  FioPattern pattern;
};
constexpr std::array kPatterns{
    NamedPattern{"read", FioPattern::read}, NamedPattern{"write", FioPattern::write},
    NamedPattern{"randread", FioPattern::randread}, NamedPattern{"randwrite", FioPattern::randwrite}};

std::int64_t number_of(const Options& options, const char* name, std::int64_t least, std::int64_t most) {
  const std::string text = options.text(name);
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < least || value > most) {
    throw UserError(fmt::format("--{}: '{}' is not a whole number from {} to {}", name, text, least, most));
  }
  return value;
}

/// A size as kvsim writes it ("4 KiB"), or as fio does: "4K" is 4096 B, "16M", "2G".
Bytes size_of(const Options& options, const char* name, Bytes sector, Bytes most) {
  std::string text = options.text(name);
  constexpr std::string_view kLetters = "kmgtKMGT";
  if (kLetters.find(text.back()) != std::string_view::npos) {
    text.back() = static_cast<char>(text.back() & ~0x20);
    text += "iB";
  } else if (text.find_first_not_of("0123456789") == std::string::npos) {
    text += "B";  // fio: a bare number is bytes
  }
  const Parsed<Bytes> parsed = parse<Bytes>(text);
  if (!parsed.value) {
    throw UserError(fmt::format("--{}: '{}' {}", name, options.text(name), parsed.reason));
  }
  if (*parsed.value < sector || *parsed.value > most || parsed.value->count() % sector.count() != 0) {
    throw UserError(fmt::format("--{}: '{}' is not a multiple of {} from {} to {}", name, options.text(name),
                                to_text(sector), to_text(sector), to_text(most)));
  }
  return *parsed.value;
}

Picoseconds time_of(const Options& options, const char* name, bool may_be_zero) {
  constexpr Picoseconds kLongest(86'400'000'000'000'000);
  std::string text = options.text(name);
  if (text.find_first_not_of("0123456789") == std::string::npos) {
    text += "s";  // fio: a bare number is seconds
  }
  const Parsed<Picoseconds> parsed = parse<Picoseconds>(text);
  if (!parsed.value) {
    throw UserError(fmt::format("--{}: '{}' {}", name, options.text(name), parsed.reason));
  }
  if (*parsed.value > kLongest || *parsed.value < Picoseconds() ||
      (*parsed.value == Picoseconds() && !may_be_zero)) {
    throw UserError(fmt::format("--{}: '{}' is not {}up to 24 h", name, options.text(name),
                                may_be_zero ? "" : "above 0, and "));
  }
  return *parsed.value;
}

double share_of(const Options& options, const char* name) {
  const std::string text = options.text(name);
  const Parsed<double> parsed = parse<double>(text);
  if (!parsed.value || *parsed.value < 0 || *parsed.value > 1) {
    throw UserError(fmt::format("--{}: '{}' is not a number from 0 to 1", name, text));
  }
  return *parsed.value;
}

void add_options(Options& options) {
  options.add()("part", po::value<std::string>(),
                "storage part, an id of 'kvsim list storage' or a file; required")(
      "rw", po::value<std::string>(), "read, write, randread or randwrite; all four if not given")(
      "bs", po::value<std::string>(), "bytes of a request, such as 4K (random 4K, else 1M)")(
      "iodepth", po::value<std::string>()->default_value("1"), "requests in flight of each job")(
      "numjobs", po::value<std::string>()->default_value("1"),
      "threads; in sequence each begins at its own share of the range")(
      "size", po::value<std::string>(), "range, and bytes after which it ends, such as 2G (100M)")(
      "runtime", po::value<std::string>()->default_value("10s"), "simulated time after which it ends")(
      "ramp_time", po::value<std::string>()->default_value("0s"), "simulated time before it counts")(
      "fill", po::value<std::string>()->default_value("0"),
      "share of the capacity that holds data before; a range to be read is laid out anyway")(
      "temperature", po::value<std::string>()->default_value("40 C"), "of the device")(
      "randseed", po::value<std::string>()->default_value("1"), "of offsets and read retries")(
      "format", po::value<std::string>()->default_value("text"), "text or json");
}

std::vector<NamedPattern> patterns_of(const Options& options) {
  if (!options.has("rw")) {
    return {kPatterns.begin(), kPatterns.end()};
  }
  const std::string text = options.text("rw");
  const auto* found = std::ranges::find(kPatterns, text, &NamedPattern::name);
  if (found == kPatterns.end()) {
    throw UserError(fmt::format("--rw: '{}' is unknown; one of read, write, randread, randwrite", text));
  }
  return {*found};
}

struct Asked {
  config::StoragePartSpec part;
  std::vector<NamedPattern> patterns;
  model::FioSpec spec;
  std::optional<Bytes> block;
  double fill = 0;
  model::StorageDevice::Setup setup;
  bool json = false;
};

Asked read_options(const Options& options) {
  if (!options.has("part")) {
    throw UserError("give the part with --part; 'kvsim list storage' has their ids");
  }
  Asked asked;
  asked.part = config::load_storage_part(options.text("part"));
  const Bytes sector = config::sector(asked.part.interface);
  asked.patterns = patterns_of(options);
  asked.spec.depth = number_of(options, "iodepth", 1, 4096);
  asked.spec.jobs = number_of(options, "numjobs", 1, kMostInFlight / asked.spec.depth);
  asked.spec.size = options.has("size") ? size_of(options, "size", sector, Bytes(std::int64_t{1} << 50U))
                                        : std::min(kDefaultSize, asked.part.capacity);
  asked.spec.runtime = time_of(options, "runtime", false);
  asked.spec.ramp = time_of(options, "ramp_time", true);
  asked.spec.seed = static_cast<std::uint64_t>(number_of(options, "randseed", 0, 1'000'000'000));
  asked.setup.seed = asked.spec.seed;
  asked.fill = share_of(options, "fill");
  if (options.has("bs")) {
    asked.block = size_of(options, "bs", sector, kLargestBlock);
  }
  const Parsed<Celsius> temperature = parse<Celsius>(options.text("temperature"));
  if (!temperature.value) {
    throw UserError(fmt::format("--temperature: '{}' {}", options.text("temperature"), temperature.reason));
  }
  if (constexpr Celsius kCold{-60}, kHot{150}; *temperature.value < kCold || *temperature.value > kHot) {
    throw UserError(
        fmt::format("--temperature: '{}' is not from -60 C to 150 C", options.text("temperature")));
  }
  asked.setup.temperature = *temperature.value;
  const std::string format = options.text("format");
  if (format != "text" && format != "json") {
    throw UserError(fmt::format("--format: '{}' is unknown; text or json", format));
  }
  asked.json = format == "json";
  return asked;
}

bool is_read(FioPattern pattern) {
  return pattern == FioPattern::read || pattern == FioPattern::randread;
}

/// What lies on the device before the job begins.
void lay_out(model::StorageDevice& device, const Asked& asked, const model::FioSpec& spec) {
  const std::int64_t unit = asked.part.flash.unit.count();
  const auto filled = static_cast<std::int64_t>(asked.part.capacity.as_double() * asked.fill);
  Bytes bytes(filled / unit * unit);
  if (is_read(spec.pattern)) {
    if (spec.size > asked.part.capacity) {
      throw UserError(fmt::format("--size: '{}' is more than {} holds, {}", to_text(spec.size),
                                  asked.part.name, to_text(asked.part.capacity)));
    }
    bytes = std::max(bytes, spec.size);
  }
  if (!device.lay_out(Bytes(), bytes)) {
    throw UserError(fmt::format("--fill: {} has no room for {}", asked.part.name, to_text(bytes)));
  }
}

FioRun measure(const Asked& asked, const NamedPattern& pattern) {
  FioRun run{.name = std::string(pattern.name), .spec = asked.spec, .result = {}, .counters = {}, .wear = {}};
  run.spec.pattern = pattern.pattern;
  const bool random = pattern.pattern == FioPattern::randread || pattern.pattern == FioPattern::randwrite;
  run.spec.block = asked.block.value_or(std::min(random ? kRandomBlock : kSequentialBlock, run.spec.size));
  if (run.spec.block > run.spec.size) {
    throw UserError(
        fmt::format("--bs: '{}' is more than --size, {}", to_text(run.spec.block), to_text(run.spec.size)));
  }
  model::StorageDevice device(asked.part, asked.setup);
  lay_out(device, asked, run.spec);
  model::FioJob job(device, run.spec);
  while (job.take_batch()) {
    if (interrupt_flag()) {
      throw Interrupted();
    }
  }
  run.result = job.result();
  run.counters = device.counters();
  const bool wrote = !is_read(pattern.pattern) && run.result.ios > 0;
  run.wear = device.wear(wrote ? run.result.moved / run.result.elapsed : BytesPerSecond());
  return run;
}

int storage_bench(const Command& self, const std::vector<std::string>& arguments) {
  Options options(self);
  add_options(options);
  options.positional("arguments");
  if (!options.parse(arguments)) {
    return 0;
  }
  if (!options.list("arguments").empty()) {
    throw UserError(fmt::format("unknown argument '{}'; see --help", options.list("arguments")[0]));
  }
  const Asked asked = read_options(options);
  std::vector<FioRun> runs;
  for (const NamedPattern& pattern : asked.patterns) {
    if (asked.part.read_only && !is_read(pattern.pattern) && !options.has("rw")) {
      continue;
    }
    runs.push_back(measure(asked, pattern));
  }
  write_stdout(asked.json ? fio_json(asked.part, runs).dump(2) + "\n" : fio_text(asked.part, runs));
  return 0;
}

constexpr Command kBench{
    "storage bench", "--part PART [options]",
    "Runs fio's jobs on a storage part by itself: bandwidth, requests per second, latencies, wear.",
    "  kvsim storage bench --part emmc_foresee_sld64g\n"
    "  kvsim storage bench --part nvme_sm2263xt_1tb --rw randread --bs 4K --iodepth 32 --size 64G --format "
    "json",
    storage_bench};

}  // namespace

int run_storage(const Command& self, const std::vector<std::string>& arguments) {
  const std::string help = fmt::format("usage: kvsim {} {}\n\n{}\n\n  bench  {}\n", self.name, self.arguments,
                                       self.summary, kBench.summary);
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    write_stdout(help);
    return arguments.empty() ? 2 : 0;
  }
  if (arguments[0] != "bench") {
    const std::vector<std::string> names{"bench"};
    const auto meant = did_you_mean(arguments[0], names);
    throw UserError(fmt::format("unknown command 'storage {}'{}; see 'kvsim storage --help'", arguments[0],
                                meant ? fmt::format(", did you mean '{}'?", *meant) : ""));
  }
  return kBench.run(kBench, {arguments.begin() + 1, arguments.end()});
}

}  // namespace kvsim::sim
