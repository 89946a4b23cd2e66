// SPDX-License-Identifier: Apache-2.0
#include "models/masters/transfer_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "traces/record/spread.h"

namespace kvsim::model {
namespace {

trace::Access access_of(config::MasterAccess access) {
  return access == config::MasterAccess::read ? trace::Access::read : trace::Access::write;
}

/// `count` periods of a frequency, from 0 on, each rounded by itself, so that no error adds up.
Picoseconds periods(std::int64_t count, Hertz rate) {
  return Picoseconds(std::llround(static_cast<double>(count) * kPicosecondsPerSecond / rate.as_double()));
}

class Scan final : public TransferSource {
 public:
  explicit Scan(const config::ScanSpec& spec) : spec_(spec), line_time_(config::line_time(spec)) {}

  Transfer next() override {
    // The first line's turn comes when the FIFO can have been filled.
    const Picoseconds turn = line_time_ * spec_.buffer_lines + periods(line_ / spec_.height, spec_.rate) +
                             line_time_ * (line_ % spec_.height);
    ++line_;
    const Picoseconds slack = line_time_ * spec_.buffer_lines;
    const bool screen = spec_.access == config::MasterAccess::read;
    const Picoseconds at = screen ? turn - slack : turn;
    return {.at = at,
            .deadline = at + slack,
            .born = at,
            .bytes = config::line_bytes(spec_),
            .access = access_of(spec_.access)};
  }

 private:
  config::ScanSpec spec_;
  Picoseconds line_time_;
  std::int64_t line_ = 0;
};

class Radio final : public TransferSource {
 public:
  Radio(const config::RadioSpec& spec, std::uint64_t seed) : spec_(spec), random_(seed) {}

  Transfer next() override {
    const Picoseconds mean = spec_.aggregate / spec_.rate;
    born_ += Picoseconds(std::llround(mean.as_double() * (0.5 + random_.unit())));
    Picoseconds heard = born_;
    if (spec_.sleep) {
      const std::int64_t beacon = spec_.sleep->count();
      heard = Picoseconds((born_.count() + beacon - 1) / beacon * beacon);
    }
    at_ = std::max(heard, at_ + spec_.aggregate / spec_.air);
    return {.at = at_,
            .deadline = std::nullopt,
            .born = born_,
            .bytes = spec_.aggregate,
            .access = access_of(spec_.access)};
  }

 private:
  config::RadioSpec spec_;
  trace::SplitMix64 random_;
  Picoseconds born_;
  Picoseconds at_;
};

class Burst final : public TransferSource {
 public:
  explicit Burst(const config::BurstSpec& spec) : spec_(spec) {}

  Transfer next() override {
    if (spec_.on && at_ - began_ >= *spec_.on) {
      began_ += *spec_.on + spec_.off;
      at_ = began_;
    }
    const Transfer transfer{.at = at_,
                            .deadline = spec_.deadline ? std::optional(at_ + *spec_.deadline) : std::nullopt,
                            .born = at_,
                            .bytes = spec_.bytes,
                            .access = access_of(spec_.access)};
    at_ += spec_.period;
    return transfer;
  }

 private:
  config::BurstSpec spec_;
  Picoseconds began_;
  Picoseconds at_;
};

/// From its beginning again, or nothing any more.
class Series final : public TransferSource {
 public:
  explicit Series(const config::SeriesSpec& spec) : spec_(spec) {}

  Transfer next() override {
    if (next_ == spec_.items.size()) {
      if (!spec_.repeat) {
        return {.at = kNoMore,
                .deadline = std::nullopt,
                .born = kNoMore,
                .bytes = Bytes(),
                .access = access_of(spec_.access)};
      }
      next_ = 0;
      began_ += *spec_.repeat;
    }
    const config::SeriesItem& item = spec_.items[next_++];
    const Picoseconds at = began_ + item.at;
    return {.at = at,
            .deadline = spec_.deadline ? std::optional(at + *spec_.deadline) : std::nullopt,
            .born = at,
            .bytes = item.bytes,
            .access = access_of(spec_.access)};
  }

 private:
  static constexpr Picoseconds kNoMore{std::numeric_limits<std::int64_t>::max() / 2};

  config::SeriesSpec spec_;
  std::size_t next_ = 0;
  Picoseconds began_;
};

class Load final : public TransferSource {
 public:
  explicit Load(const config::CpuLoadSpec& spec)
      : spec_(spec), bytes_(static_cast<std::int64_t>(spec.traffic.count() * seconds(spec.slice))) {}

  Transfer next() override {
    at_ += spec_.slice;
    return {.at = at_, .deadline = std::nullopt, .born = at_, .bytes = bytes_, .access = trace::Access::read};
  }

 private:
  config::CpuLoadSpec spec_;
  Bytes bytes_;
  Picoseconds at_;
};

}  // namespace

std::unique_ptr<TransferSource> make_transfers(const config::MasterSpec& master, std::uint64_t seed) {
  if (master.scan) {
    return std::make_unique<Scan>(*master.scan);
  }
  if (master.radio) {
    return std::make_unique<Radio>(*master.radio, seed);
  }
  if (master.burst) {
    return std::make_unique<Burst>(*master.burst);
  }
  if (master.series) {
    return std::make_unique<Series>(*master.series);
  }
  return std::make_unique<Load>(*master.load);
}

}  // namespace kvsim::model
