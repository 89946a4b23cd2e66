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

/// A part of a token, in the state that the board was in when it was done.
struct TokenPart {
  const model::Board& board;
  std::vector<std::string> settings;
  std::int64_t depth = 0;
  double share = 0;        ///< of the token
  double picoseconds = 0;  ///< that the whole token takes in that state
};

class Slowdown {
 public:
  Slowdown(WindowTable& table, const States& states) : table_(table), states_(states) {}

  void add(const TokenPart& part);
  /// The causes that cost anything, the largest first.
  [[nodiscard]] std::vector<SlowdownCause> causes() const;

 private:
  struct Cost {
    std::string cause;
    double picoseconds = 0;
    Picoseconds first_at;
  };

  void charge(const std::string& cause, double picoseconds, Picoseconds at);

  WindowTable& table_;
  const States& states_;
  std::vector<Cost> costs_;
  double all_ = 0;  ///< picoseconds of all tokens
};

}  // namespace kvsim::sim
