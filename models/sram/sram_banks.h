// SPDX-License-Identifier: Apache-2.0
// Banks of an SRAM, cycle by cycle: each serves one word a cycle and port.
#pragma once

#include <cstdint>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/dram/fifo.h"
#include "traces/record/record.h"

namespace kvsim::model {

using SramCycle = std::int64_t;

/// Vectors of `lanes` words, one vector after the other: word l of vector v lies at address + v x
/// vector_stride + l x lane_stride. A vector begins when the one before is complete, a cycle later at the
/// earliest.
struct SramRun {
  std::int64_t address = 0;
  std::int64_t vectors = 1;
  std::int64_t vector_stride = 0;
  std::int64_t lanes = 1;
  std::int64_t lane_stride = 0;
  trace::Access access = trace::Access::read;
};

struct SramCounters {
  std::int64_t words = 0;            ///< that lanes asked for
  std::int64_t broadcasts = 0;       ///< of these: read with another lane's, at no cost
  std::int64_t conflicts = 0;        ///< vectors that waited for a bank,
  std::int64_t conflict_cycles = 0;  ///< and how long

  bool operator==(const SramCounters&) const = default;
};

/// A scratchpad's timing. Several runs at once take turns bank by bank: who goes first changes each cycle.
/// Time is an argument and never goes back.
class SramBanks {
 public:
  static constexpr std::int64_t kMaxLanes = 64;

  explicit SramBanks(const config::SramSpec& spec);

  /// A run begins at `now`. Its name comes back in ended(). Precondition: run_to(now) was called, and all
  /// words lie within the SRAM.
  std::int64_t begin(const SramRun& run);
  /// Serves all cycles before `now`.
  void run_to(SramCycle now);
  /// No run can end before: run_to() until then. Precondition: not idle().
  [[nodiscard]] SramCycle earliest_end() const;
  [[nodiscard]] bool idle() const { return active_.empty(); }

  struct End {
    std::int64_t name = 0;
    SramCycle at = 0;  ///< the cycle after its last word's
  };
  /// In order of time; whoever takes them pops them.
  [[nodiscard]] Fifo<End>& ended() { return ended_; }
  [[nodiscard]] const SramCounters& counters() const { return counters_; }
  [[nodiscard]] std::int64_t bank_of(std::int64_t address) const { return address / interleave_ % banks_; }

 private:
  struct Active {
    SramRun run;
    std::int64_t name = 0;
    std::int64_t vector = 0;
    std::uint64_t waiting = 0;   ///< lanes of the vector not yet served
    bool waited = false;         ///< the vector has
    bool alone_is_free = false;  ///< no vector of it can conflict with itself
  };

  [[nodiscard]] bool conflict_free(const SramRun& run) const;
  void cycle();
  void serve(Active& active);
  void next_vector(Active& active) const;
  void retire();

  std::int64_t size_, banks_, ports_, word_, interleave_;
  SramCycle now_ = 0;
  std::int64_t names_ = 0;
  std::size_t turn_ = 0;
  std::vector<Active> active_;
  std::vector<std::int64_t> used_;  ///< ports, by bank, in this cycle
  Fifo<End> ended_;
  SramCounters counters_;
};

}  // namespace kvsim::model
