// SPDX-License-Identifier: Apache-2.0
#include "sim/metrics/storage_figures.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/spec/kv_spec.h"
#include "sim/metrics/human.h"
#include "sim/metrics/summary.h"
#include "sim/run/in_memory.h"
#include "sim/run/tiered_kv.h"

namespace kvsim::sim {
namespace {

constexpr double kHoursPerDay = 24;

struct Sums {
  double tokens = 0;
  model::PagingUse paging;
  model::ExpertReads experts;
  model::KvTierUse tiers;
};

Sums sums_of(const RunRecord& record) {
  Sums sums;
  for (const StepResult& step : record.steps) {
    if (step.mark.phase == trace::Phase::decode) {
      ++sums.tokens;
      sums.paging += step.paging;
      sums.experts += step.experts;
      sums.tiers += step.tiers;
    }
  }
  return sums;
}

const char* what_of(const RunRecord& record) {
  return record.swaps                            ? "memory"
         : record.pages || record.streams_layers ? "weights"
         : record.streams                        ? "experts"
                                                 : "KV";
}

std::optional<ExpertFigures> experts_of(const config::RunSpec& spec, const RunRecord& record,
                                        const Sums& sums) {
  if (!record.streams) {
    return std::nullopt;
  }
  const auto all = static_cast<double>(sums.experts.hits + sums.experts.misses);
  return ExpertFigures{.cache = spec.engine.experts.cache,
                       .hit_share = static_cast<double>(sums.experts.hits) / std::max(1.0, all),
                       .misses = static_cast<double>(sums.experts.misses) / sums.tokens,
                       .requests = static_cast<double>(sums.experts.requests) / sums.tokens};
}

std::optional<LayerFigures> layers_of(const RunRecord& record, const Sums& sums) {
  if (!record.streams_layers) {
    return std::nullopt;
  }
  LayerFigures figures;
  figures.requests = static_cast<double>(sums.paging.requests) / sums.tokens;
  for (const model::LedgerItem& item : record.items) {
    figures.locked += item.name == kLockedName ? item.bytes : Bytes();
    figures.buffers += item.name == kLayerBuffersName ? item.bytes : Bytes();
  }
  return figures;
}

TierFigures tier_of(const char* name, const model::KvTierHits& hits, Bytes asked) {
  return {.tier = name,
          .share = asked > Bytes() ? ratio(hits.bytes, asked) : 0,
          .latency = hits.blocks > 0 ? hits.time / hits.blocks : Picoseconds()};
}

void add_wear(const config::RunSpec& spec, const model::StorageCounters& counters, Picoseconds elapsed,
              StorageFigures& figures) {
  if (counters.host_written == Bytes()) {
    return;
  }
  const double share_of_day = spec.workload.duty / kHoursPerDay;
  const BytesPerSecond rate((counters.host_written / elapsed).count() * share_of_day);
  const model::StorageWear wear = model::wear_of(*spec.device.storage, counters, rate);
  figures.amplification = wear.write_amplification;
  figures.days_to_endurance = wear.days_to_endurance;
  figures.erases = counters.erases;
}

}  // namespace

std::optional<StorageFigures> storage_figures(const config::RunSpec& spec, const RunRecord& record,
                                              const Measurement& decode) {
  const bool reads_weights = record.pages || record.streams || record.streams_layers;
  if (!reads_weights && !spec.engine.kv_tiers) {
    return std::nullopt;
  }
  const Sums sums = sums_of(record);
  StorageFigures figures{.part = spec.device.storage->name, .what = what_of(record)};
  figures.stall_share = decode.part(model::Owner::storage) / decode.picoseconds();
  figures.written_bytes = record.storage.host_written.as_double() / sums.tokens;
  add_wear(spec, record.storage, Picoseconds(std::llround(decode.picoseconds())), figures);
  if (reads_weights) {
    const Bytes asked = sums.paging.asked + sums.experts.asked;
    const Bytes read = sums.paging.read + sums.experts.read;
    figures.read_bytes = read.as_double() / sums.tokens;
    figures.hit_share = asked > read ? 1 - ratio(read, asked) : 0;
    figures.major_faults = static_cast<double>(sums.paging.major_faults) / sums.tokens;
    figures.others_bytes = sums.paging.others.as_double() / sums.tokens;
    figures.cliff = record.pages && record.total > record.available ? max_context(spec) : 0;
    figures.experts = experts_of(spec, record, sums);
    figures.layers = layers_of(record, sums);
    return figures;
  }
  const model::KvTierUse& use = sums.tiers;
  figures.read_bytes = record.storage.host_read.as_double() / sums.tokens;
  figures.hit_share = use.asked() > Bytes() ? 1 - ratio(use.device.bytes, use.asked()) : 1;
  figures.major_faults = static_cast<double>(use.major_faults) / sums.tokens;
  figures.tiers = {tier_of("sram", use.sram, use.asked()), tier_of("dram", use.dram, use.asked()),
                   tier_of("storage", use.device, use.asked())};
  figures.cliff = tokens_in_memory(spec);
  return figures;
}

void add_tier_notes(const config::RunSpec& spec, std::vector<std::string>& notes) {
  const config::KvTierSpec& tiers = *spec.engine.kv_tiers;
  const bool mapped = tiers.through == config::KvThrough::mapped;
  const config::KvTierSpec plain;
  if (mapped && tiers.write_batch != plain.write_batch) {
    notes.emplace_back(
        "engine.kv_tiers.write_batch has no effect: the kernel writes a mapped file's pages back when it "
        "chooses");
  }
  if (!mapped && (tiers.read_ahead != plain.read_ahead || tiers.lock_current != plain.lock_current)) {
    notes.emplace_back(
        "engine.kv_tiers.read_ahead and lock_current have no effect: direct reads pass the page cache");
  }
  if (tiers.format) {
    notes.push_back(
        fmt::format("KV that has been read from storage is as precise as {}: `kvsim quality --kv {}` tells "
                    "what that costs",
                    name(*tiers.format), name(config::KvSpec{.k = *tiers.format, .v = *tiers.format})));
  }
}

}  // namespace kvsim::sim
