// SPDX-License-Identifier: Apache-2.0
// Cells for K and V in one pair of formats: where each vector lies, the accesses that reach it, and, with a
// payload, its numbers as they are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "configs/spec/kv_format.h"
#include "configs/units/index.h"
#include "traces/kv_cache/kv_lane.h"
#include "traces/kv_cache/kv_shape.h"
#include "traces/record/source.h"
#include "traces/simd/simd.h"

namespace kvsim::trace {

enum class KvPayload : std::uint8_t {
  none,     ///< book-keeping only
  numbers,  ///< holds what is appended, in the cache's formats
};

/// One side of one head in one layer.
struct KvPlace {
  Layer layer{};
  KvSide side = KvSide::k;
  Head head{};
};

/// What one thread writes into one layer: some of a plan's tokens.
struct KvAppend {
  Layer layer{};
  Token first{};
  std::uint32_t tokens = 0;
  Stream stream{};
  std::span<const float> k{};  ///< [token][KV head][head_dim]; empty without payload
  std::span<const float> v{};
};

class KvPool {
 public:
  struct Formats {
    config::KvFormat k;
    config::KvFormat v;
  };
  KvPool(const KvShape& shape, const Formats& formats, std::int64_t cells, Address base);

  void hold_numbers();
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] const config::KvFormat& format(KvSide side) const { return of(side).format; }

  /// Puts the accesses of one head's vectors into `sink`: one per run of cells that lie at equal distances.
  void access_head(const KvPlace& place, CellRun cells, Access access, Stream stream, AccessSink& sink) const;
  /// Puts the accesses of all heads' vectors into `sink`. `place.head` is not looked at.
  void access_all_heads(const KvPlace& place, CellRun cells, Access access, Stream stream,
                        AccessSink& sink) const;

  /// Rounds a head's numbers of one token to the format, or those of a whole group, [token][head_dim], if it
  /// has a range by channel. Precondition: hold_numbers() was called.
  void store(const KvPlace& place, std::uint32_t cell, std::span<const float> numbers);
  /// Takes one side of one layer over as it is stored, from cells of a pool with the same formats.
  /// Precondition: both hold numbers, and no format has a range by channel.
  void take_over(const KvPlace& place, const KvPool& from, CellRun cells, std::uint32_t to);
  /// Writes [cell][head_dim] into `numbers`. Precondition: every cell was stored.
  void load(const KvPlace& place, CellRun cells, std::span<float> numbers) const;
  /// The cells' numbers where they are, if they are in F16 and at equal distances. Precondition: every cell
  /// was stored.
  [[nodiscard]] std::optional<simd::HalfRows> in_place(const KvPlace& place, CellRun cells) const;

 private:
  struct Side {
    config::KvFormat format;
    bool transposed = false;
    Bytes head_bytes{};  ///< 0: not kept
    Bytes offset{};      ///< in a layer
  };
  [[nodiscard]] const Side& of(KvSide side) const { return sides_[static_cast<std::size_t>(side)]; }
  template <class Visit>
  void for_each_run(CellRun cells, Visit visit) const;
  /// Of `heads` heads from `place` on, where V lies [head][number][token].
  [[nodiscard]] Extent transposed_extent(const KvPlace& place, CellRun cells, std::size_t heads) const;
  [[nodiscard]] Bytes token_stride(const Side& side) const;
  [[nodiscard]] Bytes head_stride(const Side& side) const;
  /// Of a vector, from the beginning of the pool.
  [[nodiscard]] Bytes offset(const KvPlace& place, std::uint32_t cell) const;
  [[nodiscard]] std::size_t slot(std::uint32_t cell, Head head) const;
  [[nodiscard]] Extent extent(const KvPlace& place, std::uint32_t cell) const;
  void load_groups(const KvPlace& place, CellRun cells, std::span<float> numbers) const;
  [[nodiscard]] std::span<const std::byte> stored(const KvPlace& place, std::uint32_t cell,
                                                  Bytes bytes) const;

  config::KvLayout layout_;
  std::size_t block_;
  std::size_t layers_;
  std::size_t heads_;
  std::size_t head_dim_;
  std::size_t cells_;
  Side sides_[2];
  Bytes layer_bytes_{};
  Bytes bytes_{};
  Address base_;
  std::vector<std::uint32_t>
      blocks_;  // by the page's number in the sequence, its place in the pool; if paged
  std::vector<std::byte> stored_;
};

}  // namespace kvsim::trace
