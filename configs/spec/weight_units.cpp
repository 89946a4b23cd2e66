// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/weight_units.h"

#include <algorithm>

#include "configs/spec/expert_layers.h"

namespace kvsim::config {
namespace {

constexpr std::int64_t kBlock = kDirectBlock.count();

void join(WeightUnit& unit) {
  std::ranges::sort(unit, {}, &FileRange::first);
  WeightUnit joined;
  for (const FileRange& range : unit) {
    if (!joined.empty() && range.first - (joined.back().first + joined.back().bytes) < kDirectBlock) {
      joined.back().bytes = range.first + range.bytes - joined.back().first;
    } else {
      joined.push_back(range);
    }
  }
  unit = std::move(joined);
}

bool is_of_output(const LlmSpec& model, const TensorInfo& tensor) {
  return tensor.role == TensorRole::output || tensor.name == "output_norm.weight" ||
         (model.tied_embeddings && tensor.role == TensorRole::token_embedding);
}

}  // namespace

std::vector<WeightUnit> weight_units(const LlmSpec& model, const std::vector<TensorInfo>& tensors) {
  std::vector<WeightUnit> units(static_cast<std::size_t>(model.layers) + 1);
  for (const TensorInfo& tensor : tensors) {
    if (tensor.layer) {
      units.at(tensor.layer->pos()).push_back({.first = tensor.offset, .bytes = tensor.bytes});
    } else if (is_of_output(model, tensor)) {
      units.back().push_back({.first = tensor.offset, .bytes = tensor.bytes});
    }
  }
  std::ranges::for_each(units, join);
  return units;
}

std::vector<WeightUnit> without_first(std::vector<WeightUnit> units, Bytes bytes) {
  for (WeightUnit& unit : units) {
    for (FileRange& range : unit) {
      const Bytes cut = std::min(bytes, range.bytes);
      bytes -= cut;
      range = {.first = range.first + cut, .bytes = range.bytes - cut};
    }
    std::erase_if(unit, [](const FileRange& range) { return range.bytes == Bytes(); });
  }
  return units;
}

Bytes unit_bytes(const WeightUnit& unit) {
  Bytes bytes;
  for (const FileRange& range : unit) {
    bytes += range.bytes;
  }
  return bytes;
}

FileRange in_blocks(const FileRange& range) {
  const Bytes first(range.first.count() / kBlock * kBlock);
  const Bytes end((range.first + range.bytes + Bytes(kBlock - 1)).count() / kBlock * kBlock);
  return {.first = first, .bytes = end - first};
}

Bytes read_bytes(const WeightUnit& unit) {
  Bytes bytes;
  for (const FileRange& range : unit) {
    bytes += in_blocks(range).bytes;
  }
  return bytes;
}

}  // namespace kvsim::config
