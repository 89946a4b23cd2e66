// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_cache.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::trace {

using config::KvLayout;

namespace {

Extent rows(Address address, Bytes row_bytes, std::uint32_t rows, Bytes stride) {
  Extent e{.address = address, .row_bytes = row_bytes, .rows = rows, .stride = stride, .kind = Kind::kv};
  if (rows == 1 || row_bytes == stride) {  // no gaps: one run
    e.row_bytes = e.stride = total_bytes(e);
    e.rows = 1;
  }
  return e;
}

/// SplitMix64.
std::uint64_t scrambled(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

/// Pages of the pool in the order in which they are handed out: one order for all layers, as a page number of
/// vLLM's stands for the page in every layer.
std::vector<std::uint32_t> handed_out(const KvShape& shape) {
  std::vector<std::uint32_t> pages(static_cast<std::size_t>(cells(shape) / shape.block));
  std::iota(pages.begin(), pages.end(), 0U);
  if (shape.block_order == config::KvBlockOrder::shuffled) {
    std::uint64_t state = shape.seed;
    for (std::size_t left = pages.size(); left > 1; --left) {  // Fisher and Yates
      state += 0x9e3779b97f4a7c15ULL;
      std::swap(pages[left - 1], pages[scrambled(state) % left]);
    }
  }
  return pages;
}

}  // namespace

KvCache::KvCache(KvShape shape, Address base, KvPayload payload)
    : shape_(std::move(shape)),
      base_(base),
      head_bytes_(trace::head_bytes(shape_)),
      heads_(static_cast<std::size_t>(shape_.kv_heads)),
      cells_(static_cast<std::size_t>(cells(shape_))) {
  check(shape_.capacity <= std::numeric_limits<std::uint32_t>::max(), "a context's tokens fit into 32 bits");
  static_cast<void>(total_bytes(shape_));  // throws if it is too large
  if (is(KvLayout::paged)) {
    blocks_ = handed_out(shape_);
  }
  if (payload == KvPayload::half) {
    check(shape_.type.block == 1 && shape_.type.bytes == Bytes(2), "a payload is kept in half precision");
    values_.resize(static_cast<std::size_t>(shape_.layers * 2 * shape_.head_dim) * cells_ * heads_);
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

template <class Visit>
void KvCache::for_each_run(Token first, std::uint32_t tokens, Visit visit) const {
  const std::uint64_t page = is(KvLayout::paged) ? static_cast<std::uint64_t>(shape_.block) : cells_;
  const std::uint64_t end = std::uint64_t{first.value()} + tokens;
  for (std::uint64_t at = first.value(); at < end;) {
    const std::uint64_t next = std::min(end, (at / page + 1) * page);
    visit(
        Run{.first = Token(static_cast<std::uint32_t>(at)), .tokens = static_cast<std::uint32_t>(next - at)});
    at = next;
  }
}

void KvCache::append(const KvAppend& append, AccessSink& sink) {
  check(append.tokens > 0 && std::uint64_t{append.first.value()} + append.tokens <= depth_,
        "appended tokens are planned");
  for (const KvSide side : {KvSide::k, KvSide::v}) {
    if (has_payload()) {
      store(append, side, side == KvSide::k ? append.k : append.v);
    }
    for_each_run(append.first, append.tokens, [&](const Run& run) {
      const Address start = address(append.layer, side, run.first, Head(0));
      Extent e = is(KvLayout::token_major) ? rows(start, token_stride(), run.tokens, token_stride())
                                           : rows(start, head_bytes_ * std::int64_t{run.tokens},
                                                  static_cast<std::uint32_t>(heads_), head_stride());
      e.access = Access::write;
      e.stream = append.stream;
      sink.put(e);
    });
  }
}

void KvCache::store(const KvAppend& append, KvSide side, std::span<const float> numbers) {
  const auto size = static_cast<std::size_t>(shape_.head_dim);
  check(numbers.size() == heads_ * size * append.tokens,
        "a payload holds a number per head, dimension and token");
  for (std::uint32_t i = 0; i < append.tokens; ++i) {
    for (std::uint32_t head = 0; head < heads_; ++head) {
      const auto from = numbers.subspan((i * heads_ + head) * size, size);
      const std::size_t to = slot(append.layer, side, Token(append.first.value() + i), Head(head)) * size;
      std::transform(from.begin(), from.end(), values_.begin() + static_cast<std::ptrdiff_t>(to), to_half);
    }
  }
}

void KvCache::access(const KvTile& tile, AccessSink& sink) const {
  check(tile.tokens > 0 && std::uint64_t{tile.first.value()} + tile.tokens <= depth_,
        "a tile that is read is in the cache");
  for_each_run(tile.first, tile.tokens, [&](const Run& run) {
    Extent e =
        rows(address(tile.layer, tile.side, run.first, tile.head), head_bytes_, run.tokens, token_stride());
    e.stream = tile.stream;
    sink.put(e);
  });
}

std::span<const Half> KvCache::values(Layer layer, KvSide side, Token token, Head head) const {
  const auto size = static_cast<std::size_t>(shape_.head_dim);
  return std::span(values_).subspan(slot(layer, side, token, head) * size, size);
}

Bytes KvCache::token_stride() const {
  return is(KvLayout::token_major) ? head_bytes_ * shape_.kv_heads : head_bytes_;
}

Bytes KvCache::head_stride() const {
  switch (shape_.layout) {
    case KvLayout::token_major:
      return head_bytes_;
    case KvLayout::head_major:
      return head_bytes_ * static_cast<std::int64_t>(cells_);
    case KvLayout::paged:
      return head_bytes_ * shape_.block;
  }
  return head_bytes_;
}

std::size_t KvCache::slot(Layer layer, KvSide side, Token token, Head head) const {
  check(layer.value() < shape_.layers && token.value() < shape_.capacity && head.value() < heads_,
        "a vector is in the cache");
  const std::size_t begin = (layer.pos() * 2 + static_cast<std::size_t>(side)) * cells_ * heads_;
  switch (shape_.layout) {
    case KvLayout::token_major:
      return begin + token.pos() * heads_ + head.pos();
    case KvLayout::head_major:
      return begin + head.pos() * cells_ + token.pos();
    case KvLayout::paged: {
      const auto block = static_cast<std::size_t>(shape_.block);
      return begin + (blocks_[token.pos() / block] * heads_ + head.pos()) * block + token.pos() % block;
    }
  }
  return begin;
}

Address KvCache::address(Layer layer, KvSide side, Token token, Head head) const {
  return base_ + slot(layer, side, token, head) * static_cast<Address>(head_bytes_.count());
}

}  // namespace kvsim::trace
