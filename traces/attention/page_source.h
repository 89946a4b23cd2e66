// SPDX-License-Identifier: Apache-2.0
// Which pages of a head's keys a query reads where no numbers are computed that would tell.
#pragma once

#include <cstdint>
#include <span>

#include "configs/units/index.h"

namespace kvsim::trace {

struct PageQuery {
  Layer layer{};
  Head head{};  ///< KV head
  Token query{};
  std::uint32_t pages = 0;   ///< that there are
  std::uint32_t wanted = 0;  ///< fewer
};

class PageSource {
 public:
  PageSource() = default;
  PageSource(const PageSource&) = delete;
  PageSource& operator=(const PageSource&) = delete;
  virtual ~PageSource() = default;

  /// As many as wanted, in ascending order, the last one among them; valid until the next call.
  [[nodiscard]] virtual std::span<const std::uint32_t> choose(const PageQuery& of) = 0;
};

}  // namespace kvsim::trace
