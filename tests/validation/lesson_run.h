// SPDX-License-Identifier: Apache-2.0
// One point of a lesson: a token at some depth, with the KV cache and the memory laid out in some way.
#pragma once

#include <string>
#include <vector>

namespace kvsim::testing {

enum class Map { rk3588, row_bank_column, hashed, bank_row_column };

struct LessonPoint {
  std::string scenario;                ///< below scenarios/lessons
  int depth = 1024;                    ///< tokens
  std::string layout = "token_major";  ///< of the KV cache; paged is with shuffled pages
  Map map = Map::rk3588;
  int streams = 4;
  std::string fidelity = "auto";
  std::vector<std::string> changes{};  ///< further --set
};

struct Traffic {
  double milliseconds = 0;
  double gigabytes_per_second = 0;  ///< read from DRAM
  double lines = 0;                 ///< read from DRAM
  double conflict = 0, miss = 0;    ///< shares of DRAM column commands
};

struct LessonFigures {
  Traffic token;      ///< the whole token
  Traffic attention;  ///< all layers' attention: the KV reads
  double kv_bytes = 0;
};

/// Runs kvsim. Throws std::runtime_error with what it said if it fails.
[[nodiscard]] LessonFigures measure(const LessonPoint& point);

[[nodiscard]] std::string name_of(Map map);

}  // namespace kvsim::testing
