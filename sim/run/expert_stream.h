// SPDX-License-Identifier: Apache-2.0
// Streamed experts in a run: which an operator asks for, where in the cache they are, and how long it waits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/spec/run_spec.h"
#include "models/expert_cache/expert_cache.h"
#include "models/storage/storage_device.h"
#include "sim/run/operation.h"

namespace kvsim::sim {

class ExpertStream {
 public:
  /// `cache` is the allocation. Throws UserError if the device cannot do it.
  ExpertStream(const config::RunSpec& spec, const trace::Alloc& cache);

  /// Behind the last address at which experts are asked for.
  [[nodiscard]] Bytes end() const { return Bytes(static_cast<std::int64_t>(file_)) + file_bytes_; }

  /// The operation at the addresses where its experts are. The first one of a layer that uses experts has the
  /// missing ones read.
  [[nodiscard]] Operation placed(const Operation& operation);
  /// The operation that was placed last took `took`, waiting apart: what its layer asked for and how long it
  /// waited.
  [[nodiscard]] model::ExpertReads done(const Operation& operation, Picoseconds took);

 private:
  struct Part {  ///< a place in the file, as one of an expert
    model::ExpertId id;
    Bytes into;  ///< the expert, as it lies in memory
    Bytes left;  ///< of its part of the matrix
  };

  struct Matrix {
    config::ExpertTensor tensor;
    std::uint32_t layer = 0;
    Bytes begin;  ///< of its part in an expert
  };

  void list_matrices();
  void pin_the_most_popular(const config::RunSpec& spec);
  [[nodiscard]] std::optional<Part> part_at(trace::Address address) const;
  void begin_layer(const Operation& operation);
  void place(const trace::Extent& extent, std::vector<trace::Extent>& out) const;
  void place_row(const trace::Extent& row, std::vector<trace::Extent>& out) const;

  std::vector<config::TensorInfo> tensors_;
  std::vector<config::ExpertLayer> layers_;
  std::vector<Matrix> matrices_;  ///< in the order of the file
  std::int64_t experts_;          ///< of a layer
  trace::Address cache_;
  Bytes room_;
  trace::Address file_;
  Bytes file_bytes_;
  model::StorageDevice device_;
  model::ExpertCache entries_;
  Picoseconds now_;
  bool under_way_ = false;    ///< a layer
  Picoseconds compute_;       ///< of the layer under way, so far
  model::ExpertReads reads_;  ///< not told yet
};

}  // namespace kvsim::sim
