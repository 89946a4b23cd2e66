// SPDX-License-Identifier: Apache-2.0
#include "models/npu/tile_core.h"

#include <algorithm>

#include "configs/error/error.h"
#include "models/sram/sram.h"

namespace kvsim::model {

namespace {

using trace::TileMove;
using trace::TileStep;

/// A transaction, so that data can go on into the SRAM while more comes. Small, since what an idle channel
/// sends may wait for the end of another's (MemorySystem).
constexpr std::int64_t kSegment = 4 << 10;

bool contains(const std::vector<std::size_t>& all, std::size_t buffer) {
  return std::find(all.begin(), all.end(), buffer) != all.end();
}
bool contains(const std::vector<TileMove>& moves, std::size_t buffer) {
  return std::any_of(moves.begin(), moves.end(), [&](const TileMove& m) { return m.buffer == buffer; });
}

/// What was in the buffer before is of no use in this step.
bool fills(const TileStep& step, std::size_t buffer) {
  return contains(step.fresh, buffer) || contains(step.reserved, buffer) || contains(step.loads, buffer);
}

struct Piece {
  Segment segment;
  Bytes offset;  ///< in SRAM
  Bytes bytes;
};

/// The moves cut into transactions, which lie one behind the other in each buffer.
std::vector<Piece> pieces_of(const std::vector<TileMove>& moves, const trace::TilePlan& plan) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const trace::Extent& e = moves[i].extent;
    const bool behind = i > 0 && moves[i - 1].buffer == moves[i].buffer;
    Bytes at = behind ? pieces.back().offset + pieces.back().bytes : plan.buffers[moves[i].buffer].offset;
    const std::int64_t most = std::max<std::int64_t>(1, kSegment / e.row_bytes.count());
    for (std::int64_t row = 0; row < e.rows; row += most) {
      const std::int64_t rows = std::min<std::int64_t>(most, e.rows - row);
      const Bytes bytes = e.row_bytes * rows;
      pieces.push_back(
          {.segment = {.address = e.address + static_cast<trace::Address>((e.stride * row).count()),
                       .row_bytes = e.row_bytes,
                       .rows = rows,
                       .stride = e.stride,
                       .access = e.access,
                       .owner = data_owner(e.kind, e.access)},
           .offset = at,
           .bytes = bytes});
      at += bytes;
    }
  }
  return pieces;
}

std::vector<Segment> segments_of(const std::vector<Piece>& pieces) {
  std::vector<Segment> all;
  for (const Piece& piece : pieces) {
    all.push_back(piece.segment);
  }
  return all;
}

}  // namespace

TileCore::TileCore(const sc_core::sc_module_name& name, const config::NpuSpec& spec,
                   const trace::TilePlan& plan, std::size_t core, MacFormat format, MemoryPath& path)
    : sc_module(name),
      load_dma("load_dma", spec.dma_lines, path),
      store_dma("store_dma", spec.dma_lines, path),
      spec_(spec),
      plan_(plan),
      steps_(plan.cores.at(core)),
      period_(period(spec.clock)),
      macs_(format == MacFormat::int8 ? spec.int8_macs : spec.fp16_macs),
      live_(plan.buffers.size()),
      deaths_(steps_.size()) {
  find_deaths();
  SC_HAS_PROCESS(TileCore);
  SC_THREAD(load);
  SC_THREAD(compute);
  SC_THREAD(store);
}

/// From the end: a buffer's contents die in the last step before they are replaced.
void TileCore::find_deaths() {
  std::vector<bool> wanted(plan_.buffers.size());
  for (std::size_t i = steps_.size(); i-- > 0;) {
    for (const std::size_t buffer : steps_[i].uses) {
      if (!wanted[buffer] && !contains(deaths_[i], buffer)) {
        deaths_[i].push_back(buffer);
      }
    }
    for (const std::size_t buffer : steps_[i].uses) {
      wanted[buffer] = !fills(steps_[i], buffer);
    }
  }
}

void TileCore::take(std::size_t buffer) {
  while (live_[buffer]) {
    wait(progress_);
  }
  live_[buffer] = true;
  const trace::TileBuffer& taken = plan_.buffers[buffer];
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const trace::TileBuffer& other = plan_.buffers[i];
    check(i == buffer || !live_[i] || taken.offset + taken.bytes <= other.offset ||
              other.offset + other.bytes <= taken.offset,
          "no two things lie in one place of the SRAM");
  }
  in_sram_ += taken.bytes;
  check(taken.offset + taken.bytes <= spec_.sram.size && in_sram_ <= spec_.sram.size,
        "the SRAM holds no more than its size");
  counters_.most_in_sram = std::max(counters_.most_in_sram, in_sram_);
}

/// After arithmetic, what it alone needed; after the stores, what they sent.
void TileCore::release(std::size_t step, bool stored) {
  for (const std::size_t buffer : deaths_[step]) {
    if (contains(steps_[step].stores, buffer) == stored) {
      check(live_[buffer], "what dies has lived");
      live_[buffer] = false;
      in_sram_ -= plan_.buffers[buffer].bytes;
    }
  }
  progress_.notify(sc_core::SC_ZERO_TIME);
}

void TileCore::load() {
  for (const TileStep& step : steps_) {
    while (step.after && stored_ <= *step.after) {
      wait(progress_);
    }
    for (std::size_t i = 0; i < step.loads.size(); ++i) {
      if (i == 0 || step.loads[i - 1].buffer != step.loads[i].buffer) {
        take(step.loads[i].buffer);
      }
    }
    std::for_each(step.reserved.begin(), step.reserved.end(), [&](std::size_t buffer) { take(buffer); });
    if (!step.loads.empty()) {
      const std::vector<Piece> pieces = pieces_of(step.loads, plan_);
      load_dma.start(segments_of(pieces));
      for (const Piece& piece : pieces) {
        load_dma.await();
        pass_bytes(load_to_sram, spec_.sram, piece.offset, piece.bytes, trace::Access::write);
      }
    }
    ++loaded_;
    progress_.notify(sc_core::SC_ZERO_TIME);
  }
}

Picoseconds TileCore::arithmetic_time(const TileStep& step) const {
  const auto cycles = [](std::int64_t work, std::int64_t rate) { return (work + rate - 1) / rate; };
  return period_ * std::max(cycles(step.macs, macs_), cycles(step.scores, spec_.softmax_rate));
}

void TileCore::compute() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const TileStep& step = steps_[i];
    const Picoseconds asked = now();
    while (loaded_ <= i) {
      wait(progress_);
    }
    std::for_each(step.fresh.begin(), step.fresh.end(), [&](std::size_t buffer) { take(buffer); });
    const Picoseconds begin = now();
    counters_.waited += begin - asked;
    for (const std::size_t buffer : step.uses) {
      pass_bytes(arithmetic, spec_.sram, plan_.buffers[buffer].offset, plan_.buffers[buffer].bytes,
                 trace::Access::read);
    }
    const Picoseconds end = begin + arithmetic_time(step);
    if (end > now()) {
      wait(to_sc_time(end - now()));
    }
    counters_.arithmetic += now() - begin;
    ++computed_;
    release(i, false);
  }
}

void TileCore::store() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    while (computed_ <= i) {
      wait(progress_);
    }
    if (!steps_[i].stores.empty()) {
      const std::vector<Piece> pieces = pieces_of(steps_[i].stores, plan_);
      for (const Piece& piece : pieces) {
        pass_bytes(store_from_sram, spec_.sram, piece.offset, piece.bytes, trace::Access::read);
      }
      store_dma.start(segments_of(pieces));
      for (std::size_t n = 0; n < pieces.size(); ++n) {
        store_dma.await();
      }
    }
    ++stored_;
    release(i, true);
  }
  counters_.done_at = now();
}

}  // namespace kvsim::model
