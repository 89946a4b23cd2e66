// SPDX-License-Identifier: Apache-2.0
#include "models/kv_tiers/direct_kv.h"

#include <algorithm>
#include <functional>
#include <iterator>

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

std::int64_t DirectKv::held(std::int64_t layer) const {
  return std::ranges::count_if(layers_[static_cast<std::size_t>(layer)].blocks, [](const Block& block) {
    return block.tier == Tier::sram || block.tier == Tier::dram;
  });
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

/// Makes `ranked_` the blocks in the order in which they are kept: the one being filled, then the newer, or
/// the better ones of those in memory, since others would have to be read.
void DirectKv::rank(const LayerState& layer) {
  ranked_.assign(layer.order.rbegin(), layer.order.rend());
  if (setup_.tiers.placement == config::KvPlacement::age || ranked_.empty()) {
    return;
  }
  const auto block = [&](std::int64_t i) -> const Block& {
    return layer.blocks[static_cast<std::size_t>(i)];
  };
  std::erase_if(ranked_, [&](std::int64_t i) { return block(i).tier == Tier::device; });
  const auto second = ranked_.begin() + (ranked_.empty() || ranked_.front() != layer.order.back() ? 0 : 1);
  std::stable_sort(second, ranked_.end(),
                   [&](std::int64_t a, std::int64_t b) { return block(a).score > block(b).score; });
}

/// The first ones: SRAM, DRAM, the device. Where the newest is full, the next one's room is kept.
void DirectKv::arrange(LayerState& layer, bool may_leave) {
  if (layer.order.empty()) {
    return;
  }
  const std::int64_t next = layer.unwritten.end;
  const bool full = next % setup_.geometry.block == 0 ||
                    (next == setup_.geometry.cells && setup_.tiers.file == config::KvFile::in_place);
  rank(layer);
  std::int64_t place = full && may_leave ? 1 : 0;
  for (const std::int64_t index : ranked_) {
    Block& block = layer.blocks[static_cast<std::size_t>(index)];
    const std::int64_t at = place++;
    if (block.tier == Tier::device) {
      continue;
    }
    if (at < setup_.sram_blocks) {
      block.tier = Tier::sram;
    } else if (at < setup_.dram_blocks || !may_leave) {
      block.tier = Tier::dram;
    } else {
      wait_while([&block] { return block.writes; });
      block.tier = Tier::device;
      block.partial = false;
    }
  }
}

/// All of it is on the device.
bool DirectKv::can_leave(const LayerState& layer, std::int64_t index) const {
  const std::int64_t end = (index + 1) * setup_.geometry.block;
  const bool logged = setup_.tiers.file == config::KvFile::in_place || end <= logged_;
  return index != layer.order.back() && logged && layer.blocks[static_cast<std::size_t>(index)].writes == 0;
}

/// Of the blocks that attention has read from the device those stay that score higher than others in memory.
void DirectKv::admit(LayerState& layer, const std::vector<std::int64_t>& read) {
  const auto block = [&](std::int64_t i) -> Block& { return layer.blocks[static_cast<std::size_t>(i)]; };
  std::vector<std::int64_t> come;
  std::ranges::copy_if(read, std::back_inserter(come),
                       [&](std::int64_t i) { return block(i).tier == Tier::device; });
  std::ranges::stable_sort(come, std::greater(), [&](std::int64_t i) { return block(i).score; });
  rank(layer);
  std::int64_t held = std::ssize(ranked_);
  for (const std::int64_t index : come) {
    if (held < setup_.dram_blocks) {
      block(index).tier = Tier::dram;
      ++held;
      continue;
    }
    while (!ranked_.empty() && !can_leave(layer, ranked_.back())) {
      ranked_.pop_back();
    }
    if (ranked_.empty() || block(ranked_.back()).score >= block(index).score) {
      return;
    }
    block(ranked_.back()).tier = Tier::device;
    ranked_.pop_back();
    block(index).tier = Tier::dram;
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
      decode(block);
    }
  }
  if (completion.status != StorageStatus::ok && !failure_) {
    const StorageRequest& r = completion.request;
    failure_ = {fmt::format("{} of {} at {}: {}", r.op == StorageOp::read ? "a read" : "a write",
                            to_text(r.bytes), to_text(r.offset), to_string(completion.status))};
  }
}

/// The reader's core puts one block after the other into memory's format, as they come.
void DirectKv::decode(Block& block) {
  if (!setup_.conversion || block.reads > 0) {
    return;
  }
  decoded_ = std::max(decoded_, block.arrived) + setup_.conversion->decode * block.filled;
  block.arrived = decoded_;
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

/// Layers see the same tokens: what one has asked for, the next ones will; where they choose, what they chose
/// for the token before.
void DirectKv::fetch_ahead(std::int64_t layer, const std::vector<std::int64_t>& blocks) {
  LayerState& state = layers_[static_cast<std::size_t>(layer)];
  if (state.is_ahead) {
    return;
  }
  state.is_ahead = true;
  for (const std::int64_t block : setup_.chooses ? state.chosen : blocks) {
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
    ++block.score;
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
  if (setup_.tiers.placement == config::KvPlacement::score) {
    admit(layer, touch.read);
  }
  const Bytes converted = setup_.conversion ? setup_.geometry.row() : Bytes();
  for (Block& block : layer.blocks) {
    use.landed += block.fetched ? (file_.row() + converted) * block.filled : Bytes();
    block.partial = block.partial && !block.fetched;
    block.fetched = false;
  }
  layer.is_ahead = false;
  layer.chosen = touch.read.size() < layer.order.size() ? touch.read : std::vector<std::int64_t>();
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
  KvTierUse use;
  for (const CellRange& cells : touch->written) {
    if (setup_.conversion) {
      const std::int64_t count = cells.end - cells.first;
      use.stall += setup_.conversion->encode * count;
      use.landed += file_.row() * count;
    }
    append(touch->layer, cells);
  }
  now_ += use.stall;
  return use;
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
