// SPDX-License-Identifier: Apache-2.0
#include "sim/run/tiered_kv.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/workload/kv_classes.h"

namespace kvsim::sim {
namespace {

using model::KvGeometry;

KvGeometry geometry_of(const config::RunSpec& spec, const trace::Alloc& alloc) {
  const config::KvRowBytes row = config::kv_row_bytes(spec.model, spec.engine);
  KvGeometry geometry{.address = alloc.address,
                      .layers = config::tiered_layers(spec.model),
                      .k_row = row.k,
                      .v_row = row.v,
                      .block = spec.engine.kv_tiers->block};
  geometry.cells = alloc.bytes.count() / (geometry.row().count() * geometry.layers);
  if (geometry.cells < 1 || geometry.bytes() != alloc.bytes) {
    throw UserError(
        fmt::format("the access stream's KV cache has {} B, not that of engine.kv_tiers' model and "
                    "formats: record it again",
                    alloc.bytes.count()));
  }
  return geometry;
}

model::KvTiers::Setup setup_of(const config::RunSpec& spec, const trace::Alloc& alloc) {
  const config::KvTierSpec& tiers = *spec.engine.kv_tiers;
  return {.geometry = geometry_of(spec, alloc),
          .tiers = tiers,
          .sram_blocks = config::tier_blocks(spec, tiers.sram),
          .dram_blocks = config::tier_blocks(spec, tiers.dram),
          .seed = static_cast<std::uint64_t>(spec.run.seed)};
}

/// Blocks that have been asked for: of the layer in hand, and of those ahead of it.
Bytes staging(const config::RunSpec& spec, const KvGeometry& g) {
  const config::KvTierSpec& tiers = *spec.engine.kv_tiers;
  const std::int64_t outside = g.blocks() - config::tier_blocks(spec, tiers.dram);
  if (outside <= 0 || tiers.through == config::KvThrough::mapped) {
    return {};
  }
  return g.block_bytes() * outside * (std::min(tiers.prefetch, g.layers - 1) + 1);
}

/// The cells of the layers that see all tokens.
model::CellTokens cells_at(const config::RunSpec& spec, std::int64_t tokens) {
  const trace::LlmRun run = trace::llm_run(spec);
  const std::vector<trace::KvClass> classes = trace::kv_classes(run, trace::context_tokens(spec.workload));
  const trace::KvShape& shape = classes.front().shape;
  trace::KvCache cache(shape, 0, trace::KvPayload::none);
  for (std::int64_t left = tokens; left > 0;) {
    const auto plan = cache.plan(static_cast<std::uint32_t>(std::min(left, shape.batch)));
    check(std::holds_alternative<trace::KvPlan>(plan), "the KV cache has room for what is cached");
    cache.apply(std::get<trace::KvPlan>(plan));
    left -= std::get<trace::KvPlan>(plan).tokens;
  }
  const trace::KvLane& lane = cache.lane(Layer(0), Head(0));
  model::CellTokens cells(lane.end(trace::KvPoolKind::main));
  for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
    if (const auto& resident = lane.at({.pool = trace::KvPoolKind::main, .index = cell})) {
      cells[cell] = resident->token.value();
    }
  }
  return cells;
}

TieredKv::Cost cost_of(const model::KvTierUse& use, Picoseconds sram) {
  model::TimeAccount account;
  account.add(model::Owner::kv_read, sram);
  account.add(model::Owner::storage, use.stall);
  return {.time = Measurement(account, {}, {}), .use = use};
}

}  // namespace

bool is_tiered(const config::RunSpec& spec, const trace::Alloc& alloc) {
  return spec.engine.kv_tiers && alloc.name == trace::alloc_name("KV cache");
}

std::vector<trace::Alloc> in_memory(const config::RunSpec& spec, const trace::Alloc& alloc) {
  if (!is_tiered(spec, alloc)) {
    return {alloc};
  }
  std::vector<trace::Alloc> parts{alloc};
  parts[0].bytes = std::min(alloc.bytes, spec.engine.kv_tiers->dram);
  if (const Bytes bytes = staging(spec, geometry_of(spec, alloc)); bytes > Bytes()) {
    parts.push_back(alloc);
    parts[1].bytes = bytes;
    parts[1].address += static_cast<trace::Address>(parts[0].bytes.count());
    parts[1].name = trace::alloc_name("KV blocks on their way");
  }
  return parts;
}

bool file_fits(const config::RunSpec& spec, const trace::Alloc& alloc) {
  const Bytes span = model::KvFileMap::span(geometry_of(spec, alloc), *spec.engine.kv_tiers);
  return span <= spec.device.storage->capacity;
}

/// The live tokens of a window begin and end within a block, as sinks do, and a full one keeps room for the
/// next.
std::int64_t tokens_in_memory(const config::RunSpec& spec) {
  const config::KvSpec& kv = spec.engine.kv;
  const std::int64_t block = spec.engine.kv_tiers->block;
  const auto blocks_of = [block](std::int64_t tokens) { return (tokens + block - 1) / block; };
  const std::int64_t live = blocks_of(kv.window) + 1 + blocks_of(kv.sinks) + 1;
  if (kv.window > 0 && live <= config::tier_blocks(spec, spec.engine.kv_tiers->dram)) {
    return spec.model.context;
  }
  return config::tier_blocks(spec, spec.engine.kv_tiers->dram) * spec.engine.kv_tiers->block;
}

TieredKv::TieredKv(const config::RunSpec& spec, const trace::Alloc& alloc)
    : spec_(spec), bytes_(alloc.bytes), tiers_(spec.device, setup_of(spec, alloc)) {
  Bytes held;
  for (const trace::Alloc& part : in_memory(spec, alloc)) {
    held += part.bytes;
  }
  // What lies behind the cache stays where pages begin.
  const std::int64_t page = spec.device.os.page.count();
  const Bytes moved(std::max(Bytes(), alloc.bytes - held).count() / page * page);
  if (moved > Bytes()) {
    frames_.emplace(alloc.address, alloc.bytes, alloc.bytes - moved);
  }
  if (!failure() && spec.workload.cached > 0) {
    tiers_.begin_with(cells_at(spec_, spec.workload.cached));
  }
}

void TieredKv::place(std::int64_t tokens) {
  tiers_.place(cells_at(spec_, tokens));
}

const Operation& TieredKv::placed(const Operation& asked) {
  const Operation* rest = &asked;
  sram_ = Picoseconds();
  if (spec_.engine.kv_tiers->sram > Bytes()) {
    placed_ = asked;
    sram_ = tiers_.take_sram(placed_.threads);
    rest = &placed_;
  }
  if (frames_) {
    frames_->place(*rest, framed_);
    rest = &framed_;
  }
  return *rest;
}

Bytes TieredKv::end() const {
  return dram_capacity(spec_.device) + bytes_;
}

TieredKv::Cost TieredKv::run(const Operation& asked, Picoseconds in_memory) {
  return cost_of(tiers_.run(asked.threads, in_memory + sram_), sram_);
}

TieredKv::Cost TieredKv::end_step() {
  return cost_of(tiers_.end_step(), Picoseconds());
}

}  // namespace kvsim::sim
