// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_shape.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/kv_cache/kv_policy.h"
#include "traces/record/checked.h"

namespace kvsim::trace {
namespace {

constexpr const char* kWhat = "the KV cache";
constexpr config::KvFormat kWide{.number = config::KvNumber::f16};

/// Of a range by channel: an equal part of what the group takes.
Bytes vector_bytes(const KvShape& shape, const config::KvFormat& format) {
  if (format.range != config::KvRange::channel) {
    return config::kv_vector_bytes(format, shape.head_dim);
  }
  const Bytes group = config::kv_group_bytes(format, shape.head_dim);
  if (group.count() % format.group != 0) {
    throw UserError(fmt::format(
        "a KV cache in {} takes {} bytes for {} tokens of a head of {} numbers, which is no whole "
        "number of bytes each; choose a smaller group",
        name(format), group.count(), format.group, shape.head_dim));
  }
  return Bytes(group.count() / format.group);
}

Bytes cell_bytes(const KvShape& shape, const config::KvFormat& k, const config::KvFormat& v) {
  const Bytes both = checked_sum(kWhat, side_bytes(shape, KvSide::k, k), side_bytes(shape, KvSide::v, v));
  return checked_product(kWhat, {both.count(), shape.kv_heads, shape.layers});
}

std::int64_t whole_pages(const KvShape& shape, std::int64_t cells) {
  return shape.layout == config::KvLayout::paged ? padded_context(cells, shape.block) : cells;
}

}  // namespace

std::int64_t padded_context(std::int64_t tokens, std::int64_t padding) {
  return checked_round_up("the context", Bytes(tokens), Bytes(padding)).count();
}

Bytes head_bytes(const KvShape& shape, const config::KvFormat& format) {
  return checked_round_up(kWhat, vector_bytes(shape, format), shape.head_alignment);
}

Bytes side_bytes(const KvShape& shape, KvSide side, const config::KvFormat& format) {
  return side == KvSide::v && shape.latent > 0 ? Bytes(0) : head_bytes(shape, format);
}

Bytes bytes_per_token(const KvShape& shape) {
  return cell_bytes(shape, shape.spec.k, shape.spec.v);
}

std::int64_t main_cells(const KvShape& shape) {
  const auto budget = make_policy(shape.spec)->budget();
  const std::int64_t kept =
      budget ? std::min(shape.capacity, std::max(*budget - 1 + shape.batch, shape.reserved)) : shape.capacity;
  return whole_pages(shape, padded_context(kept, group_tokens(shape)));
}

std::int64_t first_in_f16(const KvShape& shape) {
  const auto share =
      static_cast<std::int64_t>(std::ceil(shape.spec.first_share * static_cast<double>(shape.capacity)));
  return std::min(shape.capacity, std::max(shape.spec.first, share));
}

std::int64_t recent_in_f16(const KvShape& shape) {
  return shape.spec.recent;
}

std::int64_t group_tokens(const KvShape& shape) {
  const auto of = [](const config::KvFormat& format) {
    return format.range == config::KvRange::channel ? format.group : 1;
  };
  const std::int64_t k = of(shape.spec.k), v = of(shape.spec.v);
  if (k > 1 && v > 1 && k != v) {
    throw UserError("ranges by channel of K and of V need groups of the same size");
  }
  return std::max(k, v);
}

std::int64_t wide_cells(const KvShape& shape) {
  const std::int64_t first = first_in_f16(shape);
  const std::int64_t recent = recent_in_f16(shape);
  const std::int64_t waiting = group_tokens(shape) - 1;
  const std::int64_t coming = recent + waiting > 0 ? recent + waiting + shape.batch : 0;
  return whole_pages(shape, std::min(shape.capacity, first + coming));
}

Bytes page_bounds_bytes(const KvShape& shape) {
  return shape.spec.topk > 0 ? Bytes(2 * 2 * shape.head_dim) : Bytes(0);
}

Bytes wide_bytes(const KvShape& shape) {
  return checked_product(kWhat, {cell_bytes(shape, kWide, kWide).count(), wide_cells(shape)});
}

Bytes total_bytes(const KvShape& shape) {
  const Bytes main = checked_product(kWhat, {bytes_per_token(shape).count(), main_cells(shape)});
  const std::int64_t pages = (main_cells(shape) + config::kTopkPage - 1) / config::kTopkPage;
  const Bytes bounds =
      checked_product(kWhat, {page_bounds_bytes(shape).count(), pages, shape.kv_heads, shape.layers});
  return checked_sum(kWhat, checked_sum(kWhat, main, wide_bytes(shape)), bounds);
}

}  // namespace kvsim::trace
