// SPDX-License-Identifier: Apache-2.0
// Tables of devices, and what must hold between their values.
#include <fmt/format.h>

#include "configs/spec/address_map.h"
#include "configs/spec/board_check.h"
#include "configs/spec/dram_refresh.h"
#include "configs/spec/named_map.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

void check_cache(const CacheSpec& cache, const Place& place) {
  if (cache.size.count() % (cache.line.count() * cache.ways) != 0) {
    place.error("ways", fmt::format("{} ways with lines of {} do not divide {} evenly", cache.ways,
                                    to_text(cache.line), to_text(cache.size)));
  }
}

void check_sram(const SramSpec& sram, const Place& place) {
  if (sram.interleave < sram.word) {
    place.error("interleave",
                fmt::format("{} is less than a word, {}", to_text(sram.interleave), to_text(sram.word)));
  }
  if (sram.size.count() % (sram.banks * sram.word.count()) != 0) {
    place.error("banks", fmt::format("{} banks with words of {} do not divide {} evenly", sram.banks,
                                     to_text(sram.word), to_text(sram.size)));
  }
}

/// Of the page cache.
constexpr std::int64_t kCachePage = 4096;

void check_memory(const DeviceSpec& device, const Place& place) {
  const Bytes capacity = dram_capacity(device);
  if (device.os.read_ahead.count() % kCachePage != 0) {
    place.error("os.read_ahead", fmt::format("is not whole pages of {}", to_text(Bytes(kCachePage))));
  }
  if (device.os.firmware + device.os.reserve >= capacity) {
    place.error("os.reserve",
                fmt::format("firmware ({}) and reserve ({}) leave nothing of the {} installed",
                            to_text(device.os.firmware), to_text(device.os.reserve), to_text(capacity)));
  }
  if (const auto problem = refresh_problem(device.dram, device.controller)) {
    place.error(join_path("controller", problem->key), problem->what);
  }
  for (const MapProblem& problem : address_map_problems(device)) {
    place.error(join_path("controller.mapping", problem.coordinate), problem.what);
  }
}

/// A map by name gets its masks.
void complete_device(DeviceSpec& device, const Place& place) {
  AddressMapSpec& map = device.controller.mapping;
  if (map.order == MapOrder::masks) {
    for (const std::string& key : unused_of_masks(map)) {
      place.error(join_path("controller.mapping", key),
                  "is of a named order, and this map has masks; name an order or leave it out");
    }
    return;
  }
  const Bytes least = least_granule(map.order, device.dram, device.llc.line);
  const Bytes most = largest_granule(device.dram);
  if (map.channel_granule < least || map.channel_granule > most) {
    place.error("controller.mapping.channel_granule",
                fmt::format("'{}' is out of range; with this part and order it is from {} to {}",
                            to_text(map.channel_granule), to_text(least), to_text(most)));
    map.channel_granule = least;
  }
  name_masks(
      map, device.dram,
      {.channels = device.controller.channels, .ranks = device.controller.ranks, .line = device.llc.line});
}

/// Streams of the memory path are 64: each core has one, each DMA engine one, each driver that copies one.
constexpr std::size_t kMostMasters = 8;
constexpr std::size_t kMostStreams = 64;

void check_engines(const DeviceSpec& device, const Place& place) {
  for (std::size_t i = 0; i < device.masters.size(); ++i) {
    const MasterUse& use = device.masters[i];
    for (std::size_t before = 0; before < i; ++before) {
      const MasterUse& first = device.masters[before];
      const bool shared = !use.master.engine.empty() && use.master.engine == first.master.engine;
      if (shared && (first.master.lines != use.master.lines || first.qos != use.qos ||
                     first.bandwidth != use.bandwidth || first.window != use.window)) {
        place.error(
            fmt::format("masters.{}", i),
            fmt::format(
                "shares the DMA engine '{}' with {}: give both the same lines, qos, bandwidth and window",
                use.master.engine, first.master.name));
      }
    }
  }
}

void check_masters(const DeviceSpec& device, const Place& place) {
  if (device.masters.size() > kMostMasters) {
    place.error("masters",
                fmt::format("{} masters; at most {} are supported", device.masters.size(), kMostMasters));
  }
  if (!device.masters.empty() &&
      static_cast<std::size_t>(core_count(device)) + 2 * device.masters.size() > kMostStreams) {
    place.error("masters",
                fmt::format("{} masters beside {} cores are more than the {} streams that memory serves",
                            device.masters.size(), core_count(device), kMostStreams));
  }
  double promised = 0;
  double wanted = 0;
  Bytes buffers;
  for (std::size_t i = 0; i < device.masters.size(); ++i) {
    const MasterUse& use = device.masters[i];
    promised += use.qos == QosMode::regulator ? use.bandwidth->count() : 0;
    wanted += use.master.scan ? mean_rate(use.master).count() : 0;
    buffers += buffer_bytes(use.master);
    if (const auto needed = overdue(use.master, peak_bandwidth(device), Bytes())) {
      place.error(fmt::format("masters.{}.master", i),
                  fmt::format("the largest transfer of {} takes {} at the peak, longer than its deadline",
                              use.master.name, to_text(*needed)));
    }
    if (const auto core = core_of(use.master); core && *core >= core_count(device)) {
      place.error(fmt::format("masters.{}.master", i),
                  fmt::format("core {} of {}: the device has cores 0 to {}", *core, use.master.name,
                              core_count(device) - 1));
    }
  }
  const double peak = peak_bandwidth(device).count();
  if (promised > peak) {
    place.error("masters", fmt::format("regulators are promised {} together; the peak is {}",
                                       to_text(BytesPerSecond(promised)), to_text(BytesPerSecond(peak))));
  }
  if (wanted > peak) {
    place.error(
        "masters",
        fmt::format("screens and sensors move {} together, and the peak is {}: deadlines cannot be kept",
                    to_text(BytesPerSecond(wanted)), to_text(BytesPerSecond(peak))));
  }
  if (buffers > dram_capacity(device) / 2) {
    place.error("masters", fmt::format("buffers of {} are more than half of the {} installed",
                                       to_text(buffers), to_text(dram_capacity(device))));
  }
  check_engines(device, place);
}

constexpr std::int64_t kMostCores = 64;
constexpr std::int64_t kMostBanks = 64;  // of a channel, over its ranks

void check_device(const DeviceSpec& device, const Place& place) {
  if (device.clusters.empty()) {
    place.error("clusters", "is empty; a device has at least one cluster of cores");
  }
  const std::int64_t cores = core_count(device);
  if (cores > kMostCores) {
    place.error("clusters", fmt::format("{} cores; at most {} are supported", cores, kMostCores));
  }
  if (device.dram.banks * device.controller.ranks > kMostBanks) {
    place.error("controller.ranks",
                fmt::format("{} ranks of {} banks; at most {} banks of a channel are supported",
                            device.controller.ranks, device.dram.banks, kMostBanks));
  }
  check_memory(device, place);
  check_masters(device, place);
  check_board(device, place);
}

}  // namespace

template <>
const Schema<CoreSpec>& schema<CoreSpec>() {
  using T = CoreSpec;
  static const Schema<T> kSchema{
      "a kind of CPU core, as far as its memory accesses and its dot products go",
      {field("name", &T::name, "what reports call it").by_default("custom"),
       field("clock", &T::clock, "clock frequency").between(10_MHz, 20_GHz),
       field("simd_ops_per_cycle", &T::simd_ops_per_cycle,
             "128-bit SIMD operations sustained per cycle in dot-product loops")
           .between(0.001, 64),
       field("reorder_buffer", &T::reorder_buffer, "instructions in flight; 1 for an in-order core")
           .between(1, 4096),
       field("demand_misses", &T::demand_misses, "cache lines that loads alone can have in flight")
           .between(1, 1024),
       field("prefetch_lines", &T::prefetch_lines,
             "further lines that the hardware prefetcher keeps in flight")
           .between(0, 1024),
       field("prefetch_page", &T::prefetch_page, "the prefetcher starts anew at multiples of this")
           .between(64_B, 1_GiB)
           .power_of_two(),
       field("prefetch_training", &T::prefetch_training,
             "demand misses that the prefetcher needs before it runs ahead")
           .between(0, 1024),
       field("store_lines", &T::store_lines, "lines of stores in flight").between(1, 1024),
       field("l2_size", &T::l2_size, "private cache; for replays of captures and checks of random latency")
           .between(0_B, 1_GiB),
       field("l2_latency", &T::l2_latency, "its load to use, beyond L1; for checks of random latency")
           .between(0_ps, 1_us),
       field("tlb_reach", &T::tlb_reach, "working set that needs no page walk; for checks of random latency")
           .between(0_B, 1024_GiB),
       field("tlb_walk", &T::tlb_walk, "added to a random access beyond that; for checks of random latency")
           .between(0_ps, 10_us)}};
  return kSchema;
}

template <>
const Schema<ClusterSpec>& schema<ClusterSpec>() {
  using T = ClusterSpec;
  static const Schema<T> kSchema{
      "cores of one kind; threads are placed cluster by cluster, in this order",
      {field("core", &T::core, "kind of core").entry_of("cores"),
       field("count", &T::count, "number of cores").between(1, 64),
       field("priority", &T::priority, "of its requests at the memory controllers: 3 goes first")
           .by_default(0)
           .between(0, 3),
       field("bandwidth_limit", &T::bandwidth_limit,
             "what each core may take at its port to the interconnect; none: all it can")
           .between(BytesPerSecond(1e6), BytesPerSecond(1e14))
           .optional(),
       field("limit_window", &T::limit_window, "what the limit allows for this long may be taken at once")
           .between(1_ns, 1000_ms)
           .by_default(1_us)}};
  return kSchema;
}

template <>
const Schema<CacheSpec>& schema<CacheSpec>() {
  using T = CacheSpec;
  static const Schema<T> kSchema{
      "last-level cache, shared by all cores",
      {field("size", &T::size, "capacity").between(1_KiB, 4_GiB),
       field("ways", &T::ways, "lines of a set").between(1, 1024),
       field("line", &T::line, "bytes of a cache line; all models move lines of 64 B").between(64_B, 64_B),
       field("latency", &T::latency, "load to use, beyond L1; for checks of random latency")
           .between(0_ps, 10_us),
       field("bandwidth", &T::bandwidth, "what one core gets from it")
           .between(BytesPerSecond(1e6), BytesPerSecond(1e14))},
      check_cache};
  return kSchema;
}

template <>
const Schema<FabricSpec>& schema<FabricSpec>() {
  using T = FabricSpec;
  static const Schema<T> kSchema{
      "a fabric's clock, as a cap of its own: width x clock is what all masters together read and write",
      {field("width", &T::width, "data that passes in a clock").between(1_B, 4_KiB),
       field("clock", &T::clock, "its frequency").between(1_MHz, 20_GHz)}};
  return kSchema;
}

template <>
const Schema<InterconnectSpec>& schema<InterconnectSpec>() {
  using T = InterconnectSpec;
  static const Schema<T> kSchema{
      "fabric between the caches and the memory controllers",
      {field("request_latency", &T::request_latency, "a core's miss to the memory controller's queue")
           .between(0_ps, 10_us),
       field("response_latency", &T::response_latency, "last data beat to the core").between(0_ps, 10_us),
       field("bandwidth", &T::bandwidth, "of read data, through the whole fabric")
           .between(BytesPerSecond(1e6), BytesPerSecond(1e14)),
       field("memory_clocks", &T::memory_clocks,
             "of request_latency, so many clocks of the memory: what grows when the memory is clocked down")
           .by_default(0)
           .between(0, 10000),
       field("fabric", &T::fabric, "a cap by a clock of its own, for reads and writes; none: there is none")
           .optional()}};
  return kSchema;
}

template <>
const Schema<OsSpec>& schema<OsSpec>() {
  using T = OsSpec;
  static const Schema<T> kSchema{
      "what the operating system takes, and how it hands memory out",
      {field("firmware", &T::firmware, "not visible to the kernel: installed memory minus MemTotal")
           .between(0_B, 1024_GiB),
       field("reserve", &T::reserve, "used by kernel and services of an idle headless system")
           .between(0_B, 1024_GiB),
       field("page", &T::page, "page size").between(1_KiB, 1_GiB).power_of_two(),
       field("read_ahead", &T::read_ahead,
             "how far the kernel reads a file ahead: read_ahead_kb of the disk (include/linux/pagemap.h: 128 "
             "KiB)")
           .between(0_B, 64_MiB)
           .by_default(128_KiB),
       field("minor_fault", &T::minor_fault,
             "a thread's time for a page that is in memory and not mapped (median of an x86 with Linux 6.6; "
             "assumed of Arm)")
           .between(0_ps, 1_ms)
           .by_default(1_us),
       field("major_fault", &T::major_fault,
             "the processor's part of a page that has to be read; the wait for the device comes on top "
             "(assumed)")
           .between(0_ps, 10_ms)
           .by_default(10_us),
       field(
           "swap", &T::swap,
           "swap area on the device's storage, behind the model file: anonymous memory that does not fit is "
           "swapped; 0 B: none")
           .between(0_B, 1024_GiB)
           .by_default(0_B),
       field(
           "readers", &T::readers,
           "other programs that read files meanwhile: with mapped weights their pages and the weights' push "
           "each other out")
           .by_default({})}};
  return kSchema;
}

template <>
const Schema<SramSpec>& schema<SramSpec>() {
  using T = SramSpec;
  static const Schema<T> kSchema{
      "on-chip memory of an NPU core, a scratchpad",
      {field("size", &T::size, "capacity").between(1_KiB, 1_GiB),
       field("banks", &T::banks, "that work side by side").between(1, 1024),
       field("ports", &T::ports, "words that a bank serves in a cycle").between(1, 16),
       field("word", &T::word, "bytes of a bank's access").between(1_B, 1_KiB).power_of_two(),
       field("interleave", &T::interleave, "neighbouring bytes in one bank before the next bank follows")
           .between(1_B, 1_GiB)
           .power_of_two()},
      check_sram};
  return kSchema;
}

template <>
const Schema<NpuSpec>& schema<NpuSpec>() {
  using T = NpuSpec;
  static const Schema<T> kSchema{
      "neural processing unit, as far as attention in tiles goes; only 'kvsim attention' uses it",
      {field("cores", &T::cores, "each with its own SRAM and DMA").between(1, 16),
       field("clock", &T::clock, "of arithmetic and SRAM").between(1_MHz, 20_GHz),
       field("int8_macs", &T::int8_macs, "INT8 multiply-accumulates of a core in a cycle")
           .between(1, 1 << 20),
       field("fp16_macs", &T::fp16_macs, "FP16 multiply-accumulates of a core in a cycle")
           .between(1, 1 << 20),
       field("softmax_rate", &T::softmax_rate, "scores that a core takes through softmax in a cycle")
           .between(1, 1 << 20),
       field("dma_lines", &T::dma_lines,
             "lines of 64 B that a core's DMA keeps in flight, reads and writes apart")
           .between(1, 1024),
       field("sram", &T::sram, "on-chip memory of each core")}};
  return kSchema;
}

template <>
const Schema<DeviceSpec>& schema<DeviceSpec>() {
  using T = DeviceSpec;
  static const Schema<T> kSchema{
      "a board: cores, caches, interconnect, DRAM and operating system",
      {field("name", &T::name, "what reports call it").by_default("custom"),
       field("description", &T::description, "one line about it").by_default(""),
       field("clusters", &T::clusters, "clusters of cores, the preferred ones first"),
       field("llc", &T::llc, "last-level cache"),
       field("interconnect", &T::interconnect, "fabric between caches and memory"),
       field("controller", &T::controller, "memory controllers and address map"),
       field("dram", &T::dram, "DRAM part").entry_of("dram"), field("os", &T::os, "operating system"),
       field("npu", &T::npu, "neural processing unit, for 'kvsim attention'").optional(),
       field(
           "storage", &T::storage,
           "where the model file lies: weights that do not fit into memory are read from it again and again")
           .entry_of("storage")
           .optional(),
       field("masters", &T::masters, "what uses the memory beside the cores").by_default({}),
       field("clocks", &T::clocks, "clock domains and governors, for long runs").optional(),
       field("thermal", &T::thermal, "where heat goes, for long runs").optional(),
       field("power", &T::power, "what takes power, for long runs").optional()},
      check_device,
      complete_device};
  return kSchema;
}

}  // namespace kvsim::config
