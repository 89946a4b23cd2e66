// SPDX-License-Identifier: Apache-2.0
// Why tokens take longer than they could: each cause by the time that it adds to the ones before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/board/board.h"
#include "sim/soak/states.h"
#include "sim/soak/window.h"

namespace kvsim::sim {

struct SlowdownCause;

/// What a cause adds, and when it did first.
struct CauseCost {
  const char* cause = "";
  double picoseconds = 0;
  Picoseconds first_at;
};

/// Of a token that takes so long.
struct TokenCosts {
  double picoseconds = 0;
  std::vector<CauseCost> causes;
};

class Slowdown {
 public:
  Slowdown(WindowTable& table, const States& states) : table_(table), states_(states) {}

  /// Why a token of that depth takes `picoseconds` in the state that the board is in.
  [[nodiscard]] TokenCosts look(const model::Board& board, std::int64_t depth, double picoseconds);
  /// Such a share of such a token was done.
  void add(const TokenCosts& costs, double share);
  /// The causes that cost more than the windows' interval, the largest first.
  [[nodiscard]] std::vector<SlowdownCause> causes() const;

 private:
  /// What is slower in this state than in the one before it is the cause's.
  struct Stage {
    const char* cause = "";
    WindowState state;
  };
  [[nodiscard]] std::vector<Stage> stages(const model::Board& board) const;

  WindowTable& table_;
  const States& states_;
  std::vector<CauseCost> costs_;
  double all_ = 0;  ///< picoseconds of all tokens
};

}  // namespace kvsim::sim
