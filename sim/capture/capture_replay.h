// SPDX-License-Identifier: Apache-2.0
// Plays a captured trace on a device: through its caches and DRAM, token by token.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/access_player/access_player.h"
#include "sim/capture/page_map.h"
#include "traces/import/lackey_reader.h"
#include "traces/import/region_map.h"

namespace kvsim::sim {

/// When accesses without time stamps are issued: the core works so long before each, besides what it waits
/// for memory. Each figure is at most kMostWork, with which no trace's time overflows.
struct IssueRule {
  static constexpr double kMostWork = 1e6;  // a million instructions or bytes a second
  std::string text = "asap";                ///< as the user wrote it
  double per_instruction = 0;               ///< picoseconds
  double per_byte = 0;                      ///< picoseconds
};

/// Bytes of one kind of region: touched by the program, and moved between DRAM and the last-level cache. A
/// line counts with the kind of its first byte.
struct ReplayedKind {
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t fill_bytes = 0;
  std::uint64_t write_back_bytes = 0;

  bool operator==(const ReplayedKind&) const = default;
};

/// A token, or the whole trace.
struct ReplayedScope {
  std::optional<std::uint64_t> token{};
  std::uint64_t accesses = 0;
  std::uint64_t instructions = 0;  ///< 0 if the trace has none
  Picoseconds elapsed{};
  model::TimeAccount account{};
  std::array<model::LevelCounts, model::AccessPlayer::kLevels> levels{};
  model::MemoryCounters memory{};
  std::vector<ReplayedKind> kinds{};  ///< by KindIndex
};

struct Replayed {
  ReplayedScope file;
  std::vector<ReplayedScope> tokens;
};

/// One core plays all accesses in order. Caches are empty at the trace's start and keep what they hold from
/// token to token; at each token's start and end the core waits for all it has asked for.
class CaptureReplay {
 public:
  /// `regions` outlives the replay.
  CaptureReplay(const config::DeviceSpec& device, const trace::RegionMap& regions, const IssueRule& issue);

  void take(std::span<const trace::LackeyEvent> events);
  [[nodiscard]] Replayed finish();

 private:
  void take(const trace::LackeyEvent& event);
  void access(const trace::LackeyEvent& event);
  void count_moved();
  void end_scope();

  const trace::RegionMap& regions_;
  IssueRule issue_;
  model::AccessPlayer player_;
  PageMap pages_;
  std::vector<trace::Kind> uses_;  ///< by KindIndex
  bool instructions_seen_ = false;
  std::int64_t instructions_ = 0;  ///< not yet worked off,
  double work_ = 0;                ///< and the picoseconds for them and for bytes
  ReplayedScope scope_;            ///< in hand
  Replayed result_;
  // At its start:
  std::array<model::LevelCounts, model::AccessPlayer::kLevels> levels_{};
  model::MemoryCounters memory_;
  Picoseconds begin_;
};

}  // namespace kvsim::sim
