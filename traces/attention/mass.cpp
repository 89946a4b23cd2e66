// SPDX-License-Identifier: Apache-2.0
#include "traces/attention/mass.h"

#include <cstdint>

#include "configs/error/error.h"
#include "traces/record/spread.h"

namespace kvsim::trace {
namespace {

float weight(const MassQuery& query, Token token) {
  constexpr std::uint32_t kSinks = 4;
  const std::uint64_t key = (std::uint64_t{query.layer.value()} << 48U) ^
                            (std::uint64_t{query.head.value()} << 32U) ^ token.value();
  const bool heavy = spread(key) % 16 == 0;
  const auto distance = static_cast<float>(query.query.value() - token.value());
  return (token.value() < kSinks ? 1.0F : 0.0F) + (heavy ? 0.05F : 0.0F) + 1.0F / (1.0F + distance);
}

}  // namespace

void SyntheticMass::fill(const MassQuery& of, std::span<const Token> tokens, std::span<float> mass) const {
  check(tokens.size() == mass.size(), "every token has a weight");
  float sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    mass[i] = weight(of, tokens[i]);
    sum += mass[i];
  }
  for (float& m : mass) {
    m /= sum;
  }
}

}  // namespace kvsim::trace
