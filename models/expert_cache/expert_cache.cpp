// SPDX-License-Identifier: Apache-2.0
#include "models/expert_cache/expert_cache.h"

#include <algorithm>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

constexpr std::int64_t kBlock = config::kDirectBlock.count();

Bytes round_up(Bytes bytes) {
  return Bytes((bytes.count() + kBlock - 1) / kBlock * kBlock);
}
Bytes round_down(Bytes bytes) {
  return Bytes(bytes.count() / kBlock * kBlock);
}

}  // namespace

ExpertReads& ExpertReads::operator+=(const ExpertReads& other) {
  hits += other.hits;
  misses += other.misses;
  requests += other.requests;
  asked += other.asked;
  cached += other.cached;
  read += other.read;
  rounding += other.rounding;
  stall += other.stall;
  return *this;
}

ExpertCache::ExpertCache(StorageDevice& device, const Setup& setup, std::vector<config::ExpertLayer> layers)
    : device_(device), setup_(setup), layers_(std::move(layers)), space_(setup.room) {
  check(setup_.experts > 0 && setup_.how.in_flight > 0, "there are experts, and reads in flight");
  check(setup_.how.request >= Bytes(kBlock), "a read is a block at least");
  entries_.resize(layers_.size() * static_cast<std::size_t>(setup_.experts));
}

std::size_t ExpertCache::index(ExpertId id) const {
  return id.layer * static_cast<std::size_t>(setup_.experts) + id.expert;
}

Bytes ExpertCache::bytes_of(std::size_t index) const {
  return config::expert_bytes(layers_.at(index / static_cast<std::size_t>(setup_.experts)));
}

ExpertCache::Rank ExpertCache::rank(std::size_t index) const {
  const Entry& e = entries_[index];
  return {setup_.how.policy == config::ExpertPolicy::lfu ? e.uses : 0, e.last_use, index};
}

const std::vector<SpaceRun>& ExpertCache::place(ExpertId expert) const {
  check(holds(expert), "an expert at work is in memory");
  return entry(expert).runs;
}

void ExpertCache::pin(std::span<const ExpertId> experts) {
  check(setup_.how.policy == config::ExpertPolicy::pinned, "only a policy that pins has experts that stay");
  for (const ExpertId id : experts) {
    Entry& e = entries_.at(index(id));
    check(e.runs.empty(), "an expert is pinned once");
    e.runs = space_.take(bytes_of(index(id)));
    e.pinned = true;
  }
}

void ExpertCache::use(std::size_t index) {
  Entry& e = entries_[index];
  if (!e.runs.empty() && !e.pinned) {
    order_.erase(rank(index));
  }
  e.in_use = true;
  e.last_use = ++tick_;
  ++e.uses;
  at_work_.push_back(index);
}

void ExpertCache::evict_down_to(Bytes bytes) {
  while (held() > bytes && !order_.empty()) {
    const std::size_t victim = std::get<2>(*order_.begin());
    order_.erase(order_.begin());
    space_.give_back(entries_[victim].runs);
    entries_[victim].runs.clear();
  }
}

ExpertReads ExpertCache::begin(std::uint32_t layer, std::span<const std::uint32_t> experts, Picoseconds now) {
  check(at_work_.empty(), "one layer is under way at a time");
  ExpertReads reads;
  std::vector<std::uint32_t> missing;
  Bytes needed;
  begun_ = now;
  there_.assign(experts.size(), now);
  for (const std::uint32_t expert : experts) {
    const std::size_t at = index({.layer = layer, .expert = expert});
    check(!entries_.at(at).in_use, "a layer names an expert once");
    const bool hit = !entries_[at].runs.empty();
    use(at);
    (hit ? reads.hits : reads.misses) += 1;
    for (const config::ExpertTensor& tensor : layers_[layer]) {
      reads.asked += tensor.each;
      reads.cached += hit ? tensor.each : Bytes();
    }
    if (!hit) {
      missing.push_back(expert);
      needed += bytes_of(at);
    }
  }
  evict_down_to(std::max(Bytes(), setup_.room - needed));
  for (const std::uint32_t expert : missing) {
    const std::size_t at = index({.layer = layer, .expert = expert});
    entries_[at].runs = space_.take(bytes_of(at));
  }
  fetch(reads_of(layer, missing, reads), experts.size() - missing.size(), now);
  if (!setup_.how.overlap && !there_.empty()) {
    reads.stall = std::ranges::max(there_) - now;
  }
  return reads;
}

std::vector<ExpertCache::Read> ExpertCache::reads_of(std::uint32_t layer,
                                                     std::span<const std::uint32_t> missing,
                                                     ExpertReads& reads) const {
  const Bytes longest = round_down(setup_.how.request);
  std::vector<Read> list;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    for (const config::ExpertTensor& tensor : layers_[layer]) {
      const Bytes first = tensor.offset + tensor.each * std::int64_t{missing[i]};
      const Bytes end = round_up(first + tensor.each);
      Bytes at = round_down(first);
      reads.read += end - at;
      reads.rounding += end - at - tensor.each;
      for (; at < end; at += longest) {
        list.push_back({.missing = i, .offset = at, .bytes = std::min(longest, end - at)});
      }
    }
  }
  reads.requests += static_cast<std::int64_t>(list.size());
  return list;
}

/// Each lane is a thread that reads one after the other; the next read is whoever's is free first. Reads are
/// in the order of the experts, so that the first is there early. Times of the missing experts come behind
/// the `known` ones.
void ExpertCache::fetch(const std::vector<Read>& list, std::size_t known, Picoseconds now) {
  std::vector<std::pair<std::uint64_t, std::size_t>> open;  // completion's id, its expert
  std::size_t next = 0;
  const auto submit = [&](std::int64_t lane, Picoseconds when) {
    const Read& read = list[next++];
    open.emplace_back(
        device_.submit(
            {.op = StorageOp::read, .offset = read.offset, .bytes = read.bytes, .when = when, .lane = lane}),
        read.missing);
  };
  for (std::int64_t lane = 0; lane < setup_.how.in_flight && next < list.size(); ++lane) {
    submit(lane, now);
  }
  while (!open.empty()) {
    const std::optional<StorageCompletion> done = device_.next();
    check(done && done->status == StorageStatus::ok, "the file lies on the device");
    const auto which = std::ranges::find(open, done->id, &std::pair<std::uint64_t, std::size_t>::first);
    check(which != open.end(), "completions are of this cache's reads");
    Picoseconds& there = there_[known + which->second];
    there = std::max(there, done->done);
    open.erase(which);
    if (next < list.size()) {
      submit(done->request.lane, done->done);
    }
  }
}

Picoseconds ExpertCache::end(Picoseconds compute) {
  Picoseconds stall;
  if (setup_.how.overlap && !there_.empty()) {
    std::ranges::sort(there_);
    const Picoseconds each = compute / std::ssize(there_);
    Picoseconds at = begun_;
    for (const Picoseconds there : there_) {
      at = std::max(at, there) + each;
    }
    stall = at - begun_ - each * std::ssize(there_);
  }
  for (const std::size_t index : at_work_) {
    entries_[index].in_use = false;
    if (!entries_[index].pinned) {
      order_.insert(rank(index));
    }
  }
  at_work_.clear();
  const bool keeps = setup_.how.policy != config::ExpertPolicy::pinned;
  evict_down_to(keeps ? setup_.how.cache : Bytes());
  return stall;
}

}  // namespace kvsim::model
