// SPDX-License-Identifier: Apache-2.0
#include "sim/run/streamed_weights.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/spec/expert_layers.h"
#include "configs/units/text.h"
#include "sim/run/in_memory.h"

namespace kvsim::sim {

using config::FileRange;
using config::WeightUnit;

namespace {

std::vector<WeightUnit> units_of(const config::RunSpec& spec) {
  return config::weight_units(spec.model, config::tensors(spec.model, spec.engine.weights));
}

Bytes bytes_of(const std::vector<WeightUnit>& units) {
  Bytes bytes;
  for (const WeightUnit& unit : units) {
    bytes += config::unit_bytes(unit);
  }
  return bytes;
}

}  // namespace

bool is_streamed(const config::RunSpec& spec, const trace::Alloc& alloc) {
  return spec.memory.weights == config::WeightBacking::streamed && alloc.name == trace::alloc_name("weights");
}

std::vector<trace::Alloc> streamed_in_memory(const config::RunSpec& spec, const trace::Alloc& alloc) {
  const std::vector<WeightUnit> units = units_of(spec);
  std::int64_t streamed = 0;
  Bytes largest;
  for (const WeightUnit& unit : config::without_first(units, spec.memory.locked)) {
    largest = std::max(largest, config::read_bytes(unit));
    streamed += unit.empty() ? 0 : 1;
  }
  std::vector<trace::Alloc> parts;
  trace::Address address = alloc.address;
  const auto add = [&](std::string_view name, Bytes bytes) {
    if (bytes > Bytes()) {
      parts.push_back(alloc);
      parts.back().address = address;
      parts.back().bytes = bytes;
      parts.back().name = trace::alloc_name(name);
      address += static_cast<trace::Address>(bytes.count());
    }
  };
  add(kLockedName, std::min(spec.memory.locked, bytes_of(units)));
  add(kLayerBuffersName, largest * std::min(spec.memory.stream.buffers, streamed));
  return parts;
}

StreamedWeights::StreamedWeights(const config::RunSpec& spec, const trace::Alloc& alloc)
    : spec_(spec),
      alloc_(alloc),
      device_(*spec.device.storage, {.seed = static_cast<std::uint64_t>(spec.run.seed)}),
      stream_(device_, spec.memory.stream, config::without_first(units_of(spec), spec.memory.locked)) {
  const Bytes whole = config::in_blocks({.first = Bytes(), .bytes = alloc.bytes}).bytes;
  if (whole > device_.part().capacity || !device_.lay_out(Bytes(), whole)) {
    throw UserError(fmt::format("device.storage: {} of weights do not fit on {}, which holds {}",
                                to_text(alloc.bytes), device_.part().name, to_text(device_.part().capacity)));
  }
  const std::vector<WeightUnit> units = units_of(spec);
  embedding_stays_ =
      spec.model.tied_embeddings && config::without_first(units, spec.memory.locked).back().empty();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const FileRange& range : units[unit]) {
      parts_.push_back({.range = range, .unit = unit});
    }
  }
  std::ranges::sort(parts_, {}, [](const Part& part) { return part.range.first; });
  Bytes held;
  for (const trace::Alloc& part : streamed_in_memory(spec, alloc)) {
    held += part.bytes;
  }
  // What lies behind the weights stays where pages begin.
  const std::int64_t page = spec.device.os.page.count();
  held = Bytes((held.count() + page - 1) / page * page);
  if (held > Bytes() && held < alloc.bytes) {
    frames_.emplace(alloc.address, alloc.bytes, held);
  }
}

Bytes StreamedWeights::end() const {
  return dram_capacity(spec_.device) + alloc_.bytes;
}

void StreamedWeights::begin_step(const trace::Mark& mark) {
  const bool with_output =
      mark.phase != trace::Phase::prefill || mark.depth + mark.tokens >= spec_.workload.prompt;
  stream_.begin_step(with_output, now_);
}

Operation StreamedWeights::placed(const Operation& operation) const {
  return frames_ ? frames_->placed(operation) : operation;
}

std::optional<Bytes> StreamedWeights::in_file(const trace::Extent& extent) const {
  const auto end = alloc_.address + static_cast<trace::Address>(alloc_.bytes.count());
  const bool inside =
      extent.kind == trace::Kind::weights && extent.address >= alloc_.address && extent.address < end;
  return inside ? std::optional(Bytes(static_cast<std::int64_t>(extent.address - alloc_.address)))
                : std::nullopt;
}

/// The embedding, unless it is the output matrix, is in none.
std::optional<std::size_t> StreamedWeights::unit_at(Bytes first) const {
  const auto behind =
      std::ranges::upper_bound(parts_, first, {}, [](const Part& part) { return part.range.first; });
  if (behind == parts_.begin()) {
    return std::nullopt;
  }
  const Part& part = *std::prev(behind);
  return first < part.range.first + part.range.bytes ? std::optional(part.unit) : std::nullopt;
}

void StreamedWeights::book(const model::LayerReads& reads, model::PagingUse& use) {
  use.read += reads.read;
  use.stall += reads.stall;
  use.requests += reads.requests;
  now_ += reads.stall;
}

/// Of the embedding each token takes a row; what else there is belongs to one unit.
model::PagingUse StreamedWeights::run(const Operation& operation, Picoseconds took) {
  const bool looks_up = operation.mark.op == trace::Operator::embedding;
  model::PagingUse use;
  std::vector<FileRange> rows;
  std::optional<std::size_t> unit;
  for (const model::ThreadWork& thread : operation.threads) {
    for (const trace::Extent& extent : thread.extents) {
      const std::optional<Bytes> first = in_file(extent);
      if (!first) {
        continue;
      }
      use.asked += trace::total_bytes(extent);
      unit = unit || looks_up ? unit : unit_at(*first);
      for (std::uint32_t row = 0; looks_up && row < extent.rows; ++row) {
        rows.push_back({.first = *first + extent.stride * row, .bytes = extent.row_bytes});
      }
    }
  }
  if (!rows.empty() && !embedding_stays_) {
    book(stream_.read(rows, now_), use);
  } else if (unit) {
    book(stream_.use(*unit, now_), use);
  }
  now_ += took;
  return use;
}

}  // namespace kvsim::sim
