// SPDX-License-Identifier: Apache-2.0
// Temperatures of lumps of matter that heat flows between, solved exactly for constant power over a step of
// any length.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "configs/units/quantity.h"
#include "models/thermal/eigen.h"

namespace kvsim::model {

struct RcLink {
  std::size_t from = 0;
  std::optional<std::size_t> to{};  ///< none: ambient
  KelvinPerWatt resistance;
};

/// The equation C dT/dt = P - G (T - ambient) is taken apart into independent modes, each of which decays
/// exponentially (models/thermal/README.md).
class RcNetwork {
 public:
  /// Everything begins at ambient. Precondition: capacities and resistances are positive, and from every node
  /// links lead to ambient.
  RcNetwork(std::vector<JoulesPerKelvin> capacities, std::vector<RcLink> links, Celsius ambient);

  [[nodiscard]] std::size_t size() const { return capacities_.size(); }

  /// Heats with so many watts into each node for `time`.
  void advance(std::span<const Watts> power, Picoseconds time);

  [[nodiscard]] Celsius temperature(std::size_t node) const { return ambient_ + Celsius(rise_[node]); }
  void set_temperature(std::size_t node, Celsius temperature);
  /// Puts everything where it would come to rest.
  void settle(std::span<const Watts> power);
  /// Where everything would come to rest.
  [[nodiscard]] std::vector<Celsius> steady(std::span<const Watts> power) const;

  [[nodiscard]] Celsius ambient() const { return ambient_; }
  /// Temperatures of the nodes stay.
  void set_ambient(Celsius ambient);
  [[nodiscard]] KelvinPerWatt resistance(std::size_t link) const { return links_[link].resistance; }
  void set_resistance(std::size_t link, KelvinPerWatt resistance);

  /// Heat above ambient, that went in since the start, and that went out to ambient.
  [[nodiscard]] Joules stored() const;
  [[nodiscard]] Joules put_in() const { return in_; }
  [[nodiscard]] Joules given_off() const { return out_; }

 private:
  /// What a mode does in a step: what remains of it, and what constant power adds; and the integrals of
  /// both.
  struct Decay {
    double keep;
    double gain;
    double keep_integral;
    double gain_integral;
  };

  void decompose();
  [[nodiscard]] static Decay decay(double rate, double time);
  void prepare(Picoseconds time);

  std::vector<JoulesPerKelvin> capacities_;
  std::vector<double> root_capacity_;
  std::vector<RcLink> links_;
  Celsius ambient_;
  std::vector<double> rise_;  ///< above ambient, K
  Eigen modes_;               ///< of the network in coordinates scaled by the roots of the capacities
  std::vector<Decay> decays_;
  std::optional<Picoseconds> prepared_;  ///< the step that `decays_` is for
  std::vector<double> state_;            ///< modes at the start of a step,
  std::vector<double> drive_;            ///< and what drives them
  std::vector<double> sum_;              ///< modes' integrals over a step
  Joules in_;
  Joules out_;
};

}  // namespace kvsim::model
