// SPDX-License-Identifier: Apache-2.0
// A KV cache in a mapped file: Linux's page cache chooses what is in memory and when it is written.
#pragma once

#include "models/kv_tiers/kv_file_map.h"
#include "models/kv_tiers/kv_path.h"
#include "models/page_cache/page_cache.h"

namespace kvsim::model {

class MappedKv final : public KvPath {
 public:
  struct Setup {
    KvGeometry geometry = {};
    config::KvTierSpec tiers = {};
    CacheSetup cache = {};
  };
  /// `device` and `file` outlive it.
  MappedKv(BlockDevice& device, const KvFileMap& file, const Setup& setup);

  void place(const CellTokens& cells) override;
  /// All bytes asked for are told as DRAM's: which of them the device had to read is seen there.
  KvTierUse run(const std::optional<KvTouch>& touch, Picoseconds in_memory) override;
  KvTierUse end_step() override { return {}; }
  [[nodiscard]] bool in_sram(std::int64_t /*layer*/, std::int64_t /*block*/) const override { return false; }
  [[nodiscard]] const std::optional<KvFailure>& failure() const override { return failure_; }
  [[nodiscard]] const PageCache& cache() const { return cache_; }

 private:
  struct LayerState {
    std::vector<std::int64_t> filled;    ///< cells, by block
    std::optional<std::int64_t> locked;  ///< block
  };

  [[nodiscard]] FileExtent range(std::int64_t layer, bool is_v, std::int64_t block) const;
  template <class Visit>
  void for_each_side(Visit visit) const;
  KvTierUse read(const KvTouch& touch, Picoseconds in_memory);
  void read_ahead_of(std::int64_t layer, const std::vector<std::int64_t>& blocks);
  KvTierUse write(const KvTouch& touch, Picoseconds in_memory);
  void lock(LayerState& state, std::int64_t layer, std::int64_t block);
  Picoseconds take(const Touched& touched, KvTierUse& use);

  KvFileMap file_map_;
  Setup setup_;
  PageCache cache_;
  FileId file_;
  std::vector<LayerState> layers_;
  Picoseconds now_;
  std::optional<KvFailure> failure_;
};

}  // namespace kvsim::model
