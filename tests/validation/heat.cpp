// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/heat.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/spec/resolve.h"
#include "models/board/board.h"
#include "models/board/board_parts.h"
#include "tests/validation/heat_data.h"

namespace kvsim::testing {
namespace {

using model::Activity;
using model::Board;

constexpr std::size_t kBig0 = 0;
constexpr std::size_t kBig1 = 1;
constexpr std::size_t kLittle = 2;

/// The x between two bounds at which a function with one minimum has it.
template <class Function>
double minimum(double low, double high, Function&& function) {
  constexpr double kGolden = 0.6180339887498949;
  for (int i = 0; i < 14; ++i) {
    const double left = high - kGolden * (high - low);
    const double right = low + kGolden * (high - low);
    if (function(left) < function(right)) {
      high = right;
    } else {
      low = left;
    }
  }
  return (low + high) / 2;
}

/// Tj of half an hour at 20 W and before and after it, by the power that was logged. A logged power is that
/// of the ten seconds before.
void orin_soak(const HeatReport& report) {
  report.title(
      "Orin Nano in a closed case, 6.5 to 20 W and back, Tj (Hi5808/research-papers)   bound   simulated");
  const std::vector<Row> log = read_table("orin_nano_soak");
  const config::DeviceSpec device = config::load_device("orin_nano_8gb");
  model::ThermalNetwork made =
      model::make_network(config::chosen_case(*device.thermal), device.thermal->ambient);
  std::vector<Watts> power(made.network.size());
  power[0] = Watts(log[1][2] / 1000);
  made.network.settle(power);
  double squares = 0;
  double worst = 0;
  for (std::size_t i = 1; i < log.size(); ++i) {
    power[0] = Watts(log[i][2] / 1000);
    made.network.advance(power, time_of(log[i][0] - log[i - 1][0]));
    const double error = made.network.temperature(0).count() - log[i][1];
    squares += error * error;
    worst = std::max(worst, std::abs(error));
  }
  const double rms = std::sqrt(squares / static_cast<double>(log.size() - 1));
  report.claim(fmt::format("root mean square error {:.2f} C, at most 0.6 (worst {:.1f} C)", rms, worst),
               rms <= 0.6);
}

/// sbc-bench sets all governors to performance.
config::DeviceSpec rock_5a(double resistance) {
  config::DeviceSpec device = config::load_device("rk3588_4gb");
  device.thermal->case_name = "bare";
  link_of(device, "board", config::kAmbient).resistance = KelvinPerWatt(resistance);
  for (config::ClockDomainSpec& domain : device.clocks->domains) {
    domain.governor = config::ClockGovernor::performance;
  }
  return device;
}

/// Running threads between two rows of the log, from the load averages of the last minute there:
/// kernel/sched/loadavg.c, load = threads + (load before - threads) e^(-time / 60 s).
double threads_between(const Row& before, const Row& after) {
  const double keep = std::exp(-(after[0] - before[0]) / 60);
  return std::clamp((after[4] - before[4] * keep) / (1 - keep), 0.0, 8.0);
}

/// The big cores first; the DRAM's power is assumed.
Activity rock_activity(const Board& board, double threads) {
  Activity activity;
  activity.domains.resize(board.domains());
  double left = threads;
  for (const std::size_t domain : {kBig0, kBig1, kLittle}) {
    const double cores = static_cast<double>(board.domain(domain).spec().cores);
    activity.domains[domain].busy = std::min(left, cores) / cores;
    activity.domains[domain].busiest = std::min(left, 1.0);
    left -= std::min(left, cores);
  }
  activity.channel_load = {0.2, 0.2, 0.2, 0.2};
  activity.dram = Watts(0.8);
  return activity;
}

/// What a run over a log of load shows.
struct RockRun {
  double squares = 0;
  double coolest = 1000;  ///< with all cores at work
  double hottest = 0;
  Row top;    ///< share of time at the top, by domain
  Row least;  ///< slowest clock, MHz
};

/// All cores work (7-zip and cpuminer) since ten seconds and on to the end.
constexpr double kAllCores = 1448;

RockRun run_rock(double resistance, const std::vector<Row>& log) {
  const config::DeviceSpec device = rock_5a(resistance);
  Board board(device);
  board.settle(rock_activity(board, log[0][4] / 2));  // its start is not logged
  RockRun result{.top = Row(3), .least = Row(3, 1e9)};
  for (std::size_t i = 1; i < log.size(); ++i) {
    const Activity activity = rock_activity(board, threads_between(log[i - 1], log[i]));
    const Picoseconds end = time_of(log[i][0]);
    while (board.now() < end) {
      Row at_top(3);
      for (const std::size_t domain : {kBig0, kBig1, kLittle}) {
        const model::ClockDomain& clocked = board.domain(domain);
        at_top[domain] = clocked.point() == clocked.table().top() ? 1 : 0;
        result.least[domain] = std::min(result.least[domain], clocked.clock().as_double() / 1e6);
      }
      const Picoseconds passed = board.advance(activity, end - board.now()).elapsed;
      if (seconds(board.now()) > kAllCores) {
        result.coolest = std::min(result.coolest, board.temperature(0).count());
        result.hottest = std::max(result.hottest, board.temperature(0).count());
      }
      for (std::size_t domain = 0; domain < 3; ++domain) {
        result.top[domain] += at_top[domain] * seconds(passed) / log.back()[0];
      }
    }
    const double reading = board.state().sensors.front().temperature.count();
    result.squares += std::pow(reading - log[i][1], 2) / static_cast<double>(log.size() - 1);
  }
  return result;
}

void rock_bare(const HeatReport& report) {
  const std::vector<Row> log = read_table("rock_5a_bare");
  Row top(3);
  double all = 0;  // of the little cores: for the big ones clocks below 1008 MHz are not listed
  for (const Row& row : read_table("rock_5a_residency")) {
    const auto domain = static_cast<std::size_t>(row[0]);
    all += domain == kLittle ? row[2] : 0;
    top[domain] += row[1] == (domain == kLittle ? 1800 : 2400) ? row[2] : 0;
  }
  const double resistance = minimum(9, 14, [&](double r) { return run_rock(r, log).squares; });
  const RockRun run = run_rock(resistance, log);
  report.title(
      fmt::format("ROCK 5A without a heat sink, sbc-bench results/3XTA.txt; fitted: {:.2f} K/W from board to "
                  "ambient, r.m.s. {:.1f} C      measured simulated",
                  resistance, std::sqrt(run.squares)));
  report.claim(fmt::format("with all cores it holds {:.1f} to {:.1f} C (measured 83.2 to 85.0)", run.coolest,
                           run.hottest),
               run.coolest >= 83 && run.hottest <= 86);
  report.claim(fmt::format("both kinds of cores step down, to {:.0f}, {:.0f} and {:.0f} MHz",
                           run.least[kBig0], run.least[kBig1], run.least[kLittle]),
               run.least[kBig0] < 2208 && run.least[kBig1] < 2208 && run.least[kLittle] < 1608);
  const char* names[] = {"Cortex-A76 0", "Cortex-A76 1", "Cortex-A55"};
  for (const std::size_t domain : {kBig0, kBig1, kLittle}) {
    report.row({.what = fmt::format("{}: percent of the time at its top clock", names[domain]),
                .measured = 100 * top[domain] / all,
                .simulated = 100 * run.top[domain],
                .bound = 15});
  }
}

struct PiRun {
  double power = 0;  ///< means
  double clock = 0;
  double coolest = 1000;
  double hottest = 0;
  double slowest = 1e9;
  double fastest = 0;
};

/// Twenty minutes of decoding on four cores, of which the last five are looked at.
PiRun run_pi(double resistance) {
  config::DeviceSpec device = config::load_device("raspberry_pi_500");
  link_of(device, "board", config::kAmbient).resistance = KelvinPerWatt(resistance);
  Board board(device);
  Activity activity;
  activity.domains = {{.busy = 1, .busiest = 1, .intensity = 1}};
  activity.channel_load = {0.8};
  activity.dram = Watts(1.0);
  board.settle(activity);
  PiRun result;
  Joules start;
  for (int second = 0; second < 1200; ++second) {
    if (second == 900) {
      start = board.energy();
    }
    const Picoseconds end = board.now() + time_of(1);
    while (board.now() < end) {
      board.advance(activity, end - board.now());
    }
    if (second >= 900) {
      const double temperature = board.state().sensors.front().temperature.count();
      const double clock = board.domain(0).clock().as_double() / 1e6;
      result.coolest = std::min(result.coolest, temperature);
      result.hottest = std::max(result.hottest, temperature);
      result.slowest = std::min(result.slowest, clock);
      result.fastest = std::max(result.fastest, clock);
      result.clock += clock / 300;
    }
  }
  result.power = (board.energy() - start).count() / 300;
  return result;
}

void pi_500(const HeatReport& report) {
  const double resistance = minimum(3, 7, [](double r) { return std::abs(run_pi(r).clock - 2300); });
  const PiRun run = run_pi(resistance);
  report.title(
      fmt::format("Raspberry Pi 500 decoding on four cores, geerlingguy/sbc-reviews issue 60; fitted: {:.2f} "
                  "K/W from board to ambient      measured simulated",
                  resistance));
  report.row({.what = "power, W", .measured = 10.4, .simulated = run.power, .bound = 0.5});
  report.claim(fmt::format("it holds {:.1f} to {:.1f} C (80 to 85)", run.coolest, run.hottest),
               run.coolest >= 79 && run.hottest <= 85);
  report.claim(fmt::format("at {:.0f} to {:.0f} MHz (2200 to 2400)", run.slowest, run.fastest),
               run.slowest >= 2200 && run.fastest <= 2400 && run.slowest < 2400);
}

}  // namespace

void measure_heat(const HeatReport& report) {
  orin_soak(report);
  rock_bare(report);
  pi_500(report);
  iphone(report);
}

}  // namespace kvsim::testing
