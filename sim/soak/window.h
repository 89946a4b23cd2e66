// SPDX-License-Identifier: Apache-2.0
// What the memory system does in one state of the device: measured once by a run, and reused while the state
// lasts.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/run_spec.h"
#include "sim/soak/child.h"

namespace kvsim::sim {

/// What a token's time depends on beside its depth.
struct WindowState {
  std::vector<Hertz> clusters;  ///< clocks, of clusters that threads or masters are on; others 0
  Hertz dram;                   ///< the memory's clock; 0: the part's own
  Celsius dram_temperature;     ///< stands for its band of refresh and timings
  bool masters = true;
  bool prefill = false;          ///< of that alone, or of decode steps alone
  std::vector<std::string> set;  ///< changes of the scenario that rules made

  auto operator<=>(const WindowState&) const = default;
};

/// Means over a phase.
struct PhaseFigures {
  double picoseconds = 0;        ///< of the whole prefill, or of the mean token
  double compute_share = 0;      ///< of it, cores compute
  double storage_share = 0;      ///< of it, cores wait for storage
  BytesPerSecond read, written;  ///< by all masters
  Watts dram;
};

struct DepthTime {
  std::int64_t depth = 0;
  double picoseconds = 0;
};

struct MasterRate {
  std::string name;
  BytesPerSecond moved;
  std::int64_t due = 0, missed = 0;
};

struct Window {
  PhaseFigures phase;
  std::vector<DepthTime> tokens;  ///< by depth, ascending; none of a prefill
  std::vector<MasterRate> masters;
  double relative_ci = 0;

  /// Of a token at that depth: on the line between those measured.
  [[nodiscard]] double token_picoseconds(std::int64_t depth) const;
};

/// The scenario in that state.
[[nodiscard]] config::RunSpec at_state(const config::RunSpec& spec, const WindowState& state);

/// Measures windows, each in a process of its own (SystemC elaborates once per process), and keeps them.
class WindowTable {
 public:
  /// `spec` outlives the table. No simulation may have run in this process before.
  WindowTable(const config::RunSpec& spec, const std::atomic<bool>* stop)
      : spec_(spec), stop_(stop), children_(stop) {}

  /// Clusters' clocks are measured at some of their operating points only: the slowest, the fastest and up to
  /// three between. At the others a window lies between its neighbours', by the clock's period. Throws
  /// UserError if a run of the state fails or does not fit, Interrupted if `stop` was set.
  [[nodiscard]] const Window& at(const WindowState& state);
  [[nodiscard]] bool knows(const WindowState& state) const { return windows_.contains(state); }
  /// Measures what `at` needs for these states and is not known yet, two windows at a time. Where a processor
  /// would have nothing to do, one of `likely` is begun, for a later call: that changes no result.
  void prepare(const std::vector<WindowState>& states, const std::vector<WindowState>& likely = {});
  /// One token at one depth, in a window that is not kept.
  [[nodiscard]] double token(const WindowState& state, std::int64_t depth);
  [[nodiscard]] std::int64_t measured() const { return measured_; }
  /// The widest interval of the windows, as a share of their times.
  [[nodiscard]] double relative_ci() const;

 private:
  /// Two measured states, the one slower and the other faster than a state in one cluster's clock.
  struct Neighbours {
    WindowState slow, fast;
    double share = 0;  ///< of the way from fast to slow
  };
  /// None if the state is one of those that are measured.
  [[nodiscard]] std::optional<Neighbours> neighbours(const WindowState& state) const;
  /// The measured clocks of a cluster, the slowest first; empty if the device does not say.
  [[nodiscard]] std::vector<Hertz> knots(std::size_t cluster) const;
  /// Adds those that have to be measured for this state.
  void add_missing(const WindowState& state, std::vector<WindowState>& missing) const;
  void measure(const std::vector<WindowState>& states, const std::vector<WindowState>& likely);
  [[nodiscard]] Children::Ticket start(const WindowState& state);
  void look_ahead(const std::vector<WindowState>& likely);

  const config::RunSpec& spec_;
  const std::atomic<bool>* stop_;
  Children children_;
  std::map<WindowState, Window> windows_;
  std::map<WindowState, Children::Ticket> ahead_;  ///< begun, and not asked for yet
  std::int64_t measured_ = 0;
};

}  // namespace kvsim::sim
