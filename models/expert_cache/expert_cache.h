// SPDX-License-Identifier: Apache-2.0
// Experts of a mixture that are read from storage, past the page cache, into a cache of their own.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "configs/spec/expert_layers.h"
#include "configs/spec/run_spec.h"
#include "models/expert_cache/free_space.h"
#include "models/storage/storage_device.h"

namespace kvsim::model {

struct ExpertId {
  std::uint32_t layer = 0;
  std::uint32_t expert = 0;

  bool operator==(const ExpertId&) const = default;
};

/// What layers asked for and what that cost. `asked` = `cached` + what was asked of the device, `read` less
/// `rounding`.
struct ExpertReads {
  std::int64_t hits = 0;
  std::int64_t misses = 0;
  std::int64_t requests = 0;
  Bytes asked;     ///< of experts
  Bytes cached;    ///< of these, in memory
  Bytes read;      ///< by the device, in whole blocks
  Bytes rounding;  ///< of it, what the blocks hold of others
  Picoseconds stall;

  ExpertReads& operator+=(const ExpertReads& other);
};

class ExpertCache {
 public:
  struct Setup {
    config::ExpertStorage how;
    std::int64_t experts = 0;  ///< of a layer
    Bytes room;                ///< at least what one layer asks for at once; how.cache may be less
  };
  /// `device` holds the file at its beginning and is nobody else's.
  ExpertCache(StorageDevice& device, const Setup& setup, std::vector<config::ExpertLayer> layers);

  /// Experts that stay for good, in memory before the first token. Precondition: the policy is pinned, and
  /// they fit beside what a layer asks for.
  void pin(std::span<const ExpertId> experts);

  /// A layer needs `experts`, each once: what is missing is read. Without overlap it waits for all of it.
  /// Precondition: no layer is under way; their bytes fit the room.
  [[nodiscard]] ExpertReads begin(std::uint32_t layer, std::span<const std::uint32_t> experts,
                                  Picoseconds now);
  /// The layer has computed with them for `compute` in all. With overlap each expert was computed as soon as
  /// it was there, what was there first first, and each took the same: how much longer that was.
  [[nodiscard]] Picoseconds end(Picoseconds compute);

  /// Where an expert of the layer under way lies in the room: `expert_bytes` in one run or several.
  [[nodiscard]] const std::vector<SpaceRun>& place(ExpertId expert) const;
  [[nodiscard]] bool holds(ExpertId expert) const { return !entry(expert).runs.empty(); }
  [[nodiscard]] Bytes held() const { return setup_.room - space_.free(); }

 private:
  struct Entry {
    std::vector<SpaceRun> runs;  ///< empty: not in memory
    std::int64_t last_use = 0;
    std::int64_t uses = 0;
    bool in_use = false;
    bool pinned = false;
  };
  /// A read that is to be made, and the missing expert that it belongs to.
  struct Read {
    std::size_t missing = 0;
    Bytes offset;
    Bytes bytes;
  };
  using Rank = std::tuple<std::int64_t, std::int64_t, std::size_t>;  ///< what goes first is smallest

  [[nodiscard]] std::size_t index(ExpertId id) const;
  [[nodiscard]] const Entry& entry(ExpertId id) const { return entries_.at(index(id)); }
  [[nodiscard]] Bytes bytes_of(std::size_t index) const;
  [[nodiscard]] Rank rank(std::size_t index) const;
  [[nodiscard]] std::vector<Read> reads_of(std::uint32_t layer, std::span<const std::uint32_t> missing,
                                           ExpertReads& reads) const;
  void use(std::size_t index);
  void evict_down_to(Bytes bytes);
  void fetch(const std::vector<Read>& list, std::size_t known, Picoseconds now);

  StorageDevice& device_;
  Setup setup_;
  std::vector<config::ExpertLayer> layers_;
  std::vector<Entry> entries_;  ///< layer by layer
  std::set<Rank> order_;        ///< of what may be evicted
  FreeSpace space_;
  std::int64_t tick_ = 0;
  // The layer under way.
  std::vector<std::size_t> at_work_;
  std::vector<Picoseconds> there_;  ///< when each expert is in memory
  Picoseconds begun_;
};

}  // namespace kvsim::model
