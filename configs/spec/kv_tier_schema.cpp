// SPDX-License-Identifier: Apache-2.0
// The table of KV tiers, and what they cannot be combined with.
#include "configs/spec/kv_tier_schema.h"

#include <numeric>
#include <string>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr Bytes kPage{4096};  // what a file is mapped, and O_DIRECT read, in
constexpr std::int64_t kMostBlock = 65536;

Bytes row(std::int64_t heads, const KvFormat& format, std::int64_t numbers, Bytes alignment) {
  const std::int64_t bytes = kv_vector_bytes(format, numbers).count();
  const std::int64_t padded = (bytes + alignment.count() - 1) / alignment.count() * alignment.count();
  return Bytes(padded * heads);
}

void check_tier_spec(const KvTierSpec& tiers, const Place& place) {
  if (tiers.block % tiers.write_batch != 0) {
    place.error("write_batch",
                fmt::format("{} tokens do not divide a block of {} evenly", tiers.write_batch, tiers.block));
  }
  if (tiers.extent && tiers.extent->count() % kPage.count() != 0) {
    place.error("extent", fmt::format("is not whole pages of {}", to_text(kPage)));
  }
  if (tiers.sram > tiers.dram) {
    place.error("sram", fmt::format("{} is more than dram, {}, which keeps what SRAM has",
                                    to_text(tiers.sram), to_text(tiers.dram)));
  }
  if (tiers.through == KvThrough::mapped && tiers.sram > 0_B) {
    place.error("sram", "needs through: direct: the page cache of a mapped file does not know of SRAM");
  }
  if (tiers.through == KvThrough::mapped && tiers.file == KvFile::log) {
    place.error("file", "log needs through: direct: in a mapped file a token has its place");
  }
  if (tiers.through == KvThrough::mapped && tiers.placement == KvPlacement::score) {
    place.error("placement",
                "score needs through: direct: what of a mapped file is in memory, Linux chooses");
  }
  if (tiers.through == KvThrough::mapped && tiers.format) {
    place.error("format", "needs through: direct: what is mapped is read as it lies in the file");
  }
}

/// Why a KV cache cannot be cut into blocks that age; empty if it can.
std::string why_not(const RunSpec& run) {
  const EngineSpec& engine = run.engine;
  const KvSpec& kv = engine.kv;
  if (engine.kv_cache == KvCacheUse::recomputed) {
    return "engine.kv_cache is recomputed: there is nothing to keep";
  }
  if (engine.kv_layout != KvLayout::token_major || engine.v_transposed) {
    return "a block's tokens must lie side by side: engine.kv_layout token_major, v_transposed false";
  }
  if (kv.h2o > 0 || kv.entropy > 0) {
    return "engine.kv has h2o or entropy: tokens leave from anywhere, so that blocks have no age, and "
           "attention reads all that stay, so that none is wanted more than others; topk reads the best of "
           "all";
  }
  const bool waits = kv.k.range == KvRange::channel || kv.v.range == KvRange::channel;
  if (kv.first > 0 || kv.first_share > 0 || kv.recent > 0 || waits) {
    return "engine.kv keeps some tokens in F16, in an allocation of their own: give formats, window and "
           "sinks only";
  }
  if (tiered_layers(run.model) == 0) {
    return fmt::format("all layers of {} see a window, whose KV cache does not grow", run.model.name);
  }
  return {};
}

/// The file's own format: fewer bits, in vectors that stand by themselves.
void check_format(const RunSpec& run, const Place& place) {
  const KvFormat& format = *run.engine.kv_tiers->format;
  const char* key = "engine.kv_tiers.format";
  if (format.range == KvRange::channel) {
    return place.error(
        key, fmt::format("{}: a range by channel needs tokens in groups; give one by token", name(format)));
  }
  try {
    const KvRowBytes memory = kv_row_bytes(run.model, run.engine);
    const KvRowBytes file = kv_file_row_bytes(run.model, run.engine);
    if (file.k + file.v >= memory.k + memory.v) {
      place.error(key,
                  fmt::format("{} takes {} for K and V of a token in a layer, in memory it is {}; leave it "
                              "out, or take fewer bits",
                              name(format), to_text(file.k + file.v), to_text(memory.k + memory.v)));
    }
  } catch (const UserError& error) {
    place.error(key, error.what());
  }
}

/// Where attention reads the best pages only, what is wanted of a block differs.
void check_choice(const RunSpec& run, const Place& place) {
  const KvTierSpec& tiers = *run.engine.kv_tiers;
  if (run.engine.kv.topk > 0 && tiers.through == KvThrough::mapped) {
    place.error("engine.kv_tiers.through",
                "engine.kv has topk: the engine reads the pages it has chosen itself; use direct");
  }
  if (run.engine.kv.topk == 0 && tiers.placement == KvPlacement::score) {
    place.error(
        "engine.kv_tiers.placement",
        "score needs engine.kv with topk: without, attention reads all blocks for each token, and all "
        "score alike");
  }
}

void check_pages(const RunSpec& run, Bytes row_bytes, const char* side, const Place& place) {
  const std::int64_t block = run.engine.kv_tiers->block;
  const std::int64_t bytes = row_bytes.count() * block;
  if (bytes % kPage.count() != 0) {
    place.error("engine.kv_tiers.block",
                fmt::format("{} tokens of {} are {} B of {}, not whole pages of {}; use a multiple of {}",
                            block, to_text(row_bytes), bytes, side, to_text(kPage),
                            kPage.count() / std::gcd(kPage.count(), row_bytes.count())));
  }
}

void check_budgets(const RunSpec& run, const Place& place) {
  const KvTierSpec& tiers = *run.engine.kv_tiers;
  const Bytes least = kv_blocks_bytes(run);
  const auto too_small = [&](const char* key, Bytes budget) {
    place.error(key,
                fmt::format("{} hold no block of each of the {} layers; give at least {}, or smaller blocks",
                            to_text(budget), tiered_layers(run.model), to_text(least)));
  };
  if (tiers.dram < least) {
    too_small("engine.kv_tiers.dram", tiers.dram);
  } else if (tiers.sram > 0_B && tiers.sram < least) {
    too_small("engine.kv_tiers.sram", tiers.sram);
  }
}

}  // namespace

KvRowBytes kv_row_bytes(const LlmSpec& model, const EngineSpec& engine) {
  const std::int64_t numbers = key_numbers(model);
  return {.k = row(model.kv_heads, engine.kv.k, numbers, engine.kv_row_alignment),
          .v = model.latent ? Bytes() : row(model.kv_heads, engine.kv.v, numbers, engine.kv_row_alignment)};
}

KvRowBytes kv_file_row_bytes(const LlmSpec& model, const EngineSpec& engine) {
  if (!engine.kv_tiers->format) {
    return kv_row_bytes(model, engine);
  }
  const Bytes side = row(model.kv_heads, *engine.kv_tiers->format, key_numbers(model), Bytes(1));
  return {.k = side, .v = model.latent ? Bytes() : side};
}

std::int64_t tiered_layers(const LlmSpec& model) {
  std::int64_t layers = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    layers += is_local(model, layer) ? 0 : 1;
  }
  return layers;
}

Bytes kv_blocks_bytes(const RunSpec& run) {
  const KvRowBytes row = kv_row_bytes(run.model, run.engine);
  return (row.k + row.v) * run.engine.kv_tiers->block * tiered_layers(run.model);
}

std::int64_t tier_blocks(const RunSpec& run, Bytes budget) {
  return budget.count() / kv_blocks_bytes(run).count();
}

void check_kv_tiers(const RunSpec& run, const Place& place) {
  if (!run.engine.kv_tiers) {
    return;
  }
  if (!run.device.storage) {
    place.error("engine.kv_tiers", "needs device.storage: where the file of old blocks lies");
  }
  if (const std::string why = why_not(run); !why.empty()) {
    return place.error("engine.kv_tiers", why);
  }
  if (run.engine.kv_tiers->file == KvFile::log && run.engine.kv.window > 0) {
    place.error("engine.kv_tiers.file",
                "in a log a token is written once, but engine.kv lets its place be used again; in_place can");
  }
  const std::size_t before = place.errors().count();
  check_choice(run, place);
  if (run.engine.kv_tiers->format) {
    check_format(run, place);
  }
  if (place.errors().count() != before) {
    return;
  }
  const KvRowBytes row = kv_file_row_bytes(run.model, run.engine);
  check_pages(run, row.k, "K", place);
  if (row.v != row.k) {
    check_pages(run, row.v, "V", place);
  }
  if (place.errors().count() == before) {
    check_budgets(run, place);
  }
}

template <>
const Schema<KvTierSpec>& schema<KvTierSpec>() {
  using T = KvTierSpec;
  static const Schema<T> kSchema{
      "a KV cache larger than the memory given to it: some of its blocks are in memory, all of it is in a "
      "file "
      "on device.storage. A block is K or V of some tokens in one layer",
      {field("block", &T::block, "tokens of a block; in bytes of the file whole pages of 4 KiB")
           .between(1, kMostBlock)
           .optional(),
       field(
           "sram", &T::sram,
           "on-chip memory for the first blocks of all layers by `placement`, which DRAM keeps too; read at "
           "llc.bandwidth by each thread. 0 B: none")
           .between(0_B, 1_GiB)
           .by_default(0_B),
       field("dram", &T::dram, "memory for blocks of all layers; mapped: of the page cache")
           .between(4_KiB, 1024_GiB),
       field("placement", &T::placement,
             "which blocks of a layer are in memory, besides the one being filled: age, the newest; score, "
             "those that attention has read for most tokens, where engine.kv has topk")
           .optional(),
       field("prefetch", &T::prefetch,
             "layers whose blocks are read while earlier ones compute; 0: a layer's are asked for when its "
             "attention begins")
           .between(0, 64)
           .optional(),
       field("write_batch", &T::write_batch,
             "direct: tokens whose K and V are written together; 1: token by token")
           .between(1, kMostBlock)
           .optional(),
       field("file", &T::file,
             "in_place: layer by layer, a token has its place; log: batches of all layers follow each other, "
             "long writes and short reads")
           .optional(),
       field("format", &T::format,
             "number format of K and V in the file, of fewer bits than engine.kv, such as q4_0; a block that "
             "is read is converted, by the core that reads. none: as in memory")
           .optional(),
       field("extent", &T::extent,
             "the file lies in pieces of this size scattered over twice its size, as on a fragmented file "
             "system; none: in one piece")
           .between(4_KiB, 1_GiB)
           .optional(),
       field("through", &T::through,
             "direct: O_DIRECT, the engine chooses what is in memory; mapped: mmap, Linux's page cache does")
           .optional(),
       field("read_ahead", &T::read_ahead,
             "mapped: the kernel reads around faults, device.os.read_ahead far; false: MADV_RANDOM")
           .optional(),
       field("lock_current", &T::lock_current, "mapped: the blocks being filled are locked in memory")
           .optional()},
      check_tier_spec};
  return kSchema;
}

}  // namespace kvsim::config
