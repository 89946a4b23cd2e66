// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_shape.h"

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/record/checked.h"

namespace kvsim::trace {
namespace {

constexpr const char* kWhat = "the KV cache";

}  // namespace

std::int64_t padded_context(std::int64_t tokens, std::int64_t padding) {
  return checked_round_up("the context", Bytes(tokens), Bytes(padding)).count();
}

Bytes head_bytes(const KvShape& shape) {
  if (shape.head_dim % shape.type.block != 0) {
    throw UserError(
        fmt::format("a KV cache in {} needs heads whose size is a multiple of {}, and this model's is {}; "
                    "choose another type for the KV cache, such as F16",
                    shape.type.name, shape.type.block, shape.head_dim));
  }
  const Bytes bytes = checked_product(kWhat, {shape.head_dim / shape.type.block, shape.type.bytes.count()});
  return checked_round_up(kWhat, bytes, shape.head_alignment);
}

Bytes row_bytes(const KvShape& shape) {
  return checked_product(kWhat, {head_bytes(shape).count(), shape.kv_heads});
}

Bytes bytes_per_token(const KvShape& shape) {
  return checked_product(kWhat, {row_bytes(shape).count(), 2, shape.layers});
}

std::int64_t cells(const KvShape& shape) {
  return shape.layout == config::KvLayout::paged ? padded_context(shape.capacity, shape.block)
                                                 : shape.capacity;
}

Bytes total_bytes(const KvShape& shape) {
  return checked_product(kWhat, {bytes_per_token(shape).count(), cells(shape)});
}

}  // namespace kvsim::trace
