// SPDX-License-Identifier: Apache-2.0
#include "models/access_player/access_player.h"

#include <algorithm>
#include <utility>

#include "configs/error/error.h"
#include "models/cpu/cpu_core.h"

namespace kvsim::model {

using trace::Access;

namespace {

/// Ways of a private cache (assumed; the Cortex-A76's has 8).
constexpr std::int64_t kPrivateWays = 8;
/// Lines outstanding, so that no window ever runs dry: as much as CpuCore has.
constexpr std::int64_t kOutstanding = (32 << 10) / kLineBytes;

/// A core that has none still has the line in hand.
config::CacheSpec private_cache(const config::CoreSpec& core) {
  const Bytes size = std::max(core.l2_size, Bytes(kLineBytes));
  return {.size = size,
          .ways = std::min(size.count() / kLineBytes, kPrivateWays),
          .line = Bytes(kLineBytes),
          .latency = core.l2_latency,
          .bandwidth = {}};
}

Segment line_segment(trace::Address line, Access access, Owner owner) {
  Segment segment;
  segment.address = line;
  segment.row_bytes = segment.stride = Bytes(kLineBytes);
  segment.access = access;
  segment.owner = owner;
  return segment;
}

}  // namespace

AccessPlayer::AccessPlayer(const config::DeviceSpec& device)
    : core_(device.clusters.front().core),
      hit_time_(Bytes(kLineBytes) / device.llc.bandwidth),
      path_(make_memory_path(device, Granularity::burst)),
      stream_(path_->add_stream(window_of(device.clusters.front()))),
      private_(private_cache(core_)),
      llc_(device.llc),
      bus_(path_->bus_time()) {
  stream_.begin(Picoseconds());
}

void AccessPlayer::work(Picoseconds time, std::int64_t instructions) {
  work_ += time;
  instructions_ += instructions;
}

void AccessPlayer::access(trace::Address line, Access access, Owner owner) {
  const CacheAccess near = private_.access(line, access, owner);
  if (near.hit) {
    ++levels_[0].hits;
    return;
  }
  ++levels_[0].fills;
  const CacheAccess far = llc_.access(line, Access::read, owner);
  if (far.hit) {
    ++levels_[1].hits;
    lead_in_ += std::max(std::exchange(work_, Picoseconds()), hit_time_);
  } else {
    ++levels_[1].fills;
    lead_in_ += std::exchange(work_, Picoseconds());
    fill(line, owner);
  }
  if (far.evicted) {
    write_back(*far.evicted);
  }
  if (near.evicted) {
    ++levels_[0].write_backs;
    if (const auto evicted = llc_.access(near.evicted->address, Access::write, near.evicted->owner).evicted) {
      write_back(*evicted);
    }
  }
}

/// Loads reach as far ahead as the reorder buffer holds instructions. What the core does until the line after
/// it is work on this line, so it is held back until that is known.
void AccessPlayer::fill(trace::Address line, Owner owner) {
  flush();
  const std::int64_t apart = std::max<std::int64_t>(1, std::exchange(instructions_, 0));
  Segment segment = line_segment(line, Access::read, owner);
  segment.demand_lines = std::clamp<std::int64_t>(core_.reorder_buffer / apart, 1, core_.demand_misses);
  segment.lead_in = std::exchange(lead_in_, Picoseconds());
  moved_.push_back({line, Access::read});
  held_.push_back(segment);
}

void AccessPlayer::write_back(const WriteBack& line) {
  ++levels_[1].write_backs;
  Segment segment = line_segment(line.address, Access::write, line.owner);
  segment.posted = true;
  moved_.push_back({line.address, Access::write});
  held_.push_back(segment);
}

void AccessPlayer::flush() {
  if (!held_.empty() && held_.front().access == Access::read) {
    held_.front().per_line = std::exchange(lead_in_, Picoseconds());
  }
  for (const Segment& segment : held_) {
    push(segment);
  }
  held_.clear();
}

void AccessPlayer::push(const Segment& segment) {
  stream_.push(segment);
  ++outstanding_;
  while (outstanding_ >= kOutstanding) {
    run();
  }
}

/// Simulates until the core has used a line more.
void AccessPlayer::run() {
  path_->run();
  check(!stream_.finished().empty(), "what was asked for comes");
  while (!stream_.finished().empty()) {
    stream_.finished().pop();
    --outstanding_;
  }
}

AccessPlayer::Played AccessPlayer::drain() {
  lead_in_ += std::exchange(work_, Picoseconds());
  instructions_ = 0;
  flush();
  while (outstanding_ > 0) {
    run();
  }
  const Picoseconds now = stream_.used_until() + std::exchange(lead_in_, Picoseconds());
  const BusTime bus = path_->bus_time();
  const Played played{now, settle(now - drained_, bus - bus_, stream_.engine_time())};
  bus_ = bus;
  drained_ = now;
  stream_.begin(now);
  return played;
}

}  // namespace kvsim::model
