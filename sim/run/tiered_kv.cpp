// SPDX-License-Identifier: Apache-2.0
#include "sim/run/tiered_kv.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "models/cpu/segmenter.h"
#include "traces/attention/attention.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/workload/kv_classes.h"

namespace kvsim::sim {
namespace {

using model::KvGeometry;

/// Of the layers that see all tokens.
trace::KvShape shape_of(const config::RunSpec& spec) {
  return trace::kv_classes(trace::llm_run(spec), trace::context_tokens(spec.workload)).front().shape;
}

bool chooses(const config::RunSpec& spec) {
  return spec.engine.kv.topk > 0;
}

/// Behind the cells of an allocation, which may be of another context: what `topk` ranks pages by.
Bytes bounds_of(const config::RunSpec& spec, const trace::Alloc& alloc) {
  if (!chooses(spec)) {
    return {};
  }
  const trace::KvShape shape = shape_of(spec);
  const Bytes bounds = trace::page_bounds_bytes(shape) * (shape.kv_heads * shape.layers);
  const Bytes page = trace::bytes_per_token(shape) * config::kTopkPage + bounds;
  return bounds * ((alloc.bytes.count() + page.count() - 1) / page.count());
}

KvGeometry geometry_of(const config::RunSpec& spec, const trace::Alloc& alloc) {
  const config::KvRowBytes row = config::kv_row_bytes(spec.model, spec.engine);
  KvGeometry geometry{.address = alloc.address,
                      .layers = config::tiered_layers(spec.model),
                      .k_row = row.k,
                      .v_row = row.v,
                      .block = spec.engine.kv_tiers->block};
  const Bytes cells = alloc.bytes - bounds_of(spec, alloc);
  geometry.cells = cells.count() / (geometry.row().count() * geometry.layers);
  if (geometry.cells < 1 || geometry.bytes() != cells) {
    throw UserError(
        fmt::format("the access stream's KV cache has {} B, not that of engine.kv_tiers' model and "
                    "formats: record it again",
                    alloc.bytes.count()));
  }
  return geometry;
}

/// Of the core behind those that compute, which reads, if there is one.
const config::CoreSpec& reading_core(const config::RunSpec& spec) {
  std::int64_t before = spec.workload.threads;
  for (const config::ClusterSpec& cluster : spec.device.clusters) {
    if (before < cluster.count) {
      return cluster.core;
    }
    before -= cluster.count;
  }
  return spec.device.clusters.back().core;
}

/// A core's time for a cell: arithmetic, but no faster than its bytes pass the last-level cache. To round to
/// a format takes what it takes a KV cache's append, an operation for four numbers; to read one what a
/// product with it does (assumed: it widens the numbers as that does).
Picoseconds time_of(const config::DeviceSpec& device, const config::CoreSpec& core, double operations,
                    Bytes bytes) {
  constexpr double kMany = 1024;  // cells, so that nothing is lost in rounding
  const Picoseconds many = model::compute_time(core, static_cast<std::uint64_t>(operations * kMany));
  return std::max(many / static_cast<std::int64_t>(kMany), bytes / device.llc.bandwidth);
}

std::optional<model::KvConversion> conversion_of(const config::RunSpec& spec) {
  const std::optional<config::KvFormat>& format = spec.engine.kv_tiers->format;
  if (!format) {
    return std::nullopt;
  }
  const config::KvRowBytes memory = config::kv_row_bytes(spec.model, spec.engine);
  const config::KvRowBytes file = config::kv_file_row_bytes(spec.model, spec.engine);
  const std::int64_t sides = file.v > Bytes() ? 2 : 1;
  const auto numbers = static_cast<double>(config::key_numbers(spec.model) * spec.model.kv_heads * sides);
  const Bytes bytes = memory.k + memory.v + file.k + file.v;
  const double round = numbers / 4;
  const double widen = numbers / 32 * trace::simd_ops_per_32(*format);
  const config::DeviceSpec& device = spec.device;
  return model::KvConversion{.k_row = file.k,
                             .v_row = file.v,
                             .encode = time_of(device, device.clusters.front().core, round, bytes),
                             .decode = time_of(device, reading_core(spec), widen + round, bytes)};
}

model::KvTiers::Setup setup_of(const config::RunSpec& spec, const trace::Alloc& alloc) {
  const config::KvTierSpec& tiers = *spec.engine.kv_tiers;
  return {.geometry = geometry_of(spec, alloc),
          .tiers = tiers,
          .sram_blocks = config::tier_blocks(spec, tiers.sram),
          .dram_blocks = config::tier_blocks(spec, tiers.dram),
          .chooses = chooses(spec),
          .conversion = conversion_of(spec),
          .seed = static_cast<std::uint64_t>(spec.run.seed)};
}

/// Blocks that have been asked for: of the layer in hand, and of those ahead of it. With `topk` those of each
/// head's pages, and as many that were expected.
Bytes staging(const config::RunSpec& spec, const KvGeometry& g) {
  const config::KvTierSpec& tiers = *spec.engine.kv_tiers;
  std::int64_t outside = g.blocks() - config::tier_blocks(spec, tiers.dram);
  if (chooses(spec)) {
    const std::int64_t read = spec.model.kv_heads * (spec.engine.kv.topk / config::kTopkPage);
    outside = std::min(outside, tiers.prefetch > 0 ? 2 * read : read);
  }
  if (outside <= 0 || tiers.through == config::KvThrough::mapped) {
    return {};
  }
  const config::KvRowBytes file = config::kv_file_row_bytes(spec.model, spec.engine);
  const Bytes encoded = tiers.format ? (file.k + file.v) * g.block : Bytes();
  return (g.block_bytes() + encoded) * outside * (std::min(tiers.prefetch, g.layers - 1) + 1);
}

/// The cells of the layers that see all tokens.
model::CellTokens cells_at(const config::RunSpec& spec, std::int64_t tokens) {
  const trace::KvShape shape = shape_of(spec);
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

std::vector<trace::Alloc> tiers_in_memory(const config::RunSpec& spec, const trace::Alloc& alloc) {
  const KvGeometry geometry = geometry_of(spec, alloc);
  std::vector<trace::Alloc> parts{alloc};
  parts[0].bytes = std::min(geometry.bytes(), spec.engine.kv_tiers->dram);
  const auto add = [&](Bytes bytes, const char* name) {
    if (bytes > Bytes()) {
      trace::Alloc part = alloc;
      part.address = parts.back().address + static_cast<trace::Address>(parts.back().bytes.count());
      part.bytes = bytes;
      part.name = trace::alloc_name(name);
      parts.push_back(part);
    }
  };
  add(staging(spec, geometry), "KV blocks on their way");
  add(bounds_of(spec, alloc), "bounds of KV pages");
  return parts;
}

bool file_fits(const config::RunSpec& spec, const trace::Alloc& alloc) {
  return model::KvTiers::span(setup_of(spec, alloc)) <= spec.device.storage->capacity;
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
  for (const trace::Alloc& part : tiers_in_memory(spec, alloc)) {
    held += part.bytes;
  }
  // What lies behind the cells stays where pages begin.
  const Bytes cells = geometry_of(spec, alloc).bytes();
  const std::int64_t page = spec.device.os.page.count();
  const Bytes moved(std::max(Bytes(), alloc.bytes - held).count() / page * page);
  if (moved > Bytes()) {
    frames_.emplace(alloc.address, cells, cells - moved);
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
