// SPDX-License-Identifier: Apache-2.0
// Tables of storage parts, and what must hold between their values.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr Bytes kLargest = 8192_GiB;
/// Mapping entries are 32 bit.
constexpr std::int64_t kMostUnits = 0xffff'fff0;
constexpr Picoseconds kLongest(1'000'000'000'000);
/// Fewer leave no room for the open ones and what is collected.
constexpr std::int64_t kSpareSuperblocks = 4;

struct InterfaceLimits {
  StorageInterface interface;
  std::int64_t queue_depth;
  std::vector<std::int64_t> lanes;
};

/// JESD84-B51 6.6.39: 32 tasks. SD 6.0: 32. JESD220: a door-bell register of 32 bits. NVMe 1.4: 65 535
/// entries of a queue (64 Ki less one). A serial flash has no queue.
const std::array kLimits{InterfaceLimits{StorageInterface::emmc, 32, {1, 4, 8}},
                         InterfaceLimits{StorageInterface::sd, 32, {1, 4}},
                         InterfaceLimits{StorageInterface::ufs, 32, {1, 2}},
                         InterfaceLimits{StorageInterface::nvme, 65'535, {1, 2, 4, 8, 16}},
                         InterfaceLimits{StorageInterface::spi, 1, {1, 2, 4, 8}}};

const InterfaceLimits& limits(StorageInterface interface) {
  return *std::ranges::find(kLimits, interface, &InterfaceLimits::interface);
}

void check_link(const StoragePartSpec& part, const Place& place) {
  const InterfaceLimits& limit = limits(part.interface);
  if (part.link.queue_depth > limit.queue_depth) {
    place.error("link.queue_depth",
                fmt::format("{} commands are more than the {} that {} can have under way",
                            part.link.queue_depth, limit.queue_depth, to_text(part.interface)));
  }
  if (std::ranges::find(limit.lanes, part.link.lanes) == limit.lanes.end()) {
    place.error("link.lanes", fmt::format("{} has no {} lanes; it has {}", to_text(part.interface),
                                          part.link.lanes, fmt::join(limit.lanes, ", ")));
  }
  if (part.link.payload_bits > part.link.line_bits) {
    place.error("link.line_bits", fmt::format("{} bits on the wire cannot carry {}", part.link.line_bits,
                                              part.link.payload_bits));
  }
}

/// False, with a message, for a geometry that cannot be counted on.
bool check_geometry(const StoragePartSpec& part, const Place& place) {
  const StorageFlash& flash = part.flash;
  const std::size_t before = place.errors().count();
  if (flash.dies % flash.channels != 0) {
    place.error("flash.dies",
                fmt::format("{} dies cannot share {} channels evenly", flash.dies, flash.channels));
  }
  if (flash.page.count() % flash.unit.count() != 0) {
    place.error("flash.unit", fmt::format("a page of {} is not a multiple of {}", to_text(flash.page),
                                          to_text(flash.unit)));
  }
  if (flash.pages_per_block % flash.bits_per_cell != 0) {
    place.error("flash.pages_per_block", fmt::format("{} pages are no multiple of {} bits per cell",
                                                     flash.pages_per_block, flash.bits_per_cell));
  }
  if (part.capacity.count() % flash.page.count() != 0) {
    place.error("capacity", fmt::format("'{}' is not a multiple of a page, {}", to_text(part.capacity),
                                        to_text(flash.page)));
  }
  return place.errors().count() == before;
}

void check_storage(const StoragePartSpec& part, const Place& place) {
  check_link(part, place);
  if (!check_geometry(part, place)) {
    return;
  }
  const StorageFlash& flash = part.flash;
  const std::int64_t data = part.capacity.count() / superblock(flash).count();
  const std::int64_t units = superblock(flash).count() / flash.unit.count();
  if (superblocks(part) > kMostUnits / units) {
    place.error(
        "flash.unit",
        fmt::format("{} of {} each, in blocks of {}, are more than the {} that are supported",
                    to_text(part.capacity), to_text(flash.unit), to_text(superblock(flash)), kMostUnits));
    return;
  }
  if (superblocks(part) < data + kSpareSuperblocks) {
    place.error("flash.over_provisioning",
                fmt::format("leaves {} blocks of each die beyond the capacity, and {} are needed; "
                            "give more, or smaller blocks",
                            superblocks(part) - data, kSpareSuperblocks));
  }
  if (flash.slc_cache.count() > 0 && flash.bits_per_cell == 1) {
    place.error("flash.slc_cache", "is not for cells that hold one bit anyway");
  }
  if (flash.slc_cache.count() * flash.bits_per_cell > part.capacity.count()) {
    place.error("flash.slc_cache",
                fmt::format("'{}' takes {} times its size, more than the capacity, {}",
                            to_text(flash.slc_cache), flash.bits_per_cell, to_text(part.capacity)));
  }
  if (part.controller.write_buffer < page_set(flash)) {
    place.error("controller.write_buffer",
                fmt::format("'{}' is less than {}, which is programmed at once",
                            to_text(part.controller.write_buffer), to_text(page_set(flash))));
  }
}

}  // namespace

Bytes page_set(const StorageFlash& flash) {
  return flash.page * flash.planes;
}

Bytes superblock(const StorageFlash& flash) {
  return page_set(flash) * (flash.dies * flash.pages_per_block);
}

std::int64_t superblocks(const StoragePartSpec& part) {
  const double wanted = part.capacity.as_double() * (1 + part.flash.over_provisioning);
  return static_cast<std::int64_t>(std::ceil(wanted / superblock(part.flash).as_double()));
}

std::int64_t deepest_queue(StorageInterface interface) {
  return limits(interface).queue_depth;
}

Bytes sector(StorageInterface interface) {
  return interface == StorageInterface::spi ? Bytes(1) : Bytes(512);
}

template <>
const Schema<StorageLink>& schema<StorageLink>() {
  using T = StorageLink;
  static const Schema<T> kSchema{
      "wires between host and device, and the commands on them",
      {field("data_rate", &T::data_rate, "transfers per second on each lane").between(1_MHz, 100_GHz),
       field("lanes", &T::lanes, "data lines, or lanes in each direction").between(1, 16),
       field("payload_bits", &T::payload_bits, "data bits in each line_bits on the wire: 8 of 10, 128 of 130")
           .between(1, 1024)
           .optional(),
       field("line_bits", &T::line_bits, "bits on the wire for payload_bits").between(1, 1024).optional(),
       field("packet", &T::packet, "data goes in packets of so much").between(16_B, 64_KiB),
       field("packet_overhead", &T::packet_overhead, "beside each packet: checksum, header, gap")
           .between(0_B, 64_KiB),
       field("duplex", &T::duplex, "reads and writes have lanes of their own").optional(),
       field("command", &T::command, "a command and its response on the wire").between(0_ps, kLongest),
       field("queue_depth", &T::queue_depth, "commands that the device takes at once; 1: no queue")
           .between(1, 65'535)
           .optional(),
       field("max_request", &T::max_request, "longest command; longer requests are cut into such")
           .between(512_B, 64_MiB)}};
  return kSchema;
}

template <>
const Schema<StorageController>& schema<StorageController>() {
  using T = StorageController;
  static const Schema<T> kSchema{
      "firmware and its memories",
      {field("read_command", &T::read_command, "of firmware for each read, one after the other")
           .between(0_ps, kLongest),
       field("write_command", &T::write_command, "of firmware for each write, one after the other")
           .between(0_ps, kLongest),
       field("read_ahead", &T::read_ahead, "read past a sequential stream; 0 B: never")
           .between(0_B, 64_MiB)
           .optional(),
       field("write_buffer", &T::write_buffer, "a write is done when its data is in here")
           .between(0_B, 1_GiB),
       field("map_cache", &T::map_cache, "mapping table held, on the device or in the host's memory")
           .between(4_KiB, 16_GiB),
       field("journal", &T::journal, "changes of the mapping collected before they are written to flash")
           .between(1, 1 << 24)}};
  return kSchema;
}

template <>
const Schema<StorageFlash>& schema<StorageFlash>() {
  using T = StorageFlash;
  static const Schema<T> kSchema{
      "flash dies; a page set is one page of each plane of a die, which are read and programmed together",
      {field("channels", &T::channels, "buses between controller and dies").between(1, 64),
       field("dies", &T::dies, "dies over all channels").between(1, 1024),
       field("planes", &T::planes, "planes of a die").between(1, 16).power_of_two(),
       field("page", &T::page, "data bytes of a page").between(256_B, 64_KiB).power_of_two(),
       field("unit", &T::unit, "what the mapping knows").between(256_B, 64_KiB).power_of_two().optional(),
       field("pages_per_block", &T::pages_per_block, "pages of a block").between(1, 1 << 16),
       field("bits_per_cell", &T::bits_per_cell, "1 SLC, 2 MLC, 3 TLC, 4 QLC").between(1, 4),
       field("channel_rate", &T::channel_rate, "bytes that a channel moves per second, as transfers")
           .between(1_MHz, 20_GHz),
       field("page_spare", &T::page_spare, "parity that goes with a whole page").between(0_B, 64_KiB),
       field("transfer_command", &T::transfer_command, "on the channel before each transfer")
           .between(0_ps, kLongest)
           .optional(),
       field("read", &T::read, "array time of a page set").between(0_ps, kLongest),
       field("program", &T::program, "of a page set, mean over the bits of a cell").between(1_us, kLongest),
       field("erase", &T::erase, "of a block").between(1_us, kLongest),
       field("slc_read", &T::slc_read, "read of a block with one bit per cell: mapping, SLC cache")
           .between(0_ps, kLongest),
       field("slc_program", &T::slc_program, "program of such a block").between(1_us, kLongest),
       field("cache_read", &T::cache_read, "the array reads while the page before is moved out").optional(),
       field("suspend", &T::suspend, "a read stops a program or an erase after so long; none: it waits")
           .between(0_ps, kLongest)
           .optional(),
       field("slc_cache", &T::slc_cache, "data that may lie in blocks of one bit per cell; 0 B: none")
           .between(0_B, kLargest)
           .optional(),
       field("over_provisioning", &T::over_provisioning, "blocks beyond the capacity, as a share of it")
           .between(0, 4),
       field("endurance", &T::endurance, "rated program and erase cycles").between(1, 10'000'000),
       field("retry_share", &T::retry_share, "of page reads that must be repeated")
           .between(0, 0.5)
           .optional(),
       field("retry_again", &T::retry_again, "of repeated reads that must be repeated once more")
           .between(0, 0.9)
           .optional()}};
  return kSchema;
}

template <>
const Schema<StorageHost>& schema<StorageHost>() {
  using T = StorageHost;
  static const Schema<T> kSchema{
      "what the host's processor does for a request, as seen with direct I/O",
      {field("request", &T::request, "of the job's thread for each request").between(0_ps, kLongest),
       field("page", &T::page, "for each 4 KiB of it: pinned, mapped for DMA")
           .between(0_ps, kLongest)
           .optional(),
       field("command", &T::command, "of the driver for each command").between(0_ps, kLongest).optional(),
       field("completion", &T::completion, "from the device's interrupt to the woken thread")
           .between(0_ps, kLongest)}};
  return kSchema;
}

template <>
const Schema<StorageThermal>& schema<StorageThermal>() {
  using T = StorageThermal;
  static const Schema<T> kSchema{
      "how the device slows itself down when it is hot",
      {field("above", &T::above, "temperature from which it does").between(Celsius(-40), Celsius(150)),
       field("stretch", &T::stretch, "channel and link times are multiplied by it").between(1, 100)}};
  return kSchema;
}

template <>
const Schema<StoragePartSpec>& schema<StoragePartSpec>() {
  using T = StoragePartSpec;
  static const Schema<T> kSchema{
      "a storage part as a host sees it",
      {field("name", &T::name, "what reports call it").by_default("custom"),
       field("description", &T::description, "one line about it").by_default(""),
       field("interface", &T::interface, "whose limits hold"),
       field("capacity", &T::capacity, "what the host can address").between(64_KiB, kLargest),
       field("read_only", &T::read_only, "writes are refused").optional(),
       field("link", &T::link, "wires and commands"),
       field("controller", &T::controller, "firmware and its memories"),
       field("flash", &T::flash, "the dies"), field("host", &T::host, "the host's share of each request"),
       field("thermal", &T::thermal, "derating; none: not known").optional()},
      check_storage};
  return kSchema;
}

}  // namespace kvsim::config
