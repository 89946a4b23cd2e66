// SPDX-License-Identifier: Apache-2.0
#include "models/cpu/skipped_work.h"

#include <optional>
#include <utility>

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

/// Makes `to` the last extents, as many as have `reach` bytes.
void take_end(const std::vector<Extent>& extents, Bytes reach, std::vector<Extent>& to) {
  Bytes bytes;
  auto begin = extents.end();
  while (begin != extents.begin() && bytes < reach) {
    bytes += total_bytes(*--begin);
  }
  to.assign(begin, extents.end());
}

}  // namespace

/// Twice the cache: in a set of few ways lines live longer than the cache's size tells.
SkippedWork::SkippedWork(Cache& cache, const config::CacheSpec& spec)
    : cache_(cache), spec_(spec), reach_(cache.size() * 2) {}

void SkippedWork::add(const std::vector<ThreadWork>& threads, bool passes_cache) {
  Work& work = next_work();
  work.threads.resize(threads.size());
  work.passes_cache = passes_cache;
  work.bytes = Bytes();
  Bytes cut;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    take_end(threads[i].extents, reach_ / static_cast<std::int64_t>(threads.size()), work.threads[i]);
    const Bytes bytes = bytes_of(work.threads[i]);
    work.bytes += bytes;
    cut += bytes_of(threads[i].extents) - bytes;
  }
  remembered_ += work.bytes;
  forgotten_ += cut;
  while (work_.size() > 1 && (cut > Bytes() || remembered_ - work_.front().bytes >= reach_)) {
    remembered_ -= work_.front().bytes;
    forgotten_ += work_.front().bytes;
    spare_.push_back(std::move(work_.front()));
    work_.pop_front();
  }
}

/// The last of all, in the room of one that was forgotten.
SkippedWork::Work& SkippedWork::next_work() {
  if (spare_.empty()) {
    return work_.emplace_back();
  }
  work_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  return work_.back();
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
