// SPDX-License-Identifier: Apache-2.0
// Resolved description of a device: cores, caches, interconnect, DRAM, and what the operating system keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/clock_spec.h"
#include "configs/spec/dram_spec.h"
#include "configs/spec/fabric_spec.h"
#include "configs/spec/file_reader_spec.h"
#include "configs/spec/master_spec.h"
#include "configs/spec/power_spec.h"
#include "configs/spec/storage_spec.h"
#include "configs/spec/thermal_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::config {

/// One kind of CPU core, as far as its memory accesses and its dot products go.
struct CoreSpec {
  std::string name;
  Hertz clock;
  double simd_ops_per_cycle = 1;       ///< 128-bit SIMD operations sustained per cycle in dot-product loops
  std::int64_t reorder_buffer = 1;     ///< instructions in flight; 1 for an in-order core
  std::int64_t demand_misses = 1;      ///< cache lines that loads alone can have in flight
  std::int64_t prefetch_lines = 0;     ///< further lines that the hardware prefetcher keeps in flight
  Bytes prefetch_page;                 ///< the prefetcher starts anew at multiples of this
  std::int64_t prefetch_training = 0;  ///< demand misses it needs before it runs ahead
  std::int64_t store_lines = 1;        ///< lines of stores in flight
  Bytes l2_size;                       ///< private cache that random accesses hit in
  Picoseconds l2_latency;              ///< load to use beyond L1
  Bytes tlb_reach;                     ///< working set that needs no page walk
  Picoseconds tlb_walk;                ///< added to a random access beyond that

  bool operator==(const CoreSpec&) const = default;
};

/// Cores of one kind. Threads are placed cluster by cluster in the order of the device file.
struct ClusterSpec {
  CoreSpec core;
  std::int64_t count = 1;
  std::int64_t priority = 0;  ///< of its requests at the memory controllers; 3 goes first
  std::optional<BytesPerSecond> bandwidth_limit{};  ///< of each core at its port to the interconnect,
  Picoseconds limit_window{};                       ///< over this time: its share may be taken at once

  bool operator==(const ClusterSpec&) const = default;
};

struct CacheSpec {
  Bytes size;
  std::int64_t ways = 16;
  Bytes line;
  Picoseconds latency;       ///< load to use beyond L1
  BytesPerSecond bandwidth;  ///< what one core gets from it

  bool operator==(const CacheSpec&) const = default;
};

struct InterconnectSpec {
  Picoseconds request_latency;         ///< core's miss to the memory controller's queue
  Picoseconds response_latency;        ///< last data beat to the core
  BytesPerSecond bandwidth;            ///< of read data between memory controllers and caches
  std::int64_t memory_clocks = 0;      ///< of the request latency, so many clocks of the memory
  std::optional<FabricSpec> fabric{};  ///< none: nothing but `bandwidth` caps it

  bool operator==(const InterconnectSpec&) const = default;
};

/// What the operating system takes and how it hands memory out.
struct OsSpec {
  Bytes firmware;  ///< not visible to the kernel: installed memory minus MemTotal
  Bytes reserve;   ///< used by kernel and services of an idle headless system
  Bytes page;
  Bytes read_ahead{128 << 10};          ///< read_ahead_kb of the disk
  Picoseconds minor_fault{1'000'000};   ///< of a thread that touches a page that is in memory and not mapped
  Picoseconds major_fault{10'000'000};  ///< the processor's part of one that has to be read
  Bytes swap{};                         ///< area for anonymous memory on the device's storage; 0: none
  std::vector<FileReaderSpec> readers{};  ///< other programs

  bool operator==(const OsSpec&) const = default;
};

/// On-chip memory of one NPU core, with explicit addresses.
struct SramSpec {
  Bytes size;
  std::int64_t banks = 1;
  std::int64_t ports = 1;  ///< words that a bank serves in a cycle
  Bytes word;
  Bytes interleave;  ///< neighbouring bytes in one bank before the next one follows

  bool operator==(const SramSpec&) const = default;
};

struct NpuSpec {
  std::int64_t cores = 1;
  Hertz clock;                    ///< of arithmetic and SRAM
  std::int64_t int8_macs = 1;     ///< multiply-accumulates of a core in a cycle,
  std::int64_t fp16_macs = 1;     ///< by number format
  std::int64_t softmax_rate = 1;  ///< scores of a core in a cycle
  std::int64_t dma_lines = 1;     ///< cache lines in flight of a core's DMA, reads and writes apart
  SramSpec sram;

  bool operator==(const NpuSpec&) const = default;
};

struct DeviceSpec {
  std::string name;
  std::string description;
  std::vector<ClusterSpec> clusters;
  CacheSpec llc;
  InterconnectSpec interconnect;
  MemoryControllerSpec controller;
  DramPartSpec dram;
  OsSpec os;
  std::optional<NpuSpec> npu{};              ///< for `kvsim attention`
  std::optional<StoragePartSpec> storage{};  ///< where the model file lies
  std::vector<MasterUse> masters{};          ///< beside the cores
  std::optional<ClocksSpec> clocks{};        ///< for long runs, as the next two
  std::optional<ThermalSpec> thermal{};
  std::optional<PowerSpec> power{};

  bool operator==(const DeviceSpec&) const = default;
};

[[nodiscard]] std::int64_t core_count(const DeviceSpec& device);
/// Bytes of DRAM installed: channels x ranks x banks x rows x row bytes.
[[nodiscard]] Bytes dram_capacity(const DeviceSpec& device);
/// Channels x width x data rate.
[[nodiscard]] BytesPerSecond peak_bandwidth(const DeviceSpec& device);

}  // namespace kvsim::config
