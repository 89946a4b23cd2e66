// SPDX-License-Identifier: Apache-2.0
// Tables of power, and what must hold between their values.
#include <set>

#include <fmt/format.h>

#include "configs/spec/board_grammar.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr Watts kMostPower{10'000};

void check_part(const PowerPartSpec& part, const Place& place) {
  if (part.name.empty()) {
    place.error("name", "is empty");
  }
  if ((part.kind == PowerKind::logic) == part.domain.empty()) {
    place.error("domain", part.domain.empty() ? "is left out, and logic has one" : "is of logic only");
  }
  if (part.kind != PowerKind::logic && (part.capacitance.count() > 0 || part.leakage.count() > 0)) {
    place.error(part.capacitance.count() > 0 ? "capacitance" : "leakage", "is of logic only");
  }
  if (part.kind != PowerKind::storage && part.active.count() > 0) {
    place.error("active", "is of storage only");
  }
}

void check_limit(const PowerLimitSpec& limit, const Place& place) {
  if (limit.domains.empty()) {
    place.error("domains", "is empty; a limit slows at least one domain down");
  }
}

void check_power(const PowerSpec& power, const Place& place) {
  std::set<std::string> names;
  std::set<std::string> rails;
  for (std::size_t i = 0; i < power.parts.size(); ++i) {
    rails.insert(power.parts[i].rail);
    if (!names.insert(power.parts[i].name).second) {
      place.error(fmt::format("parts.{}.name", i),
                  fmt::format("'{}' is the name of two parts", power.parts[i].name));
    }
  }
  for (std::size_t i = 0; i < power.limits.size(); ++i) {
    const std::optional<std::string>& rail = power.limits[i].rail;
    if (rail && !rails.contains(*rail)) {
      place.error(fmt::format("limits.{}.rail", i), fmt::format("no part is on a rail '{}'", *rail));
    }
  }
}

}  // namespace

template <>
const Schema<PowerPartSpec>& schema<PowerPartSpec>() {
  using T = PowerPartSpec;
  static const Schema<T> kSchema{
      "something that takes power",
      {field("name", &T::name, "what reports call it"), field("kind", &T::kind, "what its power follows"),
       field("rail", &T::rail, "that feeds it"),
       field("node", &T::node, "of the thermal network; it heats it"),
       field("domain", &T::domain, "which clocks it, of logic").by_default(""),
       field("cores", &T::cores, "of logic").between(1, 1024).by_default(1),
       field("capacitance", &T::capacitance, "of a core: at work it takes this x voltage^2 x clock")
           .between(Farads(0), Farads(1e-3))
           .optional(),
       field("leakage", &T::leakage, "of all cores, at 25 C and the domain's highest voltage")
           .between(Watts(0), kMostPower)
           .optional(),
       field("leakage_doubles", &T::leakage_doubles, "with so many degrees more")
           .between(Celsius(1), Celsius(1000))
           .by_default(Celsius(25)),
       field("idle", &T::idle, "that it always takes").between(Watts(0), kMostPower).optional(),
       field("active", &T::active, "beyond that, of storage at work")
           .between(Watts(0), kMostPower)
           .optional()},
      check_part};
  return kSchema;
}

template <>
const Schema<PowerLimitSpec>& schema<PowerLimitSpec>() {
  using T = PowerLimitSpec;
  static const Schema<T> kSchema{
      "a limit of a rail's average power, kept by slower clocks",
      {field("name", &T::name, "what reports call it"),
       field("kind", &T::kind, "what it comes from").by_default(PowerLimitKind::over_current),
       field("rail", &T::rail, "none: all of them together").optional(),
       field("limit", &T::limit, "of the average").between(Watts(0.001), kMostPower),
       field("window", &T::window, "of the average").between(1_us, 1000_ms * 60),
       field("release", &T::release, "share of the limit below which clocks rise again")
           .between(0.01, 1)
           .optional(),
       field("domains", &T::domains, "that it slows down")},
      check_limit};
  return kSchema;
}

template <>
const Schema<PowerSpec>& schema<PowerSpec>() {
  using T = PowerSpec;
  static const Schema<T> kSchema{"what takes power, and what limits it",
                                 {field("parts", &T::parts, "each on a rail"),
                                  field("limits", &T::limits, "of supply and regulators").optional()},
                                 check_power};
  return kSchema;
}

}  // namespace kvsim::config
