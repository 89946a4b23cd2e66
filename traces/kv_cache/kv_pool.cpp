// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_pool.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/number/kv_codec.h"
#include "traces/record/checked.h"
#include "traces/record/spread.h"
#include "traces/simd/simd.h"

namespace kvsim::trace {

using config::KvLayout;
using config::KvNumber;
using config::KvRange;

namespace {

/// `rows` runs of `row_bytes`, `stride` apart; one run if there are no gaps.
void shape_rows(Extent& e, Bytes row_bytes, std::uint32_t rows, Bytes stride) {
  e.row_bytes = row_bytes;
  e.rows = rows;
  e.stride = stride;
  if (rows == 1 || row_bytes == stride) {
    e.row_bytes = e.stride = total_bytes(e);
    e.rows = 1;
  }
}

/// Pages of the pool in the order in which they are handed out: one order for all layers, as a page number of
/// vLLM's stands for the page in every layer.
std::vector<std::uint32_t> handed_out(const KvShape& shape, std::int64_t cells) {
  std::vector<std::uint32_t> pages(static_cast<std::size_t>(cells / shape.block));
  std::iota(pages.begin(), pages.end(), 0U);
  if (shape.block_order == config::KvBlockOrder::shuffled) {
    SplitMix64 random(shape.seed);
    for (std::size_t left = pages.size(); left > 1; --left) {  // Fisher and Yates
      std::swap(pages[left - 1], pages[random.below(left)]);
    }
  }
  return pages;
}

/// A number of its own address each: no blocks, no padding, one run of cells.
void check_transposed(const KvShape& shape, const config::KvFormat& v) {
  const bool plain = v.number == KvNumber::f32 || v.number == KvNumber::f16 || v.number == KvNumber::bf16;
  if (!plain || shape.layout == KvLayout::paged || shape.head_alignment > Bytes(1)) {
    throw UserError(
        "V can be transposed as f32, f16 or bf16, in no pages and with kv_row_alignment 1 B only; llama.cpp "
        "refuses a quantised V without flash attention too");
  }
}

}  // namespace

KvPool::KvPool(const KvShape& shape, const Formats& formats, std::int64_t cells, Address base)
    : layout_(shape.layout),
      block_(static_cast<std::size_t>(shape.block)),
      layers_(static_cast<std::size_t>(shape.layers)),
      heads_(static_cast<std::size_t>(shape.kv_heads)),
      head_dim_(static_cast<std::size_t>(shape.head_dim)),
      cells_(static_cast<std::size_t>(cells)),
      sides_{{.format = formats.k},
             {.format = formats.v, .transposed = shape.v_transposed && shape.latent == 0}},
      base_(base) {
  constexpr const char* kWhat = "the KV cache";
  for (Side& side : sides_) {
    check_groups(side.format,
                 {.layout = shape.layout, .block = shape.block, .row_alignment = shape.head_alignment});
    if (side.transposed) {
      check_transposed(shape, side.format);
    }
    side.head_bytes = side_bytes(shape, &side == sides_ ? KvSide::k : KvSide::v, side.format);
    side.offset = layer_bytes_;
    layer_bytes_ = checked_sum(kWhat, layer_bytes_,
                               checked_product(kWhat, {side.head_bytes.count(), shape.kv_heads, cells}));
  }
  bytes_ = checked_product(kWhat, {layer_bytes_.count(), shape.layers});
  if (layout_ == KvLayout::paged) {
    blocks_ = handed_out(shape, cells);
  }
}

void KvPool::hold_numbers() {
  stored_.resize(static_cast<std::size_t>(bytes_.count()));
}

template <class Visit>
void KvPool::for_each_run(CellRun cells, Visit visit) const {
  const std::uint64_t page = layout_ == KvLayout::paged ? block_ : cells_;
  const std::uint64_t end = std::uint64_t{cells.first} + cells.count;
  for (std::uint64_t at = cells.first; at < end;) {
    const std::uint64_t next = std::min(end, (at / page + 1) * page);
    visit(CellRun{.first = static_cast<std::uint32_t>(at), .count = static_cast<std::uint32_t>(next - at)});
    at = next;
  }
}

Extent KvPool::extent(const KvPlace& place, std::uint32_t cell) const {
  return {.address = base_ + static_cast<Address>(offset(place, cell).count()), .kind = Kind::kv};
}

Extent KvPool::transposed_extent(const KvPlace& place, CellRun cells, std::size_t heads) const {
  const Side& side = of(place.side);
  const Bytes number = side.head_bytes / static_cast<std::int64_t>(head_dim_);
  const Bytes row = number * static_cast<std::int64_t>(cells_);
  check(place.layer.value() < layers_ && cells.first + cells.count <= cells_, "cells are in the cache");
  const Bytes start = layer_bytes_ * std::int64_t{place.layer.value()} + side.offset +
                      row * static_cast<std::int64_t>(place.head.pos() * head_dim_) +
                      number * std::int64_t{cells.first};
  Extent e{.address = base_ + static_cast<Address>(start.count()), .kind = Kind::kv};
  shape_rows(e, number * std::int64_t{cells.count}, static_cast<std::uint32_t>(heads * head_dim_), row);
  return e;
}

void KvPool::access_head(const KvPlace& place, CellRun cells, Access access, Stream stream,
                         AccessSink& sink) const {
  const Side& side = of(place.side);
  if (side.head_bytes == Bytes(0)) {
    return;
  }
  for_each_run(cells, [&](CellRun run) {
    Extent e = side.transposed ? transposed_extent(place, run, 1) : extent(place, run.first);
    if (!side.transposed) {
      shape_rows(e, side.head_bytes, run.count, token_stride(side));
    }
    e.access = access;
    e.stream = stream;
    sink.put(e);
  });
}

void KvPool::access_all_heads(const KvPlace& place, CellRun cells, Access access, Stream stream,
                              AccessSink& sink) const {
  const Side& side = of(place.side);
  if (side.head_bytes == Bytes(0)) {
    return;
  }
  for_each_run(cells, [&](CellRun run) {
    const KvPlace all{.layer = place.layer, .side = place.side};
    Extent e = side.transposed ? transposed_extent(all, run, heads_) : extent(all, run.first);
    if (!side.transposed && layout_ == KvLayout::token_major) {
      shape_rows(e, token_stride(side), run.count, token_stride(side));
    } else if (!side.transposed) {
      shape_rows(e, side.head_bytes * std::int64_t{run.count}, static_cast<std::uint32_t>(heads_),
                 head_stride(side));
    }
    e.access = access;
    e.stream = stream;
    sink.put(e);
  });
}

void KvPool::store(const KvPlace& place, std::uint32_t cell, std::span<const float> numbers) {
  const Side& side = of(place.side);
  const bool group = side.format.range == KvRange::channel;
  const std::int64_t tokens = group ? side.format.group : 1;
  check(numbers.size() == head_dim_ * static_cast<std::size_t>(tokens) && cell % tokens == 0,
        "a vector, or a whole group, is stored at once");
  const auto bytes = static_cast<std::size_t>((side.head_bytes * tokens).count());
  const auto to = std::span(stored_).subspan(static_cast<std::size_t>(offset(place, cell).count()), bytes);
  if (group) {
    encode_channels(side.format, numbers, to);
  } else {
    encode(side.format, numbers,
           to.first(static_cast<std::size_t>(
               config::kv_vector_bytes(side.format, static_cast<std::int64_t>(head_dim_)).count())));
  }
}

void KvPool::take_over(const KvPlace& place, const KvPool& from, CellRun cells, std::uint32_t to) {
  const Side& side = of(place.side);
  check(side.format == from.format(place.side) && side.head_bytes == from.of(place.side).head_bytes,
        "vectors are taken over in the same format");
  KvPlace at = place;
  for (at.head = Head(0); at.head.value() < heads_; ++at.head) {
    for (std::uint32_t i = 0; i < cells.count; ++i) {
      const auto vector = from.stored(at, cells.first + i, side.head_bytes);
      std::copy(vector.begin(), vector.end(), stored_.begin() + offset(at, to + i).count());
    }
  }
}

std::span<const std::byte> KvPool::stored(const KvPlace& place, std::uint32_t cell, Bytes bytes) const {
  return std::span(stored_).subspan(static_cast<std::size_t>(offset(place, cell).count()),
                                    static_cast<std::size_t>(bytes.count()));
}

void KvPool::load(const KvPlace& place, CellRun cells, std::span<float> numbers) const {
  const Side& side = of(place.side);
  check(numbers.size() == head_dim_ * cells.count, "as many numbers are loaded as there are");
  if (side.format.range == KvRange::channel) {
    load_groups(place, cells, numbers);
    return;
  }
  const Bytes size = config::kv_vector_bytes(side.format, static_cast<std::int64_t>(head_dim_));
  for (std::uint32_t i = 0; i < cells.count; ++i) {
    const auto from = stored(place, cells.first + i, size);
    const auto to = numbers.subspan(i * head_dim_, head_dim_);
    if (side.format.number == KvNumber::f16) {
      simd::widen(from, to);
    } else {
      decode(side.format, from, to);
    }
  }
}

std::optional<simd::HalfRows> KvPool::in_place(const KvPlace& place, CellRun cells) const {
  const Side& side = of(place.side);
  std::size_t runs = 0;
  for_each_run(cells, [&](CellRun) { ++runs; });
  const std::int64_t stride = token_stride(side).count();
  if (side.format.number != KvNumber::f16 || runs != 1 || stride % 2 != 0) {
    return std::nullopt;
  }
  static_cast<void>(offset(place, cells.first + cells.count - 1));  // checks that the last one is there
  return simd::HalfRows{.first = stored(place, cells.first, Bytes(0)).data(),
                        .rows = cells.count,
                        .columns = head_dim_,
                        .stride = static_cast<std::size_t>(stride / 2)};
}

void KvPool::load_groups(const KvPlace& place, CellRun cells, std::span<float> numbers) const {
  const Side& side = of(place.side);
  const auto group = static_cast<std::uint32_t>(side.format.group);
  std::vector<float> whole(group * head_dim_);
  const std::uint32_t end = cells.first + cells.count;
  for (std::uint32_t at = cells.first; at < end;) {
    const std::uint32_t begin = at / group * group;
    const std::uint32_t next = std::min(end, begin + group);
    decode_channels(side.format, stored(place, begin, side.head_bytes * std::int64_t{group}), whole);
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>((at - begin) * head_dim_),
                (next - at) * head_dim_,
                numbers.begin() + static_cast<std::ptrdiff_t>((at - cells.first) * head_dim_));
    at = next;
  }
}

Bytes KvPool::token_stride(const Side& side) const {
  return layout_ == KvLayout::token_major ? side.head_bytes * static_cast<std::int64_t>(heads_)
                                          : side.head_bytes;
}

Bytes KvPool::head_stride(const Side& side) const {
  switch (layout_) {
    case KvLayout::token_major:
      return side.head_bytes;
    case KvLayout::head_major:
      return side.head_bytes * static_cast<std::int64_t>(cells_);
    case KvLayout::paged:
      return side.head_bytes * static_cast<std::int64_t>(block_);
  }
  return side.head_bytes;
}

std::size_t KvPool::slot(std::uint32_t cell, Head head) const {
  switch (layout_) {
    case KvLayout::token_major:
      return cell * heads_ + head.pos();
    case KvLayout::head_major:
      return head.pos() * cells_ + cell;
    case KvLayout::paged:
      return (blocks_[cell / block_] * heads_ + head.pos()) * block_ + cell % block_;
  }
  return cell;
}

Bytes KvPool::offset(const KvPlace& place, std::uint32_t cell) const {
  const Side& side = of(place.side);
  check(place.layer.value() < layers_ && cell < cells_ && place.head.value() < heads_,
        "a vector is in the cache");
  return layer_bytes_ * std::int64_t{place.layer.value()} + side.offset +
         side.head_bytes * static_cast<std::int64_t>(slot(cell, place.head));
}

}  // namespace kvsim::trace
