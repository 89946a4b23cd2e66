// SPDX-License-Identifier: Apache-2.0
#include "models/kv_tiers/mapped_kv.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/units/text.h"

namespace kvsim::model {
namespace {

std::int64_t pages_of(const FileExtent& range) {
  const std::int64_t first = range.offset.count() / kPageBytes;
  return ((range.offset + range.bytes).count() + kPageBytes - 1) / kPageBytes - first;
}

}  // namespace

MappedKv::MappedKv(BlockDevice& device, const KvFileMap& file, const Setup& setup)
    : file_map_(file),
      setup_(setup),
      cache_(device, setup.cache),
      file_(cache_.add_file(file.size(), file.extents())),
      layers_(static_cast<std::size_t>(setup.geometry.layers)) {
  if (!setup.tiers.read_ahead) {
    cache_.advise(file_, Bytes(), file.size(), MapAdvice::random);
  }
  for (LayerState& layer : layers_) {
    layer.filled.resize(static_cast<std::size_t>(setup.geometry.blocks()));
  }
}

template <class Visit>
void MappedKv::for_each_side(Visit visit) const {
  visit(false);
  if (setup_.geometry.v_row > Bytes()) {
    visit(true);
  }
}

/// What of a block has been filled.
FileExtent MappedKv::range(std::int64_t layer, bool is_v, std::int64_t block) const {
  const std::int64_t first = block * setup_.geometry.block;
  const std::int64_t filled =
      layers_[static_cast<std::size_t>(layer)].filled[static_cast<std::size_t>(block)];
  return file_map_.in_file(layer, is_v, {.first = first, .end = first + filled});
}

void MappedKv::place(const CellTokens& cells) {
  const std::int64_t size = setup_.geometry.block;
  for (LayerState& layer : layers_) {
    std::ranges::fill(layer.filled, 0);
    for (std::int64_t cell = 0; cell < std::ssize(cells); ++cell) {
      if (cells[static_cast<std::size_t>(cell)]) {
        layer.filled[static_cast<std::size_t>(cell / size)] = cell % size + 1;
      }
    }
  }
}

Picoseconds MappedKv::take(const Touched& touched, KvTierUse& use) {
  use.major_faults += touched.major_faults;
  if (touched.out_of_memory) {
    failure_ = {fmt::format("locked blocks take all of the page cache's {}", to_text(setup_.tiers.dram))};
  } else if (touched.failed) {
    const BlockRun& run = touched.failed->run;
    failure_ = {fmt::format("a {} of {} at {}: {}", run.op == StorageOp::read ? "read" : "write",
                            to_text(run.bytes), to_text(run.offset), to_string(touched.failed->status))};
  }
  return touched.done;
}

/// MADV_WILLNEED, block by block, since a call reads no more than the longest request.
void MappedKv::read_ahead_of(std::int64_t layer, const std::vector<std::int64_t>& blocks) {
  for (const std::int64_t block : blocks) {
    for_each_side([&](bool is_v) {
      const FileExtent at = range(layer, is_v, block);
      if (at.bytes > Bytes()) {
        cache_.will_need(file_, at.offset, at.bytes, now_);
      }
    });
  }
}

/// All threads go over the cells side by side, so that one stands for them: K of a block, then V.
KvTierUse MappedKv::read(const KvTouch& touch, Picoseconds in_memory) {
  const std::int64_t layers = setup_.geometry.layers;
  for (std::int64_t i = 1; i <= std::min(setup_.tiers.prefetch, layers - 1); ++i) {
    read_ahead_of((touch.layer + i) % layers, touch.read);
  }
  std::int64_t pages = 0;
  for (const std::int64_t block : touch.read) {
    for_each_side([&](bool is_v) { pages += pages_of(range(touch.layer, is_v, block)); });
  }
  KvTierUse use;
  const Picoseconds each = in_memory / std::max<std::int64_t>(1, pages);
  Picoseconds clock = now_;
  for (const std::int64_t block : touch.read) {
    const Picoseconds begin = clock;
    Picoseconds waited;
    for_each_side([&](bool is_v) {
      const FileExtent at = range(touch.layer, is_v, block);
      if (at.bytes > Bytes() && !failure_) {
        const Touched touched =
            cache_.touch(file_, at.offset, at.bytes, {.path = AccessPath::mapped, .each_page = each}, clock);
        clock = take(touched, use);
        waited += touched.waited;
        use.dram.bytes += at.bytes;
      }
    });
    KvTierHits& tier = waited > Picoseconds() ? use.device : use.dram;
    ++tier.blocks;
    tier.time += clock - begin;
  }
  use.stall = std::max(Picoseconds(), clock - now_ - in_memory);
  now_ += in_memory + use.stall;
  return use;
}

void MappedKv::lock(LayerState& state, std::int64_t layer, std::int64_t block) {
  if (!setup_.tiers.lock_current || state.locked == block) {
    return;
  }
  const auto whole = [&](std::int64_t b) {
    return CellRange{.first = b * setup_.geometry.block, .end = (b + 1) * setup_.geometry.block};
  };
  for_each_side([&](bool is_v) {
    if (state.locked) {
      const FileExtent before = file_map_.in_file(layer, is_v, whole(*state.locked));
      cache_.unlock(file_, before.offset, before.bytes);
    }
    if (!failure_) {
      const FileExtent at = file_map_.in_file(layer, is_v, whole(block));
      KvTierUse use;
      now_ = std::max(now_, take(cache_.lock(file_, at.offset, at.bytes, now_), use));
    }
  });
  state.locked = block;
}

KvTierUse MappedKv::write(const KvTouch& touch, Picoseconds in_memory) {
  KvTierUse use;
  LayerState& state = layers_[static_cast<std::size_t>(touch.layer)];
  const std::int64_t size = setup_.geometry.block;
  const Picoseconds begin = now_;
  for (const CellRange& cells : touch.written) {
    for (std::int64_t first = cells.first; first < cells.end && !failure_;) {
      const std::int64_t block = first / size;
      const std::int64_t end = std::min(cells.end, (block + 1) * size);
      lock(state, touch.layer, block);
      for_each_side([&](bool is_v) {
        if (!failure_) {
          const FileExtent at = file_map_.in_file(touch.layer, is_v, {.first = first, .end = end});
          now_ = std::max(now_, take(cache_.touch(file_, at.offset, at.bytes,
                                                  {.path = AccessPath::mapped, .write = true}, now_),
                                     use));
        }
      });
      std::int64_t& filled = state.filled[static_cast<std::size_t>(block)];
      filled = std::max(filled, end - block * size);
      first = end;
    }
  }
  use.stall = std::max(Picoseconds(), now_ - begin - in_memory);
  now_ = begin + in_memory + use.stall;
  return use;
}

KvTierUse MappedKv::run(const std::optional<KvTouch>& touch, Picoseconds in_memory) {
  if (!touch || failure_) {
    now_ += in_memory;
    return {};
  }
  return touch->read.empty() ? write(*touch, in_memory) : read(*touch, in_memory);
}

}  // namespace kvsim::model
