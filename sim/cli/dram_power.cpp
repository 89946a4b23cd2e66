// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/dram_power.h"

#include <fmt/format.h>

#include "configs/error/error.h"
#include "models/dram/energy.h"

namespace kvsim::sim {

PowerRecorder::PowerRecorder(const DramSetup& setup, const std::string& path, Picoseconds interval,
                             model::RequestPlayer& player)
    : setup_(setup), path_(path), interval_(interval), rails_(model::rails_of(setup.part)) {
  if (!setup.part.energy) {
    throw UserError(fmt::format("--power-over-time: {} has no energy", setup.part_id));
  }
  file_.open(path);
  if (!file_) {
    throw UserError(fmt::format("{}: cannot be written", path));
  }
  file_ << "time_ns,total_mw";
  for (std::size_t i = 0; i < model::kCommandParts; ++i) {
    file_ << ',' << to_string(static_cast<model::EnergyPart>(i)) << "_mw";
  }
  file_ << ",background_mw";
  for (const model::Rail& rail : rails_) {
    if (rails_.size() > 1) {
      file_ << ',' << rail.name << "_mw";
    }
  }
  file_ << '\n';
  player.sample_activity(interval, &samples_);
}

void PowerRecorder::write(const model::DramActivity& until, Picoseconds time) {
  const model::DramActivity step = until - before_;
  const auto milliwatts = [&](Joules energy) {
    return fmt::format("{:.3f}", model::mean_power(energy, time - from_).count() * 1e3);
  };
  const model::EnergyAccount account = energy_of(*setup_.part.energy, step);
  file_ << fmt::format("{}", nanoseconds(from_)) << ',' << milliwatts(account.total());
  for (std::size_t i = 0; i < model::kCommandParts; ++i) {
    file_ << ',' << milliwatts(account.parts[i]);
  }
  file_ << ',' << milliwatts(account.background());
  for (const model::Rail& rail : rails_) {
    if (rails_.size() > 1) {
      file_ << ',' << milliwatts(energy_of(rail.energy, step).total());
    }
  }
  file_ << '\n';
  before_ = until;
  from_ = time;
}

void PowerRecorder::flush() {
  for (const model::DramActivity& sample : samples_) {
    write(sample, from_ + interval_);
  }
  samples_.clear();
}

void PowerRecorder::finish(const model::PlayResult& result) {
  flush();
  if (result.elapsed > from_) {
    write(result.activity, result.elapsed);
  }
  file_.close();
  if (!file_) {
    throw UserError(fmt::format("{}: cannot be written to its end (disk full?)", path_));
  }
}

}  // namespace kvsim::sim
