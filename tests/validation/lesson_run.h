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

/// Tokens one after the other, with a KV cache or without.
struct CachePoint {
  int tokens = 10;
  bool cached = false;
  std::vector<std::string> changes{};  ///< further --set
};

struct CacheFigures {
  double computed = 0;                     ///< tokens of which K and V were made
  double total = 0, last = 0;              ///< milliseconds of all tokens, and of the last
  double read = 0;                         ///< bytes of DRAM in all decode steps
  double kv_bytes = 0, scratch_bytes = 0;  ///< allocated
};

/// Runs kvsim. Throws std::runtime_error with what it said if it fails.
[[nodiscard]] CacheFigures measure_cache(const CachePoint& point);

/// One layer of Llama 3 8B's attention on RK3588's NPU.
struct TilePoint {
  int tokens = 2048;
  std::string sram;
  bool naive = false;
  std::vector<std::string> options{};  ///< further ones of `kvsim attention`
};

struct TileFigures {
  double milliseconds = 0, mac_bound = 0, waiting = 0;
  double read = 0, written = 0;  ///< bytes of DRAM,
  double most = 0;               ///< and at most in a core's SRAM
  int tile_queries = 0, tile_keys = 0;
  double spilled_tiles = 0, spill_bytes = 0;
};

/// Runs kvsim. Throws std::runtime_error with what it said if it fails.
[[nodiscard]] TileFigures measure_tiles(const TilePoint& point);

}  // namespace kvsim::testing
