// SPDX-License-Identifier: Apache-2.0
#include "sim/run/offload.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/spec/tensors.h"
#include "sim/metrics/human.h"
#include "traces/workload/memory_layout.h"

namespace kvsim::sim {

namespace {

/// Less than this and the kernel kills before it pages (assumed: some 2000 pages of programs and weights).
constexpr Bytes kLeastFileMemory{8 << 20};

bool streams_experts(const config::RunSpec& spec) {
  return spec.engine.experts.place == config::ExpertPlace::streamed;
}

}  // namespace

config::OsSpec Offload::os_of(const config::RunSpec& spec) {
  config::OsSpec os = spec.device.os;
  const bool locks = streams_experts(spec) || spec.memory.weights == config::WeightBacking::streamed;
  os.swap = locks ? Bytes() : os.swap;
  return os;
}

void Offload::note_whole(const trace::Alloc& alloc) {
  if (alloc.backing == trace::Backing::file_mapped) {
    mapping_ = {.address = alloc.address, .bytes = alloc.bytes};
  } else if (is_streamed(spec_, alloc)) {
    layers_.emplace(spec_, alloc);
  }
}

void Offload::note(const trace::Alloc& alloc) {
  if (alloc.backing != trace::Backing::anonymous) {
    return;
  }
  largest_ = alloc.bytes > largest_.bytes ? alloc : largest_;
  anonymous_end_ = std::max(anonymous_end_, Bytes(static_cast<std::int64_t>(alloc.address)) + alloc.bytes);
  if (streams_experts(spec_) && trace::to_string(alloc.name) == trace::kExpertCacheName) {
    experts_.emplace(spec_, alloc);
  }
}

std::optional<BrokenLimit> Offload::begin_step(const trace::Mark& mark, const model::MemoryLedger& ledger) {
  decodes_ = mark.phase == trace::Phase::decode;
  if (layers_) {
    layers_->begin_step(mark);
    return std::nullopt;
  }
  lacks_ = lacks_ || ledger.pages();
  if (!lacks_ && (spec_.device.os.readers.empty() || mapping_.bytes == Bytes())) {
    return std::nullopt;
  }
  const bool swaps = ledger.swaps() && ledger.file_mapped() == Bytes();
  return swaps ? begin_swapping(ledger) : begin_paging(ledger);
}

std::optional<BrokenLimit> Offload::begin_paging(const model::MemoryLedger& ledger) {
  const Bytes left = std::max(Bytes(), ledger.available() - ledger.anonymous());
  if (!spec_.device.storage || left < kLeastFileMemory) {
    const std::string why =
        spec_.device.storage
            ? fmt::format("{} beside anonymous memory, too little to page", human(left))
            : fmt::format("{}; give the device a storage to see how slow that is", human(ledger.available()));
    return BrokenLimit{
        .limit = "page cache",
        .message = fmt::format("runs only by paging weights: {} of memory in use, of which {} are "
                               "mapped weights, but the system leaves {}",
                               human(ledger.total()), human(ledger.file_mapped()), why),
        .token = std::nullopt};
  }
  if (!pager_) {
    const Bytes locked = std::min(spec_.memory.locked, mapping_.bytes);
    const Bytes memory = left + locked;
    pager_.emplace(spec_.device, mapping_, memory, static_cast<std::uint64_t>(spec_.run.seed));
    pager_->lock(locked);
    if (spec_.memory.load == config::MapLoad::populated) {
      pager_->load();
    }
    if (memory < mapping_.bytes) {
      frames_.emplace(mapping_.address, mapping_.bytes, memory);
    }
  }
  return std::nullopt;
}

std::optional<BrokenLimit> Offload::begin_swapping(const model::MemoryLedger& ledger) {
  if (swapped_) {
    return std::nullopt;
  }
  const Bytes lacking = ledger.anonymous() - ledger.available();
  if (lacking >= largest_.bytes) {
    return BrokenLimit{
        .limit = "memory",
        .message = fmt::format("out of memory: {} in use, but the system leaves {}, too little to "
                               "swap",
                               human(ledger.anonymous()), human(ledger.available())),
        .token = std::nullopt};
  }
  const Bytes file = config::weight_bytes(config::tensors(spec_.model, spec_.engine.weights));
  swapped_.emplace(spec_.device, anonymous_end_, ledger.available(), file,
                   static_cast<std::uint64_t>(spec_.run.seed));
  swapped_->load();
  frames_.emplace(largest_.address, largest_.bytes, largest_.bytes - lacking);
  return std::nullopt;
}

model::StorageCounters Offload::storage_counters() const {
  return pager_     ? pager_->storage().counters()
         : swapped_ ? swapped_->storage().counters()
         : layers_  ? layers_->storage().counters()
                    : model::StorageCounters{};
}

Bytes Offload::end() const {
  Bytes end = dram_capacity(spec_.device) + (pager_ ? mapping_.bytes : Bytes());
  end = swapped_ ? std::max(end, anonymous_end_) : end;
  end = layers_ ? layers_->end() : end;
  return experts_ ? std::max(end, experts_->end()) : end;
}

Operation Offload::placed(const Operation& operation) {
  Operation result = experts_  ? experts_->placed(operation)
                     : layers_ ? layers_->placed(operation)
                               : operation;
  return frames_ ? frames_->placed(result) : result;
}

Offload::Use Offload::done(const Operation& operation, Picoseconds took) {
  Use use;
  if (pager_) {
    use.paging = pager_->run(operation.threads, took);
  } else if (swapped_) {
    use.paging = swapped_->run(operation.threads, took);
  } else if (layers_) {
    use.paging = layers_->run(operation, took);
  }
  read_again_ = read_again_ || (pager_ && decodes_ && use.paging.read > Bytes());
  if (experts_) {
    use.experts = experts_->done(operation, took + use.paging.stall);
  }
  return use;
}

}  // namespace kvsim::sim
