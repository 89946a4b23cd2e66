// SPDX-License-Identifier: Apache-2.0
#include "models/thermal/rc_network.h"

#include <cmath>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::model {
namespace {

/// (x - (1 - e^-x)) / x^2, without cancellation for small x.
double second_integral(double x) {
  if (x < 0.01) {
    return 1.0 / 2 - x * (1.0 / 6 - x * (1.0 / 24 - x * (1.0 / 120 - x / 720)));
  }
  return (x + std::expm1(-x)) / (x * x);
}

}  // namespace

RcNetwork::RcNetwork(std::vector<JoulesPerKelvin> capacities, std::vector<RcLink> links, Celsius ambient)
    : capacities_(std::move(capacities)),
      links_(std::move(links)),
      ambient_(ambient),
      rise_(capacities_.size()),
      modes_{{}, Matrix(0)},
      decays_(capacities_.size()),
      state_(capacities_.size()),
      drive_(capacities_.size()),
      sum_(capacities_.size()) {
  for (const JoulesPerKelvin capacity : capacities_) {
    check(capacity.count() > 0, "heat capacities are positive");
    root_capacity_.push_back(std::sqrt(capacity.count()));
  }
  for (const RcLink& link : links_) {
    check(link.from < size() && (!link.to || *link.to < size()), "links are between nodes");
    check(link.resistance.count() > 0, "thermal resistances are positive");
  }
  decompose();
}

void RcNetwork::decompose() {
  Matrix scaled(size());
  for (const RcLink& link : links_) {
    const double conductance = 1 / link.resistance.count();
    scaled.at(link.from, link.from) += conductance;
    if (link.to) {
      scaled.at(*link.to, *link.to) += conductance;
      scaled.at(link.from, *link.to) -= conductance;
      scaled.at(*link.to, link.from) -= conductance;
    }
  }
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t j = 0; j < size(); ++j) {
      scaled.at(i, j) /= root_capacity_[i] * root_capacity_[j];
    }
  }
  modes_ = eigen_of(std::move(scaled));
  for (const double rate : modes_.values) {
    check(rate > 0, "from every node links lead to ambient");
  }
  prepared_.reset();
}

RcNetwork::Decay RcNetwork::decay(double rate, double time) {
  const double x = rate * time;
  const double gain = -std::expm1(-x) / rate;
  return {.keep = std::exp(-x),
          .gain = gain,
          .keep_integral = gain,
          .gain_integral = second_integral(x) * time * time};
}

void RcNetwork::prepare(Picoseconds time) {
  if (prepared_ == time) {
    return;
  }
  for (std::size_t k = 0; k < size(); ++k) {
    decays_[k] = decay(modes_.values[k], seconds(time));
  }
  prepared_ = time;
}

void RcNetwork::advance(std::span<const Watts> power, Picoseconds time) {
  check(power.size() == size(), "each node has a power");
  prepare(time);
  for (std::size_t k = 0; k < size(); ++k) {
    state_[k] = 0;
    drive_[k] = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      state_[k] += modes_.vectors.at(i, k) * root_capacity_[i] * rise_[i];
      drive_[k] += modes_.vectors.at(i, k) / root_capacity_[i] * power[i].count();
    }
    sum_[k] = state_[k] * decays_[k].keep_integral + drive_[k] * decays_[k].gain_integral;
    state_[k] = state_[k] * decays_[k].keep + drive_[k] * decays_[k].gain;
  }
  for (std::size_t i = 0; i < size(); ++i) {
    double rise = 0;
    for (std::size_t k = 0; k < size(); ++k) {
      rise += modes_.vectors.at(i, k) * state_[k];
    }
    rise_[i] = rise / root_capacity_[i];
    in_ += Joules(power[i].count() * seconds(time));
  }
  for (const RcLink& link : links_) {
    for (std::size_t k = 0; !link.to && k < size(); ++k) {
      const double integral = modes_.vectors.at(link.from, k) * sum_[k] / root_capacity_[link.from];
      out_ += Joules(integral / link.resistance.count());
    }
  }
}

void RcNetwork::set_temperature(std::size_t node, Celsius temperature) {
  const double rise = (temperature - ambient_).count();
  in_ += Joules((rise - rise_[node]) * capacities_[node].count());
  rise_[node] = rise;
}

std::vector<Celsius> RcNetwork::steady(std::span<const Watts> power) const {
  std::vector<Celsius> result(size(), ambient_);
  for (std::size_t k = 0; k < size(); ++k) {
    double drive = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      drive += modes_.vectors.at(i, k) / root_capacity_[i] * power[i].count();
    }
    for (std::size_t i = 0; i < size(); ++i) {
      result[i] += Celsius(modes_.vectors.at(i, k) / root_capacity_[i] * drive / modes_.values[k]);
    }
  }
  return result;
}

void RcNetwork::settle(std::span<const Watts> power) {
  const std::vector<Celsius> rest = steady(power);
  for (std::size_t i = 0; i < size(); ++i) {
    set_temperature(i, rest[i]);
  }
}

void RcNetwork::set_ambient(Celsius ambient) {
  const Celsius change = ambient_ - ambient;
  ambient_ = ambient;
  for (std::size_t i = 0; i < size(); ++i) {
    rise_[i] += change.count();
    in_ += Joules(change.count() * capacities_[i].count());
  }
}

void RcNetwork::set_resistance(std::size_t link, KelvinPerWatt resistance) {
  check(resistance.count() > 0, "thermal resistances are positive");
  if (links_[link].resistance != resistance) {
    links_[link].resistance = resistance;
    decompose();
  }
}

Joules RcNetwork::stored() const {
  Joules sum;
  for (std::size_t i = 0; i < size(); ++i) {
    sum += Joules(rise_[i] * capacities_[i].count());
  }
  return sum;
}

}  // namespace kvsim::model
