// SPDX-License-Identifier: Apache-2.0
#include "models/cache/cache.h"

#include <algorithm>

#include "configs/error/error.h"

namespace kvsim::model {

Cache::Cache(const config::CacheSpec& spec)
    : size_(spec.size),
      line_bytes_(spec.line.count()),
      ways_(static_cast<std::uint64_t>(spec.ways)),
      sets_(static_cast<std::uint64_t>(spec.size.count() / (spec.ways * spec.line.count()))),
      lines_(ways_ * sets_) {
  check(sets_ >= 1, "the cache has at least one set");
}

CacheAccess Cache::access(trace::Address address, trace::Access access, Owner owner) {
  const std::uint64_t number = address / static_cast<std::uint64_t>(line_bytes_);
  Line* const set = set_of(number);
  Line* const found = std::find_if(set, set + ways_, [&](const Line& line) { return line.number == number; });
  CacheAccess result;
  Line line{.number = number, .used_at = passed_, .owner = owner, .dirty = access == trace::Access::write};
  bool booked = false;  // in dirty_ with this age
  if (found != set + ways_ && !expired(*found)) {
    result.hit = true;
    booked = found->dirty && found->used_at == passed_;
    line.dirty = line.dirty || found->dirty;
    line.owner = access == trace::Access::write ? owner : found->owner;
  } else {
    const Line& victim = found != set + ways_ ? *found : set[ways_ - 1];
    if (victim.dirty) {
      result.evicted = WriteBack{victim.number * static_cast<std::uint64_t>(line_bytes_), victim.owner};
    }
  }
  Line* const gap = found != set + ways_ ? found : set + ways_ - 1;
  std::move_backward(set, gap, gap + 1);
  *set = line;
  if (line.dirty && !booked && passed_ > Bytes()) {
    dirty_.push({.number = number, .used_at = passed_});
  }
  ++(result.hit ? hits_ : misses_);
  return result;
}

void Cache::pass(Bytes bytes) {
  if (passed_ == Bytes() && bytes > Bytes()) {
    for (const Line& line : lines_) {
      if (line.dirty) {
        dirty_.push({.number = line.number, .used_at = line.used_at});
      }
    }
  }
  passed_ += bytes;
}

std::optional<WriteBack> Cache::take_expired() {
  while (!dirty_.empty() && passed_ - dirty_.front().used_at > size_) {
    const std::uint64_t number = dirty_.front().number;
    dirty_.pop();
    Line* const set = set_of(number);
    Line* const found =
        std::find_if(set, set + ways_, [&](const Line& line) { return line.number == number; });
    if (found != set + ways_ && found->dirty && expired(*found)) {
      found->dirty = false;
      return WriteBack{number * static_cast<std::uint64_t>(line_bytes_), found->owner};
    }
  }
  return std::nullopt;
}

}  // namespace kvsim::model
