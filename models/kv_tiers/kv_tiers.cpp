// SPDX-License-Identifier: Apache-2.0
#include "models/kv_tiers/kv_tiers.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "configs/units/text.h"
#include "models/kv_tiers/direct_kv.h"
#include "models/kv_tiers/mapped_kv.h"
#include "models/page_cache/system_setup.h"

namespace kvsim::model {
namespace {

/// The cache as the file has it.
KvGeometry in_file(const KvTiers::Setup& setup) {
  KvGeometry geometry = setup.geometry;
  if (setup.conversion) {
    geometry.k_row = setup.conversion->k_row;
    geometry.v_row = setup.conversion->v_row;
  }
  return geometry;
}

}  // namespace

Bytes KvTiers::span(const Setup& setup) {
  return KvFileMap::span(in_file(setup), setup.tiers);
}

KvTiers::KvTiers(const config::DeviceSpec& device, const Setup& setup)
    : setup_(setup),
      sram_rate_(device.llc.bandwidth),
      storage_(*device.storage, {.seed = setup.seed}),
      block_device_(storage_) {
  // A log grows, if it may lie in one piece; every other file has its room from the start.
  const bool grows = setup.tiers.file == config::KvFile::log && !setup.tiers.extent;
  const Bytes needed = span(setup);
  if (needed > device.storage->capacity &&
      (!grows || needed.count() == std::numeric_limits<std::int64_t>::max())) {
    refuse_file();
    return;
  }
  file_.emplace(in_file(setup), setup.tiers, setup.seed);
  if (setup.tiers.file == config::KvFile::in_place) {
    lay_out(file_->extents());
  }
  if (setup.tiers.through == config::KvThrough::mapped) {
    path_ = std::make_unique<MappedKv>(block_device_, *file_,
                                       MappedKv::Setup{.geometry = setup.geometry,
                                                       .tiers = setup.tiers,
                                                       .cache = system_setup(device, setup.tiers.dram)});
  } else {
    path_ = std::make_unique<DirectKv>(block_device_, *file_,
                                       DirectKv::Setup{.geometry = setup.geometry,
                                                       .tiers = setup.tiers,
                                                       .sram_blocks = setup.sram_blocks,
                                                       .dram_blocks = setup.dram_blocks,
                                                       .chooses = setup.chooses,
                                                       .conversion = setup.conversion});
  }
}

void KvTiers::refuse_file() {
  failure_ = {fmt::format("a file that spans {} does not fit on it, which holds {}", to_text(span(setup_)),
                          to_text(storage_.part().capacity))};
}

void KvTiers::lay_out(const std::vector<FileExtent>& extents) {
  for (const FileExtent& extent : extents) {
    if (!failure_ && !storage_.lay_out(extent.offset, extent.bytes)) {
      refuse_file();
    }
  }
}

void KvTiers::begin_with(const CellTokens& cells) {
  if (setup_.tiers.file == config::KvFile::log) {
    std::vector<FileExtent> extents;
    const std::int64_t batches = std::ssize(cells) / setup_.tiers.write_batch;
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      file_->add_pieces(file_->entry(batch), extents);
    }
    lay_out(extents);
  }
  place(cells);
}

Picoseconds KvTiers::take_sram(std::vector<ThreadWork>& threads) const {
  Bytes most;
  if (setup_.sram_blocks > 0) {
    for (ThreadWork& thread : threads) {
      most = std::max(
          most, take_out(
                    setup_.geometry,
                    [this](std::int64_t layer, std::int64_t block) { return path_->in_sram(layer, block); },
                    thread));
    }
  }
  return most / sram_rate_;
}

KvTierUse KvTiers::counted(KvTierUse use) {
  const StorageCounters counters = storage_.counters();
  use.read = counters.host_read - read_;
  use.written = counters.host_written - written_;
  read_ = counters.host_read;
  written_ = counters.host_written;
  if (setup_.tiers.through == config::KvThrough::mapped) {
    const Bytes missed = std::min(use.dram.bytes, use.read);
    use.dram.bytes -= missed;
    use.device.bytes += missed;
    use.landed = missed;
  }
  return use;
}

KvTierUse KvTiers::run(std::span<const ThreadWork> threads, Picoseconds in_memory) {
  return counted(path_->run(touched(setup_.geometry, threads), in_memory));
}

KvTierUse KvTiers::end_step() {
  return counted(path_->end_step());
}

const std::optional<KvFailure>& KvTiers::failure() const {
  return failure_ || !path_ ? failure_ : path_->failure();
}

}  // namespace kvsim::model
