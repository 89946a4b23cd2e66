// SPDX-License-Identifier: Apache-2.0
#include "models/expert_cache/free_space.h"

#include <algorithm>
#include <iterator>

#include "configs/error/error.h"

namespace kvsim::model {

FreeSpace::FreeSpace(Bytes size) : free_(size) {
  if (size > Bytes()) {
    runs_.emplace(Bytes(), size);
  }
}

SpaceRun FreeSpace::cut(Runs::iterator run, Bytes bytes) {
  const SpaceRun taken{.first = run->first, .bytes = std::min(bytes, run->second)};
  const Bytes left = run->second - taken.bytes;
  runs_.erase(run);
  if (left > Bytes()) {
    runs_.emplace(taken.first + taken.bytes, left);
  }
  free_ -= taken.bytes;
  return taken;
}

std::vector<SpaceRun> FreeSpace::take(Bytes bytes) {
  check(bytes > Bytes() && bytes <= free_, "there is room for what is taken");
  const auto whole = std::ranges::find_if(runs_, [&](const auto& run) { return run.second >= bytes; });
  if (whole != runs_.end()) {
    return {cut(whole, bytes)};
  }
  std::vector<SpaceRun> taken;
  while (bytes > Bytes()) {
    taken.push_back(cut(runs_.begin(), bytes));
    bytes -= taken.back().bytes;
  }
  return taken;
}

void FreeSpace::give_back(const SpaceRun& run) {
  Bytes first = run.first;
  Bytes end = run.first + run.bytes;
  const auto after = runs_.lower_bound(first);
  check(after == runs_.end() || after->first >= end, "what is given back was taken");
  if (after != runs_.begin()) {
    const auto before = std::prev(after);
    const Bytes before_end = before->first + before->second;
    check(before_end <= first, "what is given back was taken");
    if (before_end == first) {
      first = before->first;
      runs_.erase(before);
    }
  }
  if (after != runs_.end() && after->first == end) {
    end += after->second;
    runs_.erase(after);
  }
  runs_.emplace(first, end - first);
  free_ += run.bytes;
}

void FreeSpace::give_back(const std::vector<SpaceRun>& runs) {
  for (const SpaceRun& run : runs) {
    give_back(run);
  }
}

}  // namespace kvsim::model
