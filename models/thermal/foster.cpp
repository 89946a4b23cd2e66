// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/foster.h"

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

/// Coefficients, of the constant term first.
using Polynomial = std::vector<double>;

Polynomial times(const Polynomial& a, const Polynomial& b) {
  Polynomial product(a.size() + b.size() - 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      product[i + j] += a[i] * b[j];
    }
  }
  return product;
}

/// a - factor x s^shift x b, whose highest term vanishes.
Polynomial reduced(Polynomial a, double factor, std::size_t shift, const Polynomial& b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    a[i + shift] -= factor * b[i];
  }
  a.pop_back();
  return a;
}

struct Fraction {
  Polynomial top;
  Polynomial bottom;
};

/// The impedance at the node: the sum of R / (1 + s tau).
Fraction impedance(std::span<const config::FosterStageSpec> stages) {
  Fraction sum{{0}, {1}};
  for (const config::FosterStageSpec& stage : stages) {
    const Polynomial pole{1, seconds(stage.time_constant)};
    Polynomial top = times(sum.top, pole);
    top.resize(sum.bottom.size());
    for (std::size_t i = 0; i < sum.bottom.size(); ++i) {
      top[i] += stage.resistance.count() * sum.bottom[i];
    }
    sum = {std::move(top), times(sum.bottom, pole)};
  }
  return sum;
}

}  // namespace

std::vector<LadderStep> ladder_of(std::span<const config::FosterStageSpec> stages) {
  check(!stages.empty(), "a chain has stages");
  Fraction rest = impedance(stages);
  std::vector<LadderStep> ladder;
  // Cauer's continued fraction: admittance = s C + 1 / (R + the rest's impedance).
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double capacity = rest.bottom.back() / rest.top.back();
    const Polynomial remainder = reduced(rest.bottom, capacity, 1, rest.top);
    const double resistance = rest.top.back() / remainder.back();
    check(capacity > 0 && resistance > 0, "a chain of positive stages has a ladder");
    ladder.push_back({JoulesPerKelvin(capacity), KelvinPerWatt(resistance)});
    if (i + 1 < stages.size()) {
      rest = {reduced(rest.top, resistance, 0, remainder), remainder};
    }
  }
  return ladder;
}

}  // namespace kvsim::model
