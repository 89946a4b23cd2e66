// SPDX-License-Identifier: Apache-2.0
// A phone that decodes for ten minutes: what two constants of heat, fitted on the beginning, say of the end.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "configs/spec/resolve.h"
#include "models/board/board.h"
#include "tests/validation/heat_data.h"

namespace kvsim::testing {
namespace {

using model::Activity;
using model::Board;

/// The resistance from the SoC to the body, K/W, and the body's capacity, J/K.
struct Constants {
  double resistance = 0;
  double capacity = 0;
};

/// Of a token, memory's part: 1.3 GB (2.3 billion parameters at 4.5 bits) at 4 pJ a bit, the DRAM's
/// read_burst.
constexpr double kDramJoules = 1.3e9 * 8 * 4e-12;

config::DeviceSpec phone(const Constants& constants) {
  config::DeviceSpec device = config::load_device("iphone_17_pro");
  link_of(device, "soc", "body").resistance = KelvinPerWatt(constants.resistance);
  for (config::ThermalNodeSpec& node : device.thermal->cases.front().nodes) {
    if (node.name == "body") {
      node.capacity = JoulesPerKelvin(constants.capacity);
    }
  }
  return device;
}

/// As the catalogue has them.
Constants catalogued() {
  config::DeviceSpec device = config::load_device("iphone_17_pro");
  Constants constants{.resistance = link_of(device, "soc", "body").resistance.count()};
  for (const config::ThermalNodeSpec& node : device.thermal->cases.front().nodes) {
    constants.capacity = node.name == "body" ? node.capacity->count() : constants.capacity;
  }
  return constants;
}

struct PhoneRun {
  std::vector<double> speeds;  ///< tokens/s, means between the rows of the log
  double power = 0;            ///< W, mean
};

/// Up to the last row at or before `until`. A token takes so many clocks of the GPU, the first row's.
PhoneRun run_phone(const Constants& constants, const std::vector<Row>& log, double until) {
  Board board(phone(constants));
  const double per_hertz =
      log[0][1] / board.domain(0).table().clock(board.domain(0).table().top()).as_double();
  Activity activity;
  activity.domains.resize(board.domains());
  activity.channel_load.resize(4);
  board.settle(activity);
  activity.domains[0] = {.busy = 1, .busiest = 1, .intensity = 1};
  PhoneRun run;
  const Joules before = board.energy();
  for (std::size_t i = 1; i < log.size() && log[i][0] <= until; ++i) {
    const Picoseconds begin = board.now(), end = time_of(log[i][0]);
    double tokens = 0;
    while (board.now() < end) {
      const double speed = per_hertz * board.domain(0).clock().as_double();
      activity.dram = Watts(speed * kDramJoules);
      tokens += speed * seconds(board.advance(activity, end - board.now()).elapsed);
    }
    run.speeds.push_back(tokens / seconds(end - begin));
  }
  run.power = (board.energy() - before).count() / seconds(board.now());
  return run;
}

std::vector<double> errors(const Constants& constants, const std::vector<Row>& log, double until) {
  std::vector<double> result = run_phone(constants, log, until).speeds;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] -= log[i + 1][1];
  }
  return result;
}

double squares(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) {
    sum += error * error;
  }
  return sum;
}

/// Gauss and Newton's method in the logarithms of the constants, with steps of at most a factor of 1.5.
Constants fit(const std::vector<Row>& log, double until) {
  constexpr double kTry = 0.05;
  constexpr int kRounds = 12;
  Constants best{.resistance = 5, .capacity = 100};
  std::vector<double> now = errors(best, log, until);
  for (int round = 0; round < kRounds; ++round) {
    const auto a = errors({best.resistance * std::exp(kTry), best.capacity}, log, until);
    const auto b = errors({best.resistance, best.capacity * std::exp(kTry)}, log, until);
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const double da = (a[i] - now[i]) / kTry, db = (b[i] - now[i]) / kTry;
      aa += da * da;
      ab += da * db;
      bb += db * db;
      ay -= da * now[i];
      by -= db * now[i];
    }
    const double det = aa * bb - ab * ab;
    const double most = std::log(1.5);
    const Constants next{best.resistance * std::exp(std::clamp((bb * ay - ab * by) / det, -most, most)),
                         best.capacity * std::exp(std::clamp((aa * by - ab * ay) / det, -most, most))};
    const std::vector<double> then = errors(next, log, until);
    if (squares(then) >= squares(now)) {
      break;
    }
    best = next;
    now = then;
  }
  return best;
}

}  // namespace

void iphone(const HeatReport& report) {
  struct Case {
    double seconds;  ///< fitted on so many
    double bound;    ///< of the speed at the end
  };
  constexpr std::array kCases{Case{360, 0.15}, Case{200, 0.25}};
  const std::vector<Row> log = read_table("iphone_17_pro_mlx");
  for (const Case& each : kCases) {
    const Constants fitted = fit(log, each.seconds);
    const PhoneRun run = run_phone(fitted, log, log.back()[0]);
    double measured = 0, simulated = 0, all = 0;
    for (std::size_t i = 0; i < run.speeds.size(); ++i) {
      all += std::pow(run.speeds[i] - log[i + 1][1], 2) / static_cast<double>(run.speeds.size());
      if (i + 3 >= run.speeds.size()) {
        measured += log[i + 1][1] / 3;
        simulated += run.speeds[i] / 3;
      }
    }
    report.title(fmt::format(
        "iPhone 17 Pro, MLX, Gemma 4 E2B in 4 bits (john-rocky/apple-silicon-llm-bench); fitted on the first "
        "{:.0f} s: {:.2f} K/W from SoC to body, {:.0f} J/K of body; r.m.s. {:.1f} tokens/s over all, {:.1f} "
        "W "
        "(measured 4.9)      measured simulated",
        each.seconds, fitted.resistance, fitted.capacity, std::sqrt(all), run.power));
    report.row({.what = "tokens/s at 600 s",
                .measured = measured,
                .simulated = simulated,
                .bound = each.bound * measured});
    if (each.seconds == kCases[0].seconds) {
      const Constants known = catalogued();
      report.claim("the catalogue has these constants",
                   std::abs(known.resistance / fitted.resistance - 1) < 0.05 &&
                       std::abs(known.capacity / fitted.capacity - 1) < 0.05);
    }
  }
}

}  // namespace kvsim::testing
