// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/dram_power.h"

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"
#include "models/dram/energy.h"

namespace kvsim::sim {

namespace {

constexpr std::int64_t kMostRows = 1'048'575;  // of a spreadsheet below its header
constexpr std::size_t kBuffer = std::size_t{1} << 20;

const DramSetup& with_energy(const DramSetup& setup) {
  if (!setup.part.energy) {
    throw UserError(fmt::format("--power-over-time: {} has no energy", setup.part_id));
  }
  return setup;
}

}  // namespace

PowerRecorder::PowerRecorder(const DramSetup& setup, const std::string& path, Picoseconds interval,
                             model::RequestPlayer& player)
    : setup_(with_energy(setup)), file_(path), interval_(interval), rails_(model::rails_of(setup.part)) {
  text_ = "time_ns,total_mw";
  for (std::size_t i = 0; i < model::kCommandParts; ++i) {
    text_ += fmt::format(",{}_mw", to_string(static_cast<model::EnergyPart>(i)));
  }
  text_ += ",background_mw";
  for (const model::Rail& rail : rails_) {
    if (rails_.size() > 1) {
      text_ += fmt::format(",{}_mw", rail.name);
    }
  }
  text_ += '\n';
  player.sample_activity(interval, &samples_);
}

void PowerRecorder::write(const model::DramActivity& until, Picoseconds time) {
  const model::DramActivity step = until - before_;
  const auto milliwatts = [&](Joules energy) {
    return fmt::format("{:.3f}", model::mean_power(energy, time - from_).count() * 1e3);
  };
  const model::EnergyAccount account = energy_of(*setup_.part.energy, step);
  text_ += fmt::format("{},{}", nanoseconds(from_), milliwatts(account.total()));
  for (std::size_t i = 0; i < model::kCommandParts; ++i) {
    text_ += ',' + milliwatts(account.parts[i]);
  }
  text_ += ',' + milliwatts(account.background());
  for (const model::Rail& rail : rails_) {
    if (rails_.size() > 1) {
      text_ += ',' + milliwatts(energy_of(rail.energy, step).total());
    }
  }
  text_ += '\n';
  before_ = until;
  from_ = time;
  if (++rows_ > kMostRows) {
    throw UserError(fmt::format("--power-interval: {} makes more than {} rows; give a longer interval",
                                to_text(interval_), kMostRows));
  }
  if (text_.size() > kBuffer) {
    write_text();
  }
}

void PowerRecorder::write_text() {
  file_.write(text_);
  text_.clear();
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
  write_text();
  file_.commit();
}

}  // namespace kvsim::sim
