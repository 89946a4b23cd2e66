// SPDX-License-Identifier: Apache-2.0
// Plays a raw request stream on a serial PSRAM: one command after the other, in order.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/load_curve.h"
#include "models/dram/request_player.h"
#include "models/dram/request_source.h"

namespace kvsim::model {

/// The bus of one chip, in CK cycles. Time is an argument.
class PsramBus {
 public:
  explicit PsramBus(const config::DramPartSpec& part);

  struct Transfer {
    Cycle select = 0;      ///< chip select falls,
    Cycle data_start = 0;  ///< the first data,
    Cycle data_end = 0;    ///< after the last ones
    Cycle waited = 0;      ///< of the latency, for a hidden refresh
  };
  /// A burst that the controller is asked for at `asked`. Calls come in the order of service.
  Transfer transfer(Cycle asked, trace::Access access);
  /// From one command to the next if the controller always has one, but for refreshes.
  [[nodiscard]] Cycle spacing(trace::Access access) const;

 private:
  [[nodiscard]] Cycle refresh_wait(Cycle select);

  Cycle burst_, command_, read_latency_, write_latency_, refresh_latency_, tREFI_, setup_, hold_, tCPH_,
      controller_;
  Cycle free_ = 0;                     ///< chip select may fall again
  Cycle selected_ = 0, released_ = 0;  ///< the last time chip select was low
  Cycle refresh_due_ = 0;
};

/// Requests enter in order when the queue has room. One that touches several lines takes a command for each.
class PsramPlayer {
 public:
  PsramPlayer(const config::DramPartSpec& part, const config::MemoryControllerSpec& controller);

  /// Plays the next batch of `source`. False after the last. Throws UserError for a request beyond the
  /// memory's end.
  [[nodiscard]] bool take_batch(RequestSource& source);
  [[nodiscard]] PlayResult result() const;

 private:
  void serve(PackedRequest request);

  CommandClock clock_;
  PsramBus bus_;
  std::uint64_t capacity_;
  std::uint64_t burst_bytes_;
  std::vector<Cycle> ends_;  ///< of the last requests, a ring as long as the queue
  std::size_t next_ = 0;
  PlayResult result_;
  Cycle end_ = 0;
  std::int64_t latency_sum_ = 0;
};

/// What no schedule can exceed: a burst for each spacing of commands.
[[nodiscard]] BytesPerSecond psram_bound(const config::DramPartSpec& part, double read_share);
/// As load_point(), of a serial PSRAM.
[[nodiscard]] LoadPoint psram_load_point(const config::DramPartSpec& part, RequestSource& source,
                                         BytesPerSecond offered);

}  // namespace kvsim::model
