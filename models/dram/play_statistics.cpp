// SPDX-License-Identifier: Apache-2.0
#include "models/dram/play_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kvsim::model {

BusCycles& BusCycles::operator+=(const BusCycles& other) {
  data += other.data;
  turnaround += other.turnaround;
  refresh += other.refresh;
  activate += other.activate;
  command += other.command;
  idle += other.idle;
  return *this;
}

ReadCycles read_cycles(const Served& served, const ClockTiming& timing) {
  const Cycle activated = std::clamp(served.activated, served.opening, served.column);
  const Cycle opened = std::min(timing.tRCD, served.column - activated);
  return {.queue = served.opening - served.arrival - served.refreshing,
          .refresh = served.refreshing,
          .precharge = activated - served.opening,
          .activate = opened,
          .column = served.data_start - served.column,
          .bus = served.column - activated - opened + served.data_end - served.data_start};
}

// --- histogram
// ----------------------------------------------------------------------------------------------------

std::size_t Histogram::bucket_of(std::int64_t value) {
  const auto v = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
  const int shift = std::max(0, static_cast<int>(std::bit_width(v)) - 1 - kFineBits);
  return (static_cast<std::size_t>(shift) << kFineBits) + static_cast<std::size_t>(v >> shift);
}

std::int64_t Histogram::lower_end(std::size_t bucket) {
  constexpr std::size_t kFine = std::size_t{1} << kFineBits;
  if (bucket < 2 * kFine) {
    return static_cast<std::int64_t>(bucket);
  }
  const std::size_t shift = (bucket >> kFineBits) - 1;
  return static_cast<std::int64_t>((bucket - (shift << kFineBits)) << shift);
}

void Histogram::add(std::int64_t value) {
  ++counts_[bucket_of(value)];
  ++count_;
  max_ = std::max(max_, value);
}

std::int64_t Histogram::quantile(double share) const {
  const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_)));
  std::int64_t seen = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen >= wanted && seen > 0) {
      return std::min(max_, lower_end(bucket + 1) - 1);
    }
  }
  return 0;
}

std::vector<Histogram::Bucket> Histogram::octaves() const {
  std::vector<Bucket> result;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (counts_[bucket] == 0) {
      continue;
    }
    const auto value = static_cast<std::uint64_t>(lower_end(bucket));
    const auto from = static_cast<std::int64_t>(std::bit_floor(value));
    if (result.empty() || result.back().from != from) {
      result.push_back({.from = from, .to = from == 0 ? 1 : from * 2, .count = 0});
    }
    result.back().count += counts_[bucket];
  }
  return result;
}

// --- data bus
// -----------------------------------------------------------------------------------------------------

void BusAccount::add(const Served& served) {
  const Cycle data = served.bursts * timing_.burst;
  const Cycle latency = served.data_start - served.column;
  // Idle until something was asked for; then waiting for its bank, and after that for what held it last.
  const Cycle asked = std::clamp(served.unhindered, end_, served.data_start);
  const Cycle ready = std::clamp(served.ready + latency, asked, served.data_start);
  cycles_.idle += asked - end_;
  (served.row_owner == Owner::refresh ? cycles_.refresh : cycles_.activate) += ready - asked;
  const bool opened = served.row_state != RowState::hit;  // then activates had the command bus
  (served.held_by == Owner::turnaround ? cycles_.turnaround
   : opened                            ? cycles_.activate
                                       : cycles_.command) += served.data_start - ready;
  cycles_.data += data;
  cycles_.command += served.data_end - served.data_start - data;
  end_ = served.data_end;
}

BusCycles BusAccount::cycles(Cycle until) const {
  BusCycles all = cycles_;
  all.idle += until - end_;
  return all;
}

}  // namespace kvsim::model
