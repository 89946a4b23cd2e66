// SPDX-License-Identifier: Apache-2.0
// Resolved description of a storage part: latencies, bus rates, geometry and overheads. What comes out of
// them (bandwidth, requests per second) is never a parameter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "configs/spec/dram_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::config {

enum class StorageInterface { emmc, sd, ufs, nvme, spi };

/// The wires between host and device.
struct StorageLink {
  DataRate data_rate;             ///< transfers per second on each lane
  std::int64_t lanes = 1;         ///< data lines, or lanes in each direction
  std::int64_t payload_bits = 1;  ///< of so many bits on the wire
  std::int64_t line_bits = 1;     ///< (8 of 10, 128 of 130; 1 of 1 without a line code)
  Bytes packet{512};              ///< data goes in packets of so much,
  Bytes packet_overhead;          ///< each with so much beside it: checksum, header, gap
  bool duplex = false;            ///< reads and writes have lanes of their own
  Picoseconds command;            ///< a command and its response on the wire
  std::int64_t queue_depth = 1;   ///< commands that the device takes at once
  Bytes max_request{512 << 10};   ///< longest command, of host or device whichever is less

  bool operator==(const StorageLink&) const = default;
};

/// Firmware and its memories.
struct StorageController {
  Picoseconds read_command;   ///< of firmware, for one command after the other
  Picoseconds write_command;  ///< the same of a write
  Bytes read_ahead;           ///< read past a sequential stream; 0: never
  Bytes write_buffer;         ///< a write is done when its data is in here
  Bytes map_cache;            ///< mapping table held, on the device or in the host's memory
  std::int64_t journal = 1;   ///< changes of the mapping collected before they are written to flash

  bool operator==(const StorageController&) const = default;
};

/// The flash dies. A page set is one page of each plane of a die: read, programmed and erased together.
struct StorageFlash {
  std::int64_t channels = 1;
  std::int64_t dies = 1;
  std::int64_t planes = 1;  ///< of a die
  Bytes page{16384};        ///< data bytes of a page
  Bytes unit{4096};         ///< what the mapping knows
  std::int64_t pages_per_block = 256;
  std::int64_t bits_per_cell = 1;
  DataRate channel_rate;         ///< transfers of a byte per second on a channel
  Bytes page_spare;              ///< parity that goes with a whole page
  Picoseconds transfer_command;  ///< on the channel before each transfer
  Picoseconds read;              ///< array time of a page set
  Picoseconds program;           ///< of a page set, mean over the bits of a cell
  Picoseconds erase;
  Picoseconds slc_read;  ///< the same of blocks that hold one bit per cell: mapping and SLC cache
  Picoseconds slc_program;
  bool cache_read = false;             ///< the array reads while the page before is moved out
  std::optional<Picoseconds> suspend;  ///< a read stops a program or an erase after so long; none: it waits
  Bytes slc_cache;                     ///< data that may lie in blocks of one bit per cell; 0: none
  double over_provisioning = 0.07;     ///< blocks beyond the capacity, as a share of it
  std::int64_t endurance = 3000;       ///< rated program and erase cycles
  double retry_share = 0;              ///< of page reads that must be repeated,
  double retry_again = 0;              ///< and of repeated ones once more

  bool operator==(const StorageFlash&) const = default;
};

/// What the host's processor does for a request, as seen with direct I/O.
struct StorageHost {
  Picoseconds request;     ///< of the job's thread for each request: system call, block layer
  Picoseconds page;        ///< for each 4 KiB of it: pinned, mapped for DMA
  Picoseconds command;     ///< of the driver for each command
  Picoseconds completion;  ///< from the device's interrupt to the woken thread

  bool operator==(const StorageHost&) const = default;
};

/// Above a temperature the device slows itself down.
struct StorageThermal {
  Celsius above{85};
  double stretch = 1;  ///< channel and link times are multiplied by it

  bool operator==(const StorageThermal&) const = default;
};

struct StoragePartSpec {
  std::string name;
  std::string description;
  StorageInterface interface = StorageInterface::emmc;
  Bytes capacity;
  bool read_only = false;
  StorageLink link;
  StorageController controller;
  StorageFlash flash;
  StorageHost host;
  std::optional<StorageThermal> thermal;  ///< none: not known

  bool operator==(const StoragePartSpec&) const = default;
};

/// One page of each plane of a die.
[[nodiscard]] Bytes page_set(const StorageFlash& flash);
/// One block of each plane of every die, in its native cells: what is erased together.
[[nodiscard]] Bytes superblock(const StorageFlash& flash);
/// Superblocks of the part, over-provisioning included.
[[nodiscard]] std::int64_t superblocks(const StoragePartSpec& part);
/// Commands that an interface can have under way.
[[nodiscard]] std::int64_t deepest_queue(StorageInterface interface);
/// What requests are whole multiples of: 512 B, but of a serial flash a byte, as it can be read in place.
[[nodiscard]] Bytes sector(StorageInterface interface);

}  // namespace kvsim::config
