// SPDX-License-Identifier: Apache-2.0
// Where a KV cache's cells lie in its file, and the file on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/spec/kv_tier_spec.h"
#include "models/kv_tiers/kv_geometry.h"
#include "models/page_cache/page_cache.h"

namespace kvsim::model {

/// O_DIRECT asks for whole ones.
inline constexpr std::int64_t kKvSector = 512;

class KvFileMap {
 public:
  /// Precondition: the span is less than the largest number.
  KvFileMap(const KvGeometry& geometry, const config::KvTierSpec& tiers, std::uint64_t seed);

  /// Of the device, from its beginning, that the file lies within; the largest number if that is larger.
  [[nodiscard]] static Bytes span(const KvGeometry& geometry, const config::KvTierSpec& tiers);
  [[nodiscard]] Bytes size() const { return size_; }
  /// K and V of a cell in one layer.
  [[nodiscard]] Bytes row() const { return geometry_.row(); }
  /// The file's pieces in order.
  [[nodiscard]] std::vector<FileExtent> extents() const;

  /// K, or V, of cells in one block, by the byte. In a log those of one batch lie together.
  [[nodiscard]] FileExtent in_file(std::int64_t layer, bool is_v, CellRange cells) const;
  /// All layers' K and V of a batch. Precondition: it is a log.
  [[nodiscard]] FileExtent entry(std::int64_t batch) const;
  /// Appends where K and V of the cells lie on the device, in whole sectors.
  void add_pieces(std::int64_t layer, CellRange cells, std::vector<FileExtent>& out) const;
  /// The same of a range of the file.
  void add_pieces(FileExtent range, std::vector<FileExtent>& out) const;

 private:
  [[nodiscard]] Bytes place_of(std::int64_t piece) const;

  KvGeometry geometry_;
  bool is_log_;
  std::int64_t batch_;
  Bytes entry_;  ///< of a log, in whole sectors
  Bytes size_;
  Bytes extent_;  ///< 0: the file lies in one
  std::vector<std::uint32_t> slots_;
};

}  // namespace kvsim::model
