// SPDX-License-Identifier: Apache-2.0
#include "sim/run/expert_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"
#include "traces/workload/expert_router.h"
#include "traces/workload/memory_layout.h"

namespace kvsim::sim {

using trace::Address;
using trace::Extent;

namespace {

const config::StoragePartSpec& storage_of(const config::RunSpec& spec) {
  if (!spec.device.storage) {
    throw UserError("engine.experts.place is streamed: give the device a storage to read them from");
  }
  return *spec.device.storage;
}

constexpr const char* kForeign =
    "the access stream touches experts that its layer did not ask for, or weights where only experts are: it "
    "does not belong to this model and format";

}  // namespace

ExpertStream::ExpertStream(const config::RunSpec& spec, const trace::Alloc& cache)
    : tensors_(config::tensors(spec.model, spec.engine.weights)),
      layers_(config::expert_layers(spec.model, tensors_)),
      experts_(spec.model.experts.value().count),
      cache_(cache.address),
      room_(cache.bytes),
      file_(trace::expert_file(cache.address + static_cast<Address>(cache.bytes.count()))),
      file_bytes_(config::weight_bytes(tensors_)),
      device_(storage_of(spec), {.seed = static_cast<std::uint64_t>(spec.run.seed)}),
      entries_(device_, {.how = spec.engine.experts, .experts = experts_, .room = cache.bytes}, layers_) {
  const std::int64_t block = config::kDirectBlock.count();
  const Bytes whole((file_bytes_.count() + block - 1) / block * block);
  if (whole > device_.part().capacity || !device_.lay_out(Bytes(), whole)) {
    throw UserError(fmt::format("device.storage: {} of weights do not fit on {}, which holds {}",
                                to_text(file_bytes_), device_.part().name, to_text(device_.part().capacity)));
  }
  list_matrices();
  if (spec.engine.experts.policy == config::ExpertPolicy::pinned) {
    pin_the_most_popular(spec);
  }
}

void ExpertStream::list_matrices() {
  for (std::uint32_t layer = 0; layer < layers_.size(); ++layer) {
    for (std::size_t i = 0; i < layers_[layer].size(); ++i) {
      matrices_.push_back(
          {.tensor = layers_[layer][i], .layer = layer, .begin = config::part_begin(layers_[layer], i)});
    }
  }
  std::ranges::sort(matrices_, {}, [](const Matrix& m) { return m.tensor.offset; });
}

/// Rank by rank through the layers, as long as a layer's others fit beside them.
void ExpertStream::pin_the_most_popular(const config::RunSpec& spec) {
  const trace::ExpertRouter router(spec.model, spec.workload.experts,
                                   static_cast<std::uint64_t>(spec.run.seed));
  trace::LlmRun least = trace::llm_run(spec);
  least.engine.experts.cache = Bytes();
  const Bytes working = trace::allocations(least, trace::context_tokens(spec.workload))
                            .at(static_cast<std::size_t>(trace::Region::expert_cache))
                            .bytes;
  std::vector<model::ExpertId> chosen;
  Bytes bytes;
  const Bytes room = spec.engine.experts.cache - working;
  for (std::int64_t rank = 0; rank < experts_; ++rank) {
    for (std::uint32_t layer = 0; layer < layers_.size(); ++layer) {
      bytes += config::expert_bytes(layers_[layer]);
      if (layers_[layer].empty() || bytes > room) {
        continue;
      }
      const std::int64_t expert = router.by_popularity(Layer(layer))[static_cast<std::size_t>(rank)];
      chosen.push_back({.layer = layer, .expert = static_cast<std::uint32_t>(expert)});
    }
  }
  if (chosen.empty()) {
    throw UserError(
        fmt::format("engine.experts.cache: of {}, {} are for the experts of the layer at work, which "
                    "leaves no room for pinned ones",
                    to_text(spec.engine.experts.cache), to_text(working)));
  }
  entries_.pin(chosen);
}

std::optional<ExpertStream::Part> ExpertStream::part_at(Address address) const {
  if (address < file_) {
    return std::nullopt;
  }
  const Bytes offset(static_cast<std::int64_t>(address - file_));
  const auto behind =
      std::ranges::upper_bound(matrices_, offset, {}, [](const Matrix& m) { return m.tensor.offset; });
  if (behind == matrices_.begin()) {
    return std::nullopt;
  }
  const Matrix& m = *std::prev(behind);
  const Bytes in_tensor = offset - m.tensor.offset;
  const std::int64_t expert = in_tensor.count() / m.tensor.each.count();
  if (expert >= experts_) {
    return std::nullopt;
  }
  const Bytes into = in_tensor - m.tensor.each * expert;
  return Part{.id = {.layer = m.layer, .expert = static_cast<std::uint32_t>(expert)},
              .into = m.begin + into,
              .left = m.tensor.each - into};
}

/// Of the layer that the operation touches first, in the order in which the first thread meets them.
void ExpertStream::begin_layer(const Operation& operation) {
  std::vector<std::uint32_t> experts;
  std::vector<bool> seen(static_cast<std::size_t>(experts_));
  std::optional<std::uint32_t> layer;
  for (const model::ThreadWork& thread : operation.threads) {
    for (const Extent& extent : thread.extents) {
      const std::optional<Part> part = part_at(extent.address);
      layer = part && !layer ? part->id.layer : layer;
      if (part && part->id.layer == layer && !seen[part->id.expert]) {
        seen[part->id.expert] = true;
        experts.push_back(part->id.expert);
      }
    }
  }
  if (!layer || config::expert_bytes(layers_[*layer]) * std::ssize(experts) > room_) {
    throw UserError(kForeign);
  }
  reads_ = entries_.begin(*layer, experts, now_);
  under_way_ = true;
  compute_ = Picoseconds();
}

Operation ExpertStream::placed(const Operation& operation) {
  const bool uses = std::ranges::any_of(operation.threads, [&](const model::ThreadWork& thread) {
    return std::ranges::any_of(thread.extents, [&](const Extent& e) { return e.address >= file_; });
  });
  if (!uses) {
    return operation;
  }
  if (!under_way_) {
    begin_layer(operation);
  }
  return with_extents(operation,
                      [this](const Extent& extent, std::vector<Extent>& out) { place(extent, out); });
}

void ExpertStream::place(const Extent& extent, std::vector<Extent>& out) const {
  if (extent.address < file_) {
    out.push_back(extent);
    return;
  }
  Extent row = extent;
  const bool whole = extent.stride == extent.row_bytes;
  row.rows = 1;
  row.row_bytes = whole ? trace::total_bytes(extent) : extent.row_bytes;
  for (std::uint32_t i = 0; i < (whole ? 1 : extent.rows); ++i) {
    place_row(row, out);
    row.address += static_cast<Address>(extent.stride.count());
  }
}

/// Where an expert lies in several runs, a row that goes on in another becomes two.
void ExpertStream::place_row(const Extent& row, std::vector<Extent>& out) const {
  for (Bytes done; done < row.row_bytes;) {
    const std::optional<Part> part = part_at(row.address + static_cast<Address>(done.count()));
    if (!part || !entries_.holds(part->id)) {
      throw UserError(kForeign);
    }
    Bytes into = part->into;
    for (const model::SpaceRun& run : entries_.place(part->id)) {
      if (into >= run.bytes) {
        into -= run.bytes;
        continue;
      }
      Extent& piece = out.emplace_back(row);
      piece.address = cache_ + static_cast<Address>((run.first + into).count());
      piece.row_bytes = std::min({row.row_bytes - done, run.bytes - into, part->left});
      piece.stride = piece.row_bytes;
      done += piece.row_bytes;
      break;
    }
  }
}

model::ExpertReads ExpertStream::done(const Operation& operation, Picoseconds took) {
  now_ += took;
  if (!under_way_) {
    return {};
  }
  model::ExpertReads told = std::exchange(reads_, {});
  compute_ += took;
  if (operation.mark.op == trace::Operator::expert_down) {
    told.stall += entries_.end(compute_);
    under_way_ = false;
  }
  now_ += told.stall;
  return told;
}

}  // namespace kvsim::sim
