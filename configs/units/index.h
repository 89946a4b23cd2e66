// SPDX-License-Identifier: Apache-2.0
// Strong indices: a bank number cannot be used where a channel is asked for.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace kvsim {

/// Position of one thing among its like. `Of` is a tag type.
template <class Of>
class Index {
 public:
  constexpr Index() = default;
  constexpr explicit Index(std::uint32_t value) : value_(value) {}

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  /// For subscripting containers that hold one element per index.
  [[nodiscard]] constexpr std::size_t pos() const { return value_; }
  constexpr auto operator<=>(const Index&) const = default;
  constexpr Index& operator++() { return ++value_, *this; }

 private:
  std::uint32_t value_ = 0;
};

using Channel = Index<struct ChannelTag>;
using Rank = Index<struct RankTag>;
using Bank = Index<struct BankTag>;  ///< within its rank, over all bank groups
using Row = Index<struct RowTag>;
using Layer = Index<struct LayerTag>;
using Head = Index<struct HeadTag>;
using Token = Index<struct TokenTag>;    ///< position in the context, from 0
using Stream = Index<struct StreamTag>;  ///< software thread that issues accesses, from 0
using CoreId = Index<struct CoreTag>;

}  // namespace kvsim
