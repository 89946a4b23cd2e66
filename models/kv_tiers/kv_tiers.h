// SPDX-License-Identifier: Apache-2.0
// A KV cache whose newest blocks are in SRAM and DRAM and all of which is on the device's storage.
#pragma once

#include <memory>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/kv_tiers/kv_file_map.h"
#include "models/kv_tiers/kv_path.h"
#include "models/page_cache/storage_block_device.h"

namespace kvsim::model {

class KvTiers {
 public:
  struct Setup {
    KvGeometry geometry = {};
    config::KvTierSpec tiers = {};
    std::int64_t sram_blocks = 0;  ///< of each layer,
    std::int64_t dram_blocks = 1;  ///< those in SRAM among them
    bool chooses = false;          ///< attention reads the blocks that it wants, other ones in each layer
    std::optional<KvConversion> conversion = {};
    std::uint64_t seed = 1;
  };
  /// Precondition: the device has storage. A file that does not fit it is a failure(), not an error; nothing
  /// but that can be asked for then.
  KvTiers(const config::DeviceSpec& device, const Setup& setup);

  /// Of the device, from its beginning, that the file lies within; the largest number if that is larger.
  [[nodiscard]] static Bytes span(const Setup& setup);

  /// Begins with these cells, which were written long ago.
  void begin_with(const CellTokens& cells);
  /// As if the run had come to these cells: takes no time.
  void place(const CellTokens& cells) { path_->place(cells); }
  /// Takes reads that SRAM serves out of the threads; the longest time that one of them has from it.
  Picoseconds take_sram(std::vector<ThreadWork>& threads) const;
  /// An operator that takes `in_memory` if all it needs is in memory. `threads` before SRAM's were taken out.
  KvTierUse run(std::span<const ThreadWork> threads, Picoseconds in_memory);
  KvTierUse end_step();

  [[nodiscard]] const std::optional<KvFailure>& failure() const;
  [[nodiscard]] const StorageDevice& storage() const { return storage_; }

 private:
  void refuse_file();
  void lay_out(const std::vector<FileExtent>& extents);
  KvTierUse counted(KvTierUse use);

  Setup setup_;
  BytesPerSecond sram_rate_;
  StorageDevice storage_;
  StorageBlockDevice block_device_;
  std::optional<KvFileMap> file_;
  std::unique_ptr<KvPath> path_;
  std::optional<KvFailure> failure_;
  Bytes read_, written_;  ///< by the device so far
};

}  // namespace kvsim::model
