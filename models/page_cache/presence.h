// SPDX-License-Identifier: Apache-2.0
// A file's pages as its read-ahead window sees them.
#pragma once

#include "models/page_cache/page_cache.h"

namespace kvsim::model {

class PageCache::Presence final : public PagePresence {
 public:
  Presence(const PageTable& pages, const File& file) : pages_(pages), file_(file) {}
  [[nodiscard]] bool present(std::int64_t page) const override {
    return page < file_.pages && pages_[file_.base + static_cast<PageId>(page)].resident();
  }

 private:
  const PageTable& pages_;
  const File& file_;
};

}  // namespace kvsim::model
