// SPDX-License-Identifier: Apache-2.0
// For tests: a small storage part of round numbers, without read-ahead, SLC cache and retries.
#pragma once

#include <functional>

#include "configs/spec/storage_spec.h"

namespace kvsim::model {

/// 64 MiB on one die with blocks of 256 KiB; each page set is a page of 16 KiB.
inline config::StoragePartSpec small_part() {
  using namespace kvsim::literals;
  config::StoragePartSpec part;
  part.name = "small";
  part.interface = config::StorageInterface::nvme;
  part.capacity = 64_MiB;
  part.link = {
      .data_rate = Hertz(8'000'000'000), .packet = 512_B, .packet_overhead = Bytes(), .command = 5_us};
  part.link.queue_depth = 256;
  part.controller = {.read_command = 2_us,
                     .write_command = 3_us,
                     .read_ahead = Bytes(),
                     .write_buffer = 256_KiB,
                     .map_cache = 1024_KiB,
                     .journal = 1 << 24};
  part.flash.pages_per_block = 16;
  part.flash.channel_rate = Hertz(1'000'000'000);
  part.flash.read = 50_us;
  part.flash.program = 500_us;
  part.flash.erase = 3_ms;
  part.flash.slc_read = 20_us;
  part.flash.slc_program = 200_us;
  part.host = {.request = 7_us, .page = 1_us, .command = 3_us, .completion = 11_us};
  return part;
}

/// The same with a change.
inline config::StoragePartSpec with(const std::function<void(config::StoragePartSpec&)>& change) {
  config::StoragePartSpec part = small_part();
  change(part);
  return part;
}

}  // namespace kvsim::model
