// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

Extent rows(Address address, Bytes row_bytes, std::uint32_t rows, Bytes stride) {
  Extent e{.address = address, .row_bytes = row_bytes, .rows = rows, .stride = stride, .kind = Kind::kv};
  if (rows == 1 || row_bytes == stride) {  // no gaps: one run
    e.row_bytes = e.stride = total_bytes(e);
    e.rows = 1;
  }
  return e;
}

}  // namespace

KvCache::KvCache(KvShape shape, Address base, KvPayload payload)
    : shape_(std::move(shape)),
      base_(base),
      head_bytes_(trace::head_bytes(shape_)),
      row_bytes_(trace::row_bytes(shape_)) {
  check(shape_.capacity <= std::numeric_limits<std::uint32_t>::max(), "a context's tokens fit into 32 bits");
  static_cast<void>(total_bytes(shape_));  // throws if it is too large
  if (payload == KvPayload::half) {
    check(shape_.type.block == 1 && shape_.type.bytes == Bytes(2), "a payload is kept in half precision");
    values_.resize(
        static_cast<std::size_t>(shape_.layers * 2 * shape_.capacity * shape_.kv_heads * shape_.head_dim));
  }
}

std::variant<KvPlan, DoesNotFit> KvCache::plan(std::uint32_t tokens) const {
  const std::uint32_t left = static_cast<std::uint32_t>(shape_.capacity) - depth_;
  if (tokens > left) {
    return DoesNotFit{.asked = tokens, .left = left};
  }
  return KvPlan{.first = Token(depth_), .tokens = tokens};
}

void KvCache::apply(const KvPlan& plan) {
  check(plan.first.value() == depth_ && plan.tokens <= static_cast<std::uint64_t>(shape_.capacity) - depth_,
        "a plan is applied to the cache it was made for, once");
  depth_ += plan.tokens;
}

void KvCache::truncate(std::uint32_t tokens) {
  check(tokens <= depth_, "only tokens that are there can be kept");
  depth_ = tokens;
}

void KvCache::append(const KvAppend& append, AccessSink& sink) {
  check(append.tokens > 0 && std::uint64_t{append.first.value()} + append.tokens <= depth_,
        "appended tokens are planned");
  for (const KvSide side : {KvSide::k, KvSide::v}) {
    if (has_payload()) {
      store(append, side, side == KvSide::k ? append.k : append.v);
    }
    Extent e = rows(row_address(append.layer, side, append.first), row_bytes_, append.tokens, row_bytes_);
    e.access = Access::write;
    e.stream = append.stream;
    sink.put(e);
  }
}

void KvCache::store(const KvAppend& append, KvSide side, std::span<const float> numbers) {
  const auto row = static_cast<std::size_t>(shape_.kv_heads * shape_.head_dim);
  check(numbers.size() == row * append.tokens, "a payload holds a number per head, dimension and token");
  const auto cells =
      std::span(values_).subspan(row_index(append.layer, side, append.first) * row, numbers.size());
  std::transform(numbers.begin(), numbers.end(), cells.begin(), to_half);
}

Extent KvCache::access(const KvTile& tile) const {
  check(tile.tokens > 0 && std::uint64_t{tile.first.value()} + tile.tokens <= depth_ &&
            tile.head.value() < shape_.kv_heads,
        "a tile that is read is in the cache");
  const Address head = static_cast<Address>(head_bytes_.count()) * tile.head.value();
  Extent e =
      rows(row_address(tile.layer, tile.side, tile.first) + head, head_bytes_, tile.tokens, row_bytes_);
  e.stream = tile.stream;
  return e;
}

std::span<const Half> KvCache::values(Layer layer, KvSide side, Token token, Head head) const {
  const auto size = static_cast<std::size_t>(shape_.head_dim);
  const std::size_t row = row_index(layer, side, token) * static_cast<std::size_t>(shape_.kv_heads);
  return std::span(values_).subspan((row + head.pos()) * size, size);
}

std::size_t KvCache::row_index(Layer layer, KvSide side, Token token) const {
  check(layer.value() < shape_.layers && token.value() < shape_.capacity, "a row is in the cache");
  return (layer.pos() * 2 + static_cast<std::size_t>(side)) * static_cast<std::size_t>(shape_.capacity) +
         token.pos();
}

Address KvCache::row_address(Layer layer, KvSide side, Token token) const {
  return base_ + row_index(layer, side, token) * static_cast<Address>(row_bytes_.count());
}

}  // namespace kvsim::trace
