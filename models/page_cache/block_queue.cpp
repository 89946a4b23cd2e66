// SPDX-License-Identifier: Apache-2.0
#include "models/page_cache/block_queue.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::model {

namespace {

constexpr std::int64_t kBioPages = 256;  // BIO_MAX_VECS

}  // namespace

void split_run(Bytes bytes, const BlockLimits& limits, std::vector<Bytes>& lengths) {
  const Bytes longest =
      std::max(Bytes(kPageBytes), std::min(limits.max_request, Bytes(limits.max_segments * kPageBytes)));
  lengths.clear();
  for (Bytes left = bytes; left > Bytes(0);) {
    const Bytes bio = std::min(left, Bytes(kBioPages * kPageBytes));
    left -= bio;
    if (!lengths.empty() && lengths.back() + bio <= longest) {
      lengths.back() += bio;
      continue;
    }
    for (Bytes rest = bio; rest > Bytes(0); rest -= std::min(rest, longest)) {
      lengths.push_back(std::min(rest, longest));
    }
  }
}

std::int64_t BlockQueue::submit(const BlockRun& run, Picoseconds now) {
  split_run(run.bytes, limits_, lengths_);
  BlockRun part = run;
  for (const Bytes length : lengths_) {
    part.bytes = length;
    // The device does not go back in time.
    const std::uint64_t id = device_.submit({.op = part.op,
                                             .offset = part.offset,
                                             .bytes = length,
                                             .when = std::max(now, last_done_),
                                             .lane = part.lane});
    open_.push_back({.id = id, .run = part});
    part.offset += length;
    if (part.page != kNoPage) {
      part.page += static_cast<PageId>(length.count() / kPageBytes);
    }
  }
  requests_ += static_cast<std::int64_t>(lengths_.size());
  return static_cast<std::int64_t>(lengths_.size());
}

std::optional<BlockDone> BlockQueue::next_until(Picoseconds until) {
  return open_.empty() ? std::nullopt : take(device_.next_until(until));
}

std::optional<BlockDone> BlockQueue::next() {
  return open_.empty() ? std::nullopt : take(device_.next());
}

std::optional<BlockDone> BlockQueue::take(const std::optional<StorageCompletion>& completion) {
  if (!completion) {
    return std::nullopt;
  }
  // Requests end nearly in the order in which they began.
  const auto found =
      std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.id == completion->id; });
  check(found != open_.end(), "a completion belongs to a request of this queue");
  const BlockDone done{.run = found->run, .done = completion->done, .status = completion->status};
  open_.erase(found);
  last_done_ = std::max(last_done_, completion->done);
  return done;
}

}  // namespace kvsim::model
