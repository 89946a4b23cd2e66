// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/expert_layers.h"

#include "configs/error/error.h"

namespace kvsim::config {

bool is_of_experts(const TensorInfo& tensor) {
  return tensor.name.ends_with("_exps.weight");
}

std::vector<ExpertLayer> expert_layers(const LlmSpec& model, const std::vector<TensorInfo>& tensors) {
  check(model.experts.has_value(), "the model has experts");
  std::vector<ExpertLayer> layers(static_cast<std::size_t>(model.layers));
  for (const TensorInfo& tensor : tensors) {
    if (is_of_experts(tensor)) {
      layers.at(tensor.layer.value().pos())
          .push_back({.offset = tensor.offset, .each = tensor.bytes / model.experts->count});
    }
  }
  return layers;
}

Bytes expert_bytes(const ExpertLayer& layer) {
  return part_begin(layer, layer.size());
}

Bytes part_begin(const ExpertLayer& layer, std::size_t tensor) {
  const std::int64_t block = kDirectBlock.count();
  Bytes begin;
  for (std::size_t i = 0; i < tensor; ++i) {
    begin += Bytes((layer[i].each.count() + block - 1) / block * block);
  }
  return begin;
}

}  // namespace kvsim::config
