// SPDX-License-Identifier: Apache-2.0
#include "models/kv_tiers/direct_kv.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"

namespace kvsim::model {
namespace {

/// The engine's threads for input and output: one reads, one writes.
constexpr std::int64_t kReader = 0;
constexpr std::int64_t kWriter = 1;

}  // namespace

DirectKv::DirectKv(BlockDevice& device, const KvFileMap& file, const Setup& setup)
    : device_(device), file_(file), setup_(setup) {
  check(setup.dram_blocks >= 1 && setup.sram_blocks <= setup.dram_blocks,
        "the block being filled is in memory, and DRAM keeps what SRAM has");
  layers_.resize(static_cast<std::size_t>(setup.geometry.layers));
  for (LayerState& layer : layers_) {
    layer.blocks.resize(static_cast<std::size_t>(setup.geometry.blocks()));
  }
}

bool DirectKv::in_sram(std::int64_t layer, std::int64_t block) const {
  return layers_[static_cast<std::size_t>(layer)].blocks[static_cast<std::size_t>(block)].tier == Tier::sram;
}

void DirectKv::place(const CellTokens& cells) {
  wait_while([this] { return transfers_.size(); });
  const std::int64_t size = setup_.geometry.block;
  struct Age {
    std::int64_t block = 0;
    std::uint32_t newest = 0;
    std::int64_t filled = 0;
  };
  std::vector<Age> ages;
  std::int64_t next = 0;
  std::optional<std::uint32_t> last;
  for (std::int64_t cell = 0; cell < std::ssize(cells); ++cell) {
    const std::optional<std::uint32_t> token = cells[static_cast<std::size_t>(cell)];
    if (!token) {
      continue;
    }
    if (ages.empty() || ages.back().block != cell / size) {
      ages.push_back({.block = cell / size});
    }
    ages.back().newest = std::max(ages.back().newest, *token);
    ages.back().filled = cell % size + 1;
    next = !last || *token > *last ? cell + 1 : next;
    last = std::max(last.value_or(*token), *token);
  }
  std::ranges::sort(ages, {}, &Age::newest);
  for (LayerState& layer : layers_) {
    const std::size_t blocks = layer.blocks.size();
    layer = LayerState{.unwritten = {.first = next, .end = next}};
    layer.blocks.resize(blocks);
    for (const Age& age : ages) {
      layer.order.push_back(age.block);
      layer.blocks[static_cast<std::size_t>(age.block)].filled = age.filled;
    }
    arrange(layer, true);
  }
  logged_ = next;
}

/// Newest first: SRAM, DRAM, the device. Where the newest is full, the next one's room is kept.
void DirectKv::arrange(LayerState& layer, bool may_leave) {
  if (layer.order.empty()) {
    return;
  }
  const std::int64_t next = layer.unwritten.end;
  const bool full = next % setup_.geometry.block == 0 ||
                    (next == setup_.geometry.cells && setup_.tiers.file == config::KvFile::in_place);
  std::int64_t rank = full && may_leave ? 1 : 0;
  for (auto at = layer.order.rbegin(); at != layer.order.rend(); ++at, ++rank) {
    Block& block = layer.blocks[static_cast<std::size_t>(*at)];
    if (block.tier == Tier::device) {
      continue;
    }
    if (rank < setup_.sram_blocks) {
      block.tier = Tier::sram;
    } else if (rank < setup_.dram_blocks || !may_leave) {
      block.tier = Tier::dram;
    } else {
      wait_while([&block] { return block.writes; });
      block.tier = Tier::device;
      block.partial = false;
    }
  }
}

void DirectKv::submit(StorageOp op, const std::vector<FileExtent>& pieces, const Transfer& transfer) {
  for (const FileExtent& piece : pieces) {
    if (failure_) {
      return;
    }
    const std::uint64_t id = device_.submit({.op = op,
                                             .offset = piece.offset,
                                             .bytes = piece.bytes,
                                             .when = std::max(now_, last_done_),
                                             .lane = transfer.write ? kWriter : kReader});
    transfers_.emplace(id, transfer);
    for (std::int64_t i = 0; i < transfer.layers; ++i) {
      LayerState& layer = layers_[static_cast<std::size_t>(transfer.layer + i)];
      Block& block = layer.blocks[static_cast<std::size_t>(transfer.block)];
      ++(transfer.write ? block.writes : block.reads);
      layer.reading += transfer.write ? 0 : 1;
    }
  }
}

void DirectKv::take(const StorageCompletion& completion) {
  last_done_ = std::max(last_done_, completion.done);
  const auto found = transfers_.find(completion.id);
  check(found != transfers_.end(), "the device completes what was asked of it");
  const Transfer transfer = found->second;
  transfers_.erase(found);
  for (std::int64_t i = 0; i < transfer.layers; ++i) {
    LayerState& layer = layers_[static_cast<std::size_t>(transfer.layer + i)];
    Block& block = layer.blocks[static_cast<std::size_t>(transfer.block)];
    --(transfer.write ? block.writes : block.reads);
    layer.reading -= transfer.write ? 0 : 1;
    if (!transfer.write) {
      block.arrived = std::max(block.arrived, completion.done);
    }
  }
  if (completion.status != StorageStatus::ok && !failure_) {
    const StorageRequest& r = completion.request;
    failure_ = {fmt::format("{} of {} at {}: {}", r.op == StorageOp::read ? "a read" : "a write",
                            to_text(r.bytes), to_text(r.offset), to_string(completion.status))};
  }
}

template <class Busy>
void DirectKv::wait_while(Busy busy) {
  while (busy() > 0) {
    const std::optional<StorageCompletion> done = device_.next();
    check(done.has_value(), "what is under way ends");
    take(*done);
    now_ = std::max(now_, done->done);
  }
}

void DirectKv::fetch(std::int64_t layer, std::int64_t index) {
  Block& block = layers_[static_cast<std::size_t>(layer)].blocks[static_cast<std::size_t>(index)];
  if (block.fetched || (block.tier != Tier::device && !block.partial)) {
    return;
  }
  const std::int64_t first = index * setup_.geometry.block;
  pieces_.clear();
  file_.add_pieces(layer,
                   {.first = first, .end = std::min(first + setup_.geometry.block, setup_.geometry.cells)},
                   pieces_);
  block.fetched = true;
  block.asked = now_;
  block.arrived = now_;
  submit(StorageOp::read, pieces_, {.layer = layer, .block = index});
}

/// Layers see the same tokens: what one has asked for, the next ones will.
void DirectKv::fetch_ahead(std::int64_t layer, const std::vector<std::int64_t>& blocks) {
  LayerState& state = layers_[static_cast<std::size_t>(layer)];
  if (state.is_ahead) {
    return;
  }
  state.is_ahead = true;
  for (const std::int64_t block : blocks) {
    fetch(layer, block);
  }
}

/// Attention goes over the blocks in memory first, and then over the others as they come.
Picoseconds DirectKv::end_of(const std::vector<Picoseconds>& arrivals, std::int64_t blocks,
                             Picoseconds in_memory) const {
  const std::int64_t here = blocks - std::ssize(arrivals);
  const auto share = [&](std::int64_t n) { return Picoseconds(in_memory.count() / blocks * n); };
  Picoseconds end = now_ + share(here);
  for (const Picoseconds arrival : arrivals) {
    end = std::max(end, arrival) + share(1);
  }
  return std::max(end, now_ + in_memory);
}

KvTierUse DirectKv::attend(const KvTouch& touch, Picoseconds in_memory) {
  LayerState& layer = layers_[static_cast<std::size_t>(touch.layer)];
  const std::int64_t layers = setup_.geometry.layers;
  for (const std::int64_t block : touch.read) {
    fetch(touch.layer, block);
  }
  for (std::int64_t i = 1; i <= std::min(setup_.tiers.prefetch, layers - 1); ++i) {
    fetch_ahead((touch.layer + i) % layers, touch.read);
  }
  const Picoseconds begin = now_;
  wait_while([&layer] { return layer.reading; });
  now_ = begin;
  KvTierUse use;
  std::vector<Picoseconds> arrivals;
  const Picoseconds each = in_memory / std::max<std::int64_t>(1, std::ssize(touch.read));
  for (const std::int64_t index : touch.read) {
    Block& block = layer.blocks[static_cast<std::size_t>(index)];
    const Bytes bytes = setup_.geometry.row() * block.filled;
    if (block.fetched) {
      arrivals.push_back(std::max(begin, block.arrived));
      use.device += {.blocks = 1, .bytes = bytes, .time = block.arrived - block.asked};
    } else {
      (block.tier == Tier::sram ? use.sram : use.dram) += {.blocks = 1, .bytes = bytes, .time = each};
    }
  }
  std::ranges::sort(arrivals);
  const Picoseconds end =
      touch.read.empty() ? begin + in_memory : end_of(arrivals, std::ssize(touch.read), in_memory);
  for (Block& block : layer.blocks) {
    block.partial = block.partial && !block.fetched;
    block.fetched = false;
  }
  layer.is_ahead = false;
  use.stall = end - begin - in_memory;
  now_ = end;
  return use;
}

void DirectKv::enter(LayerState& layer, std::int64_t index) {
  Block& block = layer.blocks[static_cast<std::size_t>(index)];
  if (!layer.order.empty() && layer.order.back() == index) {
    return;
  }
  if (const auto at = std::ranges::find(layer.order, index); at != layer.order.end()) {
    layer.order.erase(at);
  }
  layer.order.push_back(index);
  block.partial = block.tier == Tier::device;
  block.tier = Tier::dram;
  arrange(layer, false);
}

void DirectKv::append(std::int64_t index, CellRange cells) {
  LayerState& layer = layers_[static_cast<std::size_t>(index)];
  const std::int64_t size = setup_.geometry.block;
  const bool in_place = setup_.tiers.file == config::KvFile::in_place;
  if (cells.first != layer.unwritten.end) {
    if (in_place) {
      flush(index, layer.unwritten);
    }
    layer.unwritten = {.first = cells.first, .end = cells.first};
  }
  while (layer.unwritten.end < cells.end) {
    const std::int64_t block = layer.unwritten.end / size;
    enter(layer, block);
    layer.unwritten.end = std::min(cells.end, (block + 1) * size);
    std::int64_t& filled = layer.blocks[static_cast<std::size_t>(block)].filled;
    filled = std::max(filled, layer.unwritten.end - block * size);
    const bool last = layer.unwritten.end == setup_.geometry.cells;
    const std::int64_t batches = layer.unwritten.end / setup_.tiers.write_batch;
    const std::int64_t stop = last ? layer.unwritten.end : batches * setup_.tiers.write_batch;
    if (in_place && stop > layer.unwritten.first) {
      flush(index, {.first = layer.unwritten.first, .end = stop});
      layer.unwritten.first = stop;
    }
  }
}

/// Precondition: in place; the cells lie in one block.
void DirectKv::flush(std::int64_t layer, CellRange cells) {
  if (cells.first == cells.end) {
    return;
  }
  pieces_.clear();
  file_.add_pieces(layer, cells, pieces_);
  submit(StorageOp::write, pieces_,
         {.layer = layer, .block = cells.first / setup_.geometry.block, .write = true});
}

void DirectKv::write_log() {
  const std::int64_t batch = setup_.tiers.write_batch;
  for (; logged_ / batch < layers_.front().unwritten.end / batch; logged_ = (logged_ / batch + 1) * batch) {
    pieces_.clear();
    file_.add_pieces(file_.entry(logged_ / batch), pieces_);
    submit(StorageOp::write, pieces_,
           {.layers = setup_.geometry.layers, .block = logged_ / setup_.geometry.block, .write = true});
  }
}

KvTierUse DirectKv::run(const std::optional<KvTouch>& touch, Picoseconds in_memory) {
  while (const std::optional<StorageCompletion> done = device_.next_until(now_)) {
    take(*done);
  }
  if (!touch || failure_) {
    now_ += in_memory;
    return {};
  }
  if (!touch->read.empty()) {
    return attend(*touch, in_memory);
  }
  now_ += in_memory;
  for (const CellRange& cells : touch->written) {
    append(touch->layer, cells);
  }
  return {};
}

KvTierUse DirectKv::end_step() {
  KvTierUse use;
  const Picoseconds begin = now_;
  if (setup_.tiers.file == config::KvFile::log) {
    write_log();
  }
  for (LayerState& layer : layers_) {
    arrange(layer, true);
  }
  use.stall = now_ - begin;
  return use;
}

}  // namespace kvsim::model
