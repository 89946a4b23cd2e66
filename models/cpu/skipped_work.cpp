// SPDX-License-Identifier: Apache-2.0
#include "models/cpu/skipped_work.h"

#include <optional>

namespace kvsim::model {

using trace::Extent;

namespace {

Bytes bytes_of(const std::vector<Extent>& extents) {
  Bytes sum;
  for (const Extent& extent : extents) {
    sum += total_bytes(extent);
  }
  return sum;
}

/// The last extents, as many as have `reach` bytes.
std::vector<Extent> end_of(const std::vector<Extent>& extents, Bytes reach) {
  Bytes bytes;
  auto begin = extents.end();
  while (begin != extents.begin() && bytes < reach) {
    bytes += total_bytes(*--begin);
  }
  return {begin, extents.end()};
}

}  // namespace

/// Twice the cache: in a set of few ways lines live longer than the cache's size tells.
SkippedWork::SkippedWork(Cache& cache, const config::CacheSpec& spec)
    : cache_(cache), spec_(spec), reach_(cache.size() * 2) {}

void SkippedWork::add(const std::vector<ThreadWork>& threads, bool passes_cache) {
  Work work{.threads = {}, .passes_cache = passes_cache, .bytes = {}};
  Bytes cut;
  for (const ThreadWork& thread : threads) {
    const std::vector<Extent>& kept =
        work.threads.emplace_back(end_of(thread.extents, reach_ / static_cast<std::int64_t>(threads.size())));
    const Bytes bytes = bytes_of(kept);
    work.bytes += bytes;
    cut += bytes_of(thread.extents) - bytes;
  }
  remembered_ += work.bytes;
  work_.push_back(std::move(work));
  forgotten_ += cut;
  while (work_.size() > 1 && (cut > Bytes() || remembered_ - work_.front().bytes >= reach_)) {
    remembered_ -= work_.front().bytes;
    forgotten_ += work_.front().bytes;
    work_.pop_front();
  }
}

void SkippedWork::catch_up() {
  if (work_.empty()) {
    return;
  }
  cache_.pass(forgotten_);
  while (cache_.take_expired()) {
  }
  for (const Work& work : work_) {
    play(work);
  }
  work_.clear();
  remembered_ = forgotten_ = Bytes();
}

/// Threads take turns segment by segment, as they do when memory answers.
void SkippedWork::play(const Work& work) {
  std::vector<Segmenter> threads(work.threads.size(), Segmenter(cache_, spec_));
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i].begin(work.threads[i], {}, work.passes_cache);
  }
  for (bool any = true; any;) {
    any = false;
    for (Segmenter& thread : threads) {
      std::optional<Segment> segment = thread.next();
      while (segment && segment->posted) {
        segment = thread.next();
      }
      any = any || segment;
    }
  }
}

}  // namespace kvsim::model
