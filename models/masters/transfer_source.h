// SPDX-License-Identifier: Apache-2.0
// When a master asks for memory, and how much: a sequence without an end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "configs/spec/master_spec.h"
#include "traces/record/record.h"

namespace kvsim::model {

struct Transfer {
  Picoseconds at;                       ///< asked for
  std::optional<Picoseconds> deadline;  ///< when it has to be over
  Picoseconds born;                     ///< when what it carries came into being: frames may wait outside
  Bytes bytes;
  trace::Access access = trace::Access::read;
};

class TransferSource {
 public:
  virtual ~TransferSource() = default;
  /// In the order of `at`.
  [[nodiscard]] virtual Transfer next() = 0;
};

/// Lines of a scan: a screen's are asked for as soon as its FIFO has room and are due when their turn comes,
/// a sensor's are asked for when they have come and are due before the FIFO overflows. Aggregates of a radio:
/// half to one and a half mean intervals apart, none earlier than the air allows. Bursts: exactly periodic. A
/// series: as captured; after its end an empty transfer that never comes, or the whole of it again. A load's
/// reads: once a slice.
[[nodiscard]] std::unique_ptr<TransferSource> make_transfers(const config::MasterSpec& master,
                                                             std::uint64_t seed);

}  // namespace kvsim::model
