// SPDX-License-Identifier: Apache-2.0
// Tables of a long run, and what must hold between their values.
#include <fmt/format.h>

#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr Picoseconds kLongest(30LL * 24 * 3600 * 1'000'000'000'000);
/// Of a timeline.
constexpr std::int64_t kMostRows = 1'000'000;

void check_rule(const SoakRule& rule, const Place& place) {
  if (rule.below >= rule.above) {
    place.error("below", fmt::format("{} is not below {}: the rule would come and go at every look",
                                     to_text(rule.below), to_text(rule.above)));
  }
  if (rule.pause == !rule.set.empty()) {
    place.error("set", "give either a change (set) or pause: true");
  }
}

void check_soak(const SoakSpec& soak, const Place& place) {
  if (soak.duration / soak.sample.count() > Picoseconds(kMostRows)) {
    place.error("sample", fmt::format("{} give more than {} rows in {}", to_text(soak.sample), kMostRows,
                                      to_text(soak.duration)));
  }
}

}  // namespace

template <>
const Schema<SoakRule>& schema<SoakRule>() {
  using T = SoakRule;
  static const Schema<T> kSchema{
      "what the software does about a temperature",
      {field("sensor", &T::sensor, "of device.thermal.sensors"),
       field("above", &T::above, "from here on").between(Celsius(-40), Celsius(200)),
       field("below", &T::below, "until here").between(Celsius(-40), Celsius(200)),
       field("set", &T::set, "PATH=VALUE, a change of the scenario's engine or workload.threads")
           .by_default(""),
       field("pause", &T::pause, "no token is begun").by_default(false)},
      check_rule};
  return kSchema;
}

template <>
const Schema<SoakSpec>& schema<SoakSpec>() {
  using T = SoakSpec;
  static const Schema<T> kSchema{
      "a long run: answers one after the other, while clocks, power and heat follow; the device needs "
      "clocks, power and thermal",
      {field("duration", &T::duration, "simulated time").between(1_ms, kLongest),
       field("pause", &T::pause, "from an answer's end to the next prompt")
           .by_default(0_ps)
           .between(0_ps, kLongest),
       field("sample", &T::sample, "rows of the timeline are so far apart")
           .by_default(1000_ms)
           .between(1_ms, kLongest),
       field("stalled_power", &T::stalled_power,
             "of a core that waits for memory, as a share of one that computes (assumed)")
           .by_default(0.6)
           .between(0, 1),
       field("reuse", &T::reuse,
             "windows are measured once for each state; false: every token in a window of its own")
           .by_default(true),
       field("rules", &T::rules, "what the software does about temperatures").by_default({})},
      check_soak};
  return kSchema;
}

}  // namespace kvsim::config
