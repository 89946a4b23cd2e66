// SPDX-License-Identifier: Apache-2.0
#include "sim/capture/page_map.h"

#include <fmt/format.h>

#include "configs/error/error.h"
#include "sim/metrics/human.h"

namespace kvsim::sim {

PageMap::PageMap(Bytes page, Bytes capacity)
    : page_(static_cast<std::uint64_t>(page.count())),
      most_(static_cast<std::uint64_t>(capacity.count()) / page_) {}

std::uint64_t PageMap::frame_of(std::uint64_t page) {
  const auto [found, is_new] = frames_.try_emplace(page, pages_.size());
  if (is_new) {
    if (pages_.size() == most_) {
      throw UserError(
          fmt::format("the trace touches more than the device's {} of memory, in pages of {}: "
                      "choose a device with more memory",
                      human(Bytes(static_cast<std::int64_t>(most_ * page_))),
                      human(Bytes(static_cast<std::int64_t>(page_)))));
    }
    pages_.push_back(page);
  }
  return found->second;
}

}  // namespace kvsim::sim
