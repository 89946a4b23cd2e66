// SPDX-License-Identifier: Apache-2.0
// Weights that are read layer by layer, in a run: what memory they take, which operator needs which layer,
// and how long it waits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/spec/run_spec.h"
#include "configs/spec/weight_units.h"
#include "models/layer_stream/layer_stream.h"
#include "models/weight_pager/weight_pager.h"
#include "sim/run/frame_map.h"
#include "sim/run/operation.h"

namespace kvsim::sim {

/// Whether the allocation is of weights that are streamed.
[[nodiscard]] bool is_streamed(const config::RunSpec& spec, const trace::Alloc& alloc);
/// What stays, and buffers. Precondition: is_streamed().
[[nodiscard]] std::vector<trace::Alloc> streamed_in_memory(const config::RunSpec& spec,
                                                           const trace::Alloc& alloc);

class StreamedWeights {
 public:
  /// Precondition: is_streamed(). Throws UserError if the file does not fit the device.
  StreamedWeights(const config::RunSpec& spec, const trace::Alloc& alloc);

  /// Behind the last address of the stream.
  [[nodiscard]] Bytes end() const;
  void begin_step(const trace::Mark& mark);
  /// The operation where its weights lie in memory.
  [[nodiscard]] Operation placed(const Operation& operation) const;
  /// Of the operation, which takes `took` when its weights are there.
  [[nodiscard]] model::PagingUse run(const Operation& operation, Picoseconds took);

  [[nodiscard]] const model::StorageDevice& storage() const { return device_; }

 private:
  struct Part {  ///< a run of the file that belongs to a unit
    config::FileRange range;
    std::size_t unit = 0;
  };

  [[nodiscard]] std::optional<Bytes> in_file(const trace::Extent& extent) const;
  [[nodiscard]] std::optional<std::size_t> unit_at(Bytes first) const;
  void book(const model::LayerReads& reads, model::PagingUse& use);

  const config::RunSpec& spec_;
  trace::Alloc alloc_;
  std::vector<Part> parts_;  ///< in the order of the file
  model::StorageDevice device_;
  model::LayerStream stream_;
  std::optional<FrameMap> frames_;
  bool embedding_stays_ = false;  ///< it is the output matrix, which is locked
  Picoseconds now_;
};

}  // namespace kvsim::sim
