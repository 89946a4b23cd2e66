// SPDX-License-Identifier: Apache-2.0
// The dirty pages of a file as runs, so that write-back finds them without a look at every page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace kvsim::model {

struct PageRun {
  std::int64_t first = 0;
  std::int64_t pages = 0;

  bool operator==(const PageRun&) const = default;
};

class DirtySet {
 public:
  [[nodiscard]] bool empty() const { return runs_.empty(); }

  /// Precondition: the page is not in the set.
  void add(std::int64_t page) {
    auto after = runs_.upper_bound(page);
    if (after != runs_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == page) {
        ++before->second;
        if (after != runs_.end() && after->first == page + 1) {
          before->second += after->second;
          runs_.erase(after);
        }
        return;
      }
    }
    if (after != runs_.end() && after->first == page + 1) {
      const std::int64_t pages = after->second;
      runs_.erase(after);
      runs_.emplace(page, pages + 1);
      return;
    }
    runs_.emplace(page, 1);
  }

  /// Takes out the first run, at most `most` pages of it. Precondition: not empty.
  PageRun take(std::int64_t most) {
    const auto first = runs_.begin();
    const PageRun run{.first = first->first, .pages = std::min(first->second, most)};
    const std::int64_t left = first->second - run.pages;
    runs_.erase(first);
    if (left > 0) {
      runs_.emplace(run.first + run.pages, left);
    }
    return run;
  }

 private:
  std::map<std::int64_t, std::int64_t> runs_;  ///< pages by first page; runs do not touch
};

}  // namespace kvsim::model
