// SPDX-License-Identifier: Apache-2.0
// A master beside the cores: asks for memory when its time has come, and keeps count of what came of it.
#pragma once

#include <cstdint>
#include <memory>

#include <systemc>

#include "configs/spec/master_spec.h"
#include "models/cpu/cpu.h"
#include "models/dram/play_statistics.h"
#include "models/masters/dma_engine.h"
#include "models/masters/transfer_source.h"

namespace kvsim::model {

/// Of the simulated time so far.
struct MasterFigures {
  Bytes read;                  ///< by DMA
  Bytes written;               ///< the same
  Bytes copied;                ///< read and written again by the driver
  Bytes lost;                  ///< found no place in the ring or the FIFO
  std::int64_t transfers = 0;  ///< done
  std::int64_t due = 0;        ///< of those and the lost, with a deadline,
  std::int64_t missed = 0;     ///< that was not kept
  Histogram latency{};         ///< picoseconds from asking to the last byte
  Histogram delay{};           ///< the same from when it came into being
  Picoseconds stolen;          ///< of a core's time
};

class Master : public sc_core::sc_module {
 public:
  /// Where the master is connected.
  struct Place {
    DmaEngine& dma;
    std::size_t channel;          ///< of `dma`
    DmaEngine* copier = nullptr;  ///< the driver's core, of a radio that copies
    Cpu& cpu;
    trace::Address buffer = 0;  ///< its first byte; buffer_bytes() of them
  };

  Master(const sc_core::sc_module_name& name, const config::MasterSpec& spec, const Place& place,
         std::uint64_t seed);

  /// Ends its process, so that the simulation can end.
  void stop();
  [[nodiscard]] const config::MasterSpec& spec() const { return spec_; }
  [[nodiscard]] trace::Address buffer() const { return place_.buffer; }
  [[nodiscard]] const MasterFigures& figures() const { return figures_; }

 private:
  void run();
  void request(const Transfer& transfer);
  void finished(const Transfer& transfer, trace::Address address);
  void drive(const Transfer& transfer, trace::Address address);
  [[nodiscard]] trace::Address take(Bytes bytes);
  [[nodiscard]] Bytes room() const;

  config::MasterSpec spec_;
  Place place_;
  std::unique_ptr<TransferSource> source_;
  Bytes buffer_;   ///< bytes of it that DMA goes round in
  Bytes at_;       ///< in the buffer
  Bytes waiting_;  ///< asked for and not done
  MasterFigures figures_;
  bool stopped_ = false;
  sc_core::sc_event stop_{"stop"};
};

}  // namespace kvsim::model
