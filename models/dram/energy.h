// SPDX-License-Identifier: Apache-2.0
// What DRAM does that costs energy, and what it costs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "configs/units/quantity.h"

namespace kvsim::model {

/// What a rank draws by itself depends on.
enum class Background : std::uint8_t {
  active_standby,     ///< some bank open
  precharge_standby,  ///< all banks closed
  active_power_down,
  precharge_power_down,
  self_refresh,
};
inline constexpr std::size_t kBackgrounds = static_cast<std::size_t>(Background::self_refresh) + 1;

/// Time by state, in the unit of its owner: cycles or picoseconds.
using BackgroundTimes = std::array<std::int64_t, kBackgrounds>;

/// The state of one rank over time. A bank is open from ACT to PRE; of a row that closes by itself the PRE
/// may be told ahead of its time. Times may be told a little out of order: what has been accounted for stays.
class RankBackground {
 public:
  /// A bank opens,
  void open(std::int64_t time) {
    if (open_banks_ == 0 && time > closed_) {
      settle(time);
    }
    ++open_banks_;
  }
  /// and closes.
  void close(std::int64_t time) {
    --open_banks_;
    closed_ = time > closed_ ? time : closed_;
  }
  /// Precondition: whatever closes has closed by `time`.
  void power_down(std::int64_t time) {
    settle(time);
    asleep_ = open_banks_ > 0 ? Background::active_power_down : Background::precharge_power_down;
  }
  void self_refresh(std::int64_t time) {
    settle(time);
    asleep_ = Background::self_refresh;
  }
  void wake(std::int64_t time) {
    settle(time);
    asleep_.reset();
  }

  /// Time in each state from 0 to `until`: their sum is `until`.
  [[nodiscard]] BackgroundTimes times(std::int64_t until) const;

 private:
  /// Accounts for the time up to `time`. Until now the rank is asleep, or a bank is open, or one was until
  /// `closed_`.
  void settle(std::int64_t time);

  int open_banks_ = 0;
  std::int64_t since_ = 0;   ///< accounted for up to here
  std::int64_t closed_ = 0;  ///< when the last bank that closed did
  std::optional<Background> asleep_;
  BackgroundTimes times_{};
};

/// What DRAM did, of one channel or several: commands, and the time of all ranks together by state.
struct DramActivity {
  std::int64_t activates = 0;
  std::int64_t reads = 0;   ///< bursts,
  std::int64_t writes = 0;  ///< masked ones and parts of lines included
  std::int64_t refreshes_all = 0;
  std::int64_t refreshes_bank = 0;
  std::array<Picoseconds, kBackgrounds> background{};

  DramActivity& operator+=(const DramActivity& other);
  bool operator==(const DramActivity&) const = default;
};
[[nodiscard]] DramActivity operator-(const DramActivity& a, const DramActivity& b);

/// What energy goes to: commands, and each state of the background.
enum class EnergyPart : std::uint8_t {
  activate,
  read,
  write,
  refresh,
  active_standby,
  precharge_standby,
  active_power_down,
  precharge_power_down,
  self_refresh,
};
inline constexpr std::size_t kEnergyParts = static_cast<std::size_t>(EnergyPart::self_refresh) + 1;
inline constexpr std::size_t kCommandParts = static_cast<std::size_t>(EnergyPart::refresh) + 1;
[[nodiscard]] std::string_view to_string(EnergyPart part);

/// Energy by part.
struct EnergyAccount {
  std::array<Joules, kEnergyParts> parts{};

  [[nodiscard]] Joules part(EnergyPart p) const { return parts[static_cast<std::size_t>(p)]; }
  [[nodiscard]] Joules commands() const;
  [[nodiscard]] Joules background() const;
  [[nodiscard]] Joules total() const { return commands() + background(); }
};
[[nodiscard]] EnergyAccount energy_of(const config::DramEnergy& energy, const DramActivity& activity);

/// A supply and its figures.
struct Rail {
  std::string_view name;
  config::DramEnergy energy;
};
/// The part's supplies; "total" alone where its source does not split them; none where it has no energy.
[[nodiscard]] std::vector<Rail> rails_of(const config::DramPartSpec& part);

[[nodiscard]] constexpr Watts mean_power(Joules energy, Picoseconds time) {
  return Watts(time > Picoseconds() ? energy.count() / seconds(time) : 0);
}
[[nodiscard]] constexpr double picojoules_per_bit(Joules energy, Bytes moved) {
  return moved > Bytes() ? energy.count() * 1e12 / (moved.as_double() * 8) : 0;
}

}  // namespace kvsim::model
