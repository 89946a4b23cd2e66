// SPDX-License-Identifier: Apache-2.0
// Legal commands drawn at random, most of them as early as the rules allow. For the checker's tests: finds
// the earliest clock by going through all that came before, unlike the checker.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "configs/error/test_support.h"
#include "models/dram/legality/rule_table.h"

namespace kvsim::model::legality {

/// A command and what kept it from coming one clock earlier, if that is one thing only.
struct Drawn {
  IssuedCommand command;
  std::string only_reason;                ///< the rule's name; empty: several, or none
  std::optional<std::size_t> pair;        ///< which of the table's pairs that is
  std::optional<std::uint32_t> open_row;  ///< that a read or write is for
};

class RandomTraffic {
 public:
  RandomTraffic(const config::DramPartSpec& part, const Conditions& conditions, std::uint64_t seed);

  [[nodiscard]] Drawn next();
  [[nodiscard]] const RuleTable& table() const { return table_; }

 private:
  enum class Power { up, down, self_refresh };
  struct Bank {
    std::array<std::optional<Cycle>, kCommands> last;
    std::optional<std::uint32_t> row;
    bool refreshed = false;  ///< in the current set
  };
  struct Rank {
    Power power = Power::up;
    std::deque<Cycle> activates;
    double refresh_at = 0;  ///< when the refresh that is due is made at the latest
    double due = 0;
    Cycle slept_at = 0;
    bool owes_refresh = false;
    bool wants_sleep = false;
  };
  struct Burst {
    std::size_t rank;
    Cycle start;
  };
  struct Bound {
    Cycle clock = 0;
    std::vector<std::string> reasons;
    std::optional<std::size_t> pair;

    void raise(Cycle to, const std::string& reason, std::optional<std::size_t> by_pair = std::nullopt);
  };

  [[nodiscard]] bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
  [[nodiscard]] std::size_t any_bank(std::size_t rank);
  [[nodiscard]] bool all_closed(std::size_t rank) const;
  void draw(IssuedCommand& command);
  [[nodiscard]] bool draw_for_refresh(std::size_t rank, IssuedCommand& command);
  [[nodiscard]] bool draw_for_sleep(std::size_t rank, IssuedCommand& command);
  void draw_for_bank(std::size_t bank, IssuedCommand& command);
  [[nodiscard]] bool may_refresh(std::size_t bank) const;
  [[nodiscard]] bool refreshed_together(std::size_t bank, std::size_t other) const;
  [[nodiscard]] bool in_scope(const PairRule& rule, std::size_t from, std::size_t to) const;
  [[nodiscard]] Bound earliest(const IssuedCommand& command) const;
  void bound_by_data(const IssuedCommand& command, Bound& bound) const;
  void apply(const IssuedCommand& command);
  void apply_refresh(const IssuedCommand& command, std::size_t rank);

  config::DramPartSpec part_;
  RuleTable table_;
  Random random_;
  std::vector<Bank> banks_;
  std::vector<Rank> ranks_;
  std::deque<Burst> bursts_;
  std::size_t banks_per_rank_;
  std::size_t banks_in_use_ = 1;  ///< of each rank
  std::size_t last_bank_ = 0;
  std::uint16_t last_refreshed_ = 0;
  Cycle now_ = 0;
};

}  // namespace kvsim::model::legality
