// SPDX-License-Identifier: Apache-2.0
// Where the pages of a captured program lie in memory.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "configs/units/quantity.h"
#include "traces/record/record.h"

namespace kvsim::sim {

/// Virtual pages get the device's pages from address 0 on, in the order in which they are first touched.
class PageMap {
 public:
  /// Precondition: `page` is a power of two.
  PageMap(Bytes page, Bytes capacity);

  /// Throws UserError when the device has no page left.
  [[nodiscard]] trace::Address physical(trace::Address address) {
    const std::uint64_t page = address / page_;
    Recent& recent = recent_[page % recent_.size()];
    if (recent.page != page) {
      recent = {.page = page, .frame = frame_of(page)};
    }
    return recent.frame * page_ + address % page_;
  }
  /// The way back. Precondition: it was handed out.
  [[nodiscard]] trace::Address virtual_of(trace::Address address) const {
    return pages_[address / page_] * page_ + address % page_;
  }

 private:
  struct Recent {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint64_t frame = 0;
  };
  [[nodiscard]] std::uint64_t frame_of(std::uint64_t page);

  std::uint64_t page_;
  std::uint64_t most_;
  std::unordered_map<std::uint64_t, std::uint64_t> frames_;
  std::vector<std::uint64_t> pages_;  ///< by frame
  std::array<Recent, 256> recent_{};
};

}  // namespace kvsim::sim
