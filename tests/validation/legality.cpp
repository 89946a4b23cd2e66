// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/legality.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "configs/error/test_support.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/dram_temperature.h"
#include "configs/spec/resolve.h"
#include "models/dram/channel.h"
#include "models/dram/legality/checker.h"

namespace kvsim::testing {

using config::RefreshMode;
using model::Cycle;

namespace {

constexpr std::int64_t kCommandsOfEach = 250'000;  ///< of each controller
constexpr std::int64_t kMostWaiting = 400;         ///< requests, so that memory does not grow

std::vector<config::DramPartSpec> parts_of(config::DramStandard standard) {
  std::vector<config::DramPartSpec> parts;
  for (const std::string& id : config::catalogue_ids("dram")) {
    config::DramPartSpec part = config::load_dram_part(id);
    if (part.standard == standard) {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

std::int64_t draw(Random& random, std::int64_t values) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(values)));
}

config::MemoryControllerSpec random_controller(const config::DramPartSpec& part, Random& random) {
  config::MemoryControllerSpec c;
  c.channels = 1;
  c.ranks = std::int64_t{1} << draw(random, part.banks > 16 ? 2 : 3);
  const bool per_bank = part.timing.tRFCpb != config::ClockedTime{} && draw(random, 2) == 0;
  c.refresh = per_bank ? RefreshMode::per_bank : RefreshMode::all_bank;
  c.temperature = Celsius(static_cast<double>(20 + draw(random, per_bank ? 60 : 75)));
  c.postponed_refreshes = draw(random, most_postponed(part) + 1);
  c.page_policy = static_cast<config::PagePolicy>(draw(random, 3));
  c.page_timeout = Picoseconds(draw(random, 2'000'000));
  c.queue = static_cast<config::QueueKind>(draw(random, 2));
  c.read_queue = 1 + draw(random, 64);
  c.write_queue = 1 + draw(random, 64);
  c.write_high = 1 + draw(random, c.write_queue);
  c.write_low = draw(random, c.write_high);
  c.age_cap = Picoseconds(draw(random, 4'000'000));
  if (draw(random, 4) != 0) {
    c.power_down = Picoseconds(draw(random, 2'000'000));
  }
  if (draw(random, 4) != 0) {
    c.self_refresh = Picoseconds(draw(random, 9'000'000));
  }
  return c;
}

/// Bursts of arrivals and pauses, one direction or both, few banks and rows or many.
class RandomRuns {
 public:
  RandomRuns(std::int64_t banks, std::int64_t rows, Random& random)
      : banks_(banks), rows_(rows), random_(random) {}

  [[nodiscard]] model::RowRun next() {
    if (left_-- == 0) {
      left_ = 200;
      arrival_ += draw(random_, 30'000);  // up to several refresh intervals
      gap_ = draw(random_, 3) == 0 ? 1 : 1 + draw(random_, 200);
      writes_ = draw(random_, 101);
      bank_range_ = 1 + draw(random_, banks_);
      row_range_ = draw(random_, 2) == 0 ? 1 + draw(random_, 4) : rows_;
    }
    arrival_ += draw(random_, gap_);
    const bool write = draw(random_, 100) < writes_;
    return {.arrival = arrival_,
            .row = static_cast<std::uint32_t>(draw(random_, row_range_)),
            .bank = static_cast<std::uint16_t>(draw(random_, bank_range_)),
            .bursts = static_cast<std::uint16_t>(1 + draw(random_, 4)),
            .access = write ? trace::Access::write : trace::Access::read,
            .masked = write && draw(random_, 4) == 0};
  }

 private:
  std::int64_t banks_, rows_;
  Random& random_;
  Cycle arrival_ = 0;
  std::int64_t left_ = 0, gap_ = 1, writes_ = 0, bank_range_ = 1, row_range_ = 1;
};

class CheckedChannel {
 public:
  CheckedChannel(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller,
                 LegalityCount& count)
      : channel_(part, controller, 1),
        checker_(warm(part, controller), conditions(part, controller)),
        name_(part.name),
        count_(count) {
    channel_.log_commands(&log_);
  }

  void add(model::RowRun run) {
    while (channel_.next_time() < run.arrival || waiting_ >= kMostWaiting) {
      step();
    }
    run.arrival = std::max(run.arrival, channel_.last_command());
    channel_.add(run);
    ++waiting_;
  }
  void finish() {
    while (channel_.next_time() != model::ChannelController::kNever && waiting_ > 0) {
      step();
    }
  }

 private:
  static config::DramPartSpec warm(config::DramPartSpec part,
                                   const config::MemoryControllerSpec& controller) {
    part.timing = config::timing_at(part, controller.temperature);
    return part;
  }
  static model::legality::Conditions conditions(const config::DramPartSpec& part,
                                                const config::MemoryControllerSpec& controller) {
    return {.ranks = controller.ranks,
            .refresh = controller.refresh,
            .refresh_rate = config::refresh_rate(part, controller.temperature)};
  }

  void step() {
    model::Served served;
    if (channel_.step(served) && served.last) {
      --waiting_;
    }
    for (const model::IssuedCommand& command : log_) {
      ++count_.commands;
      ++count_.by_command.at(static_cast<std::size_t>(command.command));
      for (const model::legality::Violation& violation : checker_.check(command)) {
        if (count_.violations++ == 0) {
          count_.first =
              fmt::format("{}, clock {}: {}: {}", name_, command.clock, violation.rule, violation.text);
        }
      }
    }
    log_.clear();
  }

  model::ChannelController channel_;
  model::legality::Checker checker_;
  std::string name_;
  LegalityCount& count_;
  std::vector<model::IssuedCommand> log_;
  std::int64_t waiting_ = 0;
};

}  // namespace

LegalityCount check_standard(config::DramStandard standard, std::int64_t commands) {
  Random random(static_cast<std::uint64_t>(standard) + 1);
  const std::vector<config::DramPartSpec> parts = parts_of(standard);
  LegalityCount count;
  while (count.commands < commands) {
    const config::DramPartSpec& part = parts[static_cast<std::size_t>(count.controllers) % parts.size()];
    const config::MemoryControllerSpec controller = random_controller(part, random);
    RandomRuns runs(part.banks * controller.ranks, part.rows, random);
    CheckedChannel channel(part, controller, count);
    for (const std::int64_t end = count.commands + kCommandsOfEach; count.commands < end;) {
      channel.add(runs.next());
    }
    channel.finish();
    ++count.controllers;
  }
  return count;
}

}  // namespace kvsim::testing
