// SPDX-License-Identifier: Apache-2.0
// make lessons: measures the tables of scenarios/lessons/*/README.md and prints them in Markdown. An argument
// names one of them: c4.
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/spec/resolve.h"
#include "tests/validation/board.h"
#include "tests/validation/lesson_quality.h"
#include "tests/validation/lesson_run.h"
#include "tests/validation/tier_run.h"

namespace kvsim::testing {
namespace {

constexpr std::array kDepths = {256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr std::array kMaps = {Map::rk3588, Map::row_bank_column, Map::hashed, Map::bank_row_column};
constexpr std::array kLayouts = {"token_major", "head_major", "paged"};
constexpr const char* kWhole = "c2_bank_conflicts/whole_token.yaml";
constexpr const char* kAlone = "c2_bank_conflicts/attention_alone.yaml";

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string cell(const Traffic& t) {
  return fmt::format("{:.1f} % / {:.1f}", 100 * t.conflict, t.gigabytes_per_second);
}

void conflicts(const char* scenario, int streams, const std::function<Traffic(const LessonFigures&)>& part) {
  std::string head = "\n| map | layout |";
  std::string rule = "|---|---|";
  for (const int depth : kDepths) {
    head += fmt::format(" {} |", depth);
    rule += "---|";
  }
  say(head + "\n" + rule);
  for (const Map map : kMaps) {
    for (const char* layout : kLayouts) {
      std::string line = fmt::format("| {} | {} |", name_of(map), layout);
      for (const int depth : kDepths) {
        line += fmt::format(
            " {} |",
            cell(part(measure(
                {.scenario = scenario, .depth = depth, .layout = layout, .map = map, .streams = streams}))));
      }
      say(line);
    }
  }
}

void spot_checks() {
  say("\n### Attention alone, four streams, RK3588's masks, one layer: exact beside auto\n");
  say("| depth | layout | read queue | exact | auto |\n|---|---|---|---|---|");
  for (const int depth : {1024, 16384}) {
    for (const char* layout : {"token_major", "head_major"}) {
      for (const int queue : {64, 8}) {
        LessonPoint point{.scenario = kAlone, .depth = depth, .layout = layout};
        point.changes = {"model.layers=1", fmt::format("device.controller.read_queue={}", queue)};
        const Traffic automatic = measure(point).attention;
        point.fidelity = "exact";
        say(fmt::format("| {} | {} | {} | {} | {} |", depth, layout, queue, cell(measure(point).attention),
                        cell(automatic)));
      }
    }
  }
}

/// The claim speaks of 25.6 GB/s: RK3588 with LPDDR4-3200.
void claimed_part() {
  say("\n### Attention alone and whole token, four streams, with LPDDR4-3200 (25.6 GB/s)\n");
  say("| depth | attention, token-major | attention, head-major | whole token, token-major "
      "|\n|---|---|---|---|");
  for (const int depth : {512, 1024, 2048, 16384}) {
    std::string line = fmt::format("| {} |", depth);
    for (const auto& [scenario, layout] : {std::pair{kAlone, "token_major"}, std::pair{kAlone, "head_major"},
                                           std::pair{kWhole, "token_major"}}) {
      const LessonFigures f = measure({.scenario = scenario,
                                       .depth = depth,
                                       .layout = layout,
                                       .changes = {"device.dram=lpddr4_3200_8gb"}});
      line += " " + cell(scenario == kAlone ? f.attention : f.token) + " |";
    }
    say(line);
  }
}

void c2_checks() {
  say("\n## C2: checks");
  spot_checks();
  claimed_part();
}

void c2() {
  say("\n## C2: row conflicts / GB/s read from DRAM, against depth");
  for (const int streams : {1, 4}) {
    say(fmt::format("\n### Attention alone, {} stream{}", streams, streams > 1 ? "s" : ""));
    conflicts(kAlone, streams, [](const LessonFigures& f) { return f.attention; });
  }
  for (const int streams : {1, 4}) {
    say(fmt::format("\n### Whole token, {} stream{}", streams, streams > 1 ? "s" : ""));
    conflicts(kWhole, streams, [](const LessonFigures& f) { return f.token; });
  }
}

void c3() {
  say("\n## C3: bandwidth as a share of that at depth 256, four streams, RK3588's masks\n");
  say("| depth n | claimed 1/(1 + 0.0015 n) | attention, token-major | attention, head-major | whole token, "
      "token-major | whole token, head-major |\n|---|---|---|---|---|---|");
  std::vector<double> first;
  for (const int depth : kDepths) {
    std::vector<double> speeds;
    for (const char* scenario : {kAlone, kWhole}) {
      for (const char* layout : {"token_major", "head_major"}) {
        const LessonFigures f = measure({.scenario = scenario, .depth = depth, .layout = layout});
        speeds.push_back((scenario == kAlone ? f.attention : f.token).gigabytes_per_second);
      }
    }
    first = first.empty() ? speeds : first;
    std::string line = fmt::format("| {} | {:.2f} |", depth, 1 / (1 + 0.0015 * depth));
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      line += fmt::format(" {:.2f} ({:.1f} GB/s) |", speeds[i] / first[i], speeds[i]);
    }
    say(line);
  }
}

struct Mapping {
  std::string name;
  std::vector<std::string> changes;
};

std::vector<Mapping> mappings() {
  const std::string order = "device.controller.mapping.order=";
  const std::string granule = "device.controller.mapping.channel_granule=";
  return {{"bank-row-column: no bank interleaving", {order + "bank-row-column"}},
          {"row-bank-column, channels change every 64 B", {order + "row-bank-column", granule + "64 B"}},
          {"row-bank-column, every 256 B", {order + "row-bank-column"}},
          {"row-bank-column, every 2 KiB", {order + "row-bank-column", granule + "2 KiB"}},
          {"row-bank-column, every 256 B, XOR hash",
           {order + "row-bank-column", "device.controller.mapping.hash=true"}},
          {"RK3588's masks in units of 4 B", {}}};
}

void c4() {
  say("\n## C4: attention alone at depth 4096: row conflicts / row misses / GB/s read from DRAM\n");
  say("| map | head-major, 1 stream | head-major, 4 streams | token-major, 4 streams |\n|---|---|---|---|");
  const auto row = [](const std::string& name, const char* scenario,
                      const std::vector<std::string>& changes) {
    std::string line = fmt::format("| {} |", name);
    for (const auto& [layout, streams] :
         {std::pair{"head_major", 1}, std::pair{"head_major", 4}, std::pair{"token_major", 4}}) {
      const Traffic t =
          measure(
              {.scenario = scenario, .depth = 4096, .layout = layout, .streams = streams, .changes = changes})
              .attention;
      line += fmt::format(" {:.1f} % / {:.1f} % / {:.1f} |", 100 * t.conflict, 100 * t.miss,
                          t.gigabytes_per_second);
    }
    say(line);
  };
  for (const Mapping& mapping : mappings()) {
    row(mapping.name, "c4_interleaving/sequential_kv.yaml", mapping.changes);
  }
  row("RK3588's masks in units of 1 B", "c4_interleaving/masks_in_bytes.yaml", {});
}

void c6() {
  say("\n## C6: attention at depth 4096, four streams: lines read per vector, time, size of the KV cache\n");
  say("| head_dim | vector | layout | padded to | lines per vector | attention | memory alone | KV cache |\n"
      "|---|---|---|---|---|---|---|---|");
  for (const int head_dim : {80, 88, 128}) {
    for (const char* layout : {"token_major", "head_major"}) {
      for (const int alignment : {1, 64}) {
        LessonPoint point{.scenario = "c6_unaligned_rows/heads_of_88.yaml", .depth = 4096, .layout = layout};
        point.changes = {fmt::format("model.head_dim={}", head_dim),
                         fmt::format("engine.kv_row_alignment={} B", alignment)};
        const LessonFigures f = measure(point);
        point.changes.push_back("device.clusters.0.core.simd_ops_per_cycle=64");
        const double alone = measure(point).attention.milliseconds;
        constexpr double kVectors = 4.0 * 2 * 8 * 4097;  // layers, K and V, KV heads, tokens
        say(fmt::format("| {} | {} B | {} | {} B | {:.2f} | {:.2f} ms | {:.2f} ms | {:.0f} MiB |", head_dim,
                        2 * head_dim, layout, alignment, f.attention.lines / kVectors,
                        f.attention.milliseconds, alone, f.kv_bytes / (1 << 20)));
      }
    }
  }
}

void a8() {
  say("\n## A8: one layer's score matrices, in DRAM or in tiles\n");
  say("| tokens | a head's matrix | all heads' | SRAM | method | DRAM read | written | attention |\n"
      "|---|---|---|---|---|---|---|---|");
  for (const int tokens : {512, 1024, 2048}) {
    for (const char* sram : {"256KiB", "2MiB"}) {
      for (const bool naive : {true, false}) {
        const TileFigures f = measure_tiles({.tokens = tokens, .sram = sram, .naive = naive});
        const double matrix = 2.0 * tokens * tokens / (1 << 20);
        say(fmt::format("| {} | {:.1f} MiB | {:.0f} MiB | {} | {} | {:.0f} MB | {:.0f} MB | {:.1f} ms |",
                        tokens, matrix, 32 * matrix, sram, naive ? "naive" : "tiled", f.read / 1e6,
                        f.written / 1e6, f.milliseconds));
      }
    }
  }
}

void a10() {
  say("\n## A10: N tokens one by one, without a KV cache and with it\n");
  say("| N | KV cache | K and V computed | all N tokens | the last token | DRAM read | K and V | compute "
      "buffer |\n"
      "|---|---|---|---|---|---|---|---|");
  for (const int tokens : {2, 10, 20, 40, 80}) {
    for (const bool cached : {false, true}) {
      const CacheFigures f = measure_cache({.tokens = tokens, .cached = cached});
      say(fmt::format("| {} | {} | {:.0f} | {:.2f} s | {:.0f} ms | {:.1f} GB | {:.2f} MiB | {:.1f} MiB |",
                      tokens, cached ? "kept" : "none", f.computed, f.total / 1e3, f.last, f.read / 1e9,
                      f.kv_bytes / (1 << 20), f.scratch_bytes / (1 << 20)));
    }
  }
}

void tile_columns() {
  say("| SRAM | method | tile | in SRAM | DRAM traffic | attention | MACs alone | waiting for DRAM |\n"
      "|---|---|---|---|---|---|---|---|");
}

void tile_row(const TilePoint& point, const std::string& name) {
  const TileFigures f = measure_tiles(point);
  say(fmt::format("| {} | {} | {} x {} | {:.0f} KiB | {:.0f} MB | {:.2f} ms | {:.2f} ms | {:.2f} ms |",
                  point.sram, name, f.tile_queries, f.tile_keys, f.most / 1024, (f.read + f.written) / 1e6,
                  f.milliseconds, f.mac_bound, f.waiting));
}

void c5() {
  say("\n## C5: one layer's attention of 2048 tokens, against the SRAM of each core\n");
  tile_columns();
  const auto row = tile_row;
  const std::array srams = {"256KiB", "384KiB", "512KiB", "1MiB", "2MiB"};
  for (const char* sram : srams) {
    row({.sram = sram}, "tiled");
    row({.sram = sram, .naive = true}, "naive");
  }
  for (const char* sram : srams) {
    row({.sram = sram, .options = {"--macs", "int8"}}, "tiled, INT8 MACs");
  }
  row({.sram = "256KiB", .options = {"--tile", "128x64", "--oversize", "spill"}}, "tiled, 128 x 64 spilled");
  row({.sram = "1MiB", .options = {"--tile", "128x64"}}, "tiled, 128 x 64 asked for");
  row({.sram = "2MiB", .options = {"--tile", "64x64", "--resident", "1024"}}, "tiled, 1024 keys resident");
  row({.sram = "2MiB", .options = {"--tile", "64x64"}}, "the same, none resident");
  row({.sram = "384KiB", .options = {"--fidelity", "exact"}}, "tiled, DRAM exact");
}

void c7() {
  say("\n## C7: one layer's attention of 2048 tokens, with keys and values kept in SRAM\n");
  tile_columns();
  for (const std::string macs : {"fp16", "int8"}) {
    for (const std::string resident : {"0", "256", "512", "1024", "2048"}) {
      tile_row({.sram = "2MiB", .options = {"--tile", "64x64", "--resident", resident, "--macs", macs}},
               macs + ", " + resident + " resident");
    }
  }
  tile_row({.sram = "1MiB", .options = {"--macs", "int8"}}, "int8, larger tile instead");
  tile_row({.sram = "1MiB", .options = {"--tile", "64x64", "--resident", "1024", "--macs", "int8"}},
           "int8, 1024 resident");
  tile_row({.sram = "384KiB", .options = {"--macs", "int8"}}, "int8, larger tile instead");
  tile_row({.sram = "384KiB", .options = {"--tile", "32x32", "--resident", "256", "--macs", "int8"}},
           "int8, 256 resident");
  for (const std::string resident : {"0", "1024"}) {
    tile_row({.sram = "2MiB", .options = {"--tile", "1x64", "--queries", "1", "--resident", resident}},
             "one query, " + resident + " resident");
  }
}

void loads(const std::string& name, const config::DeviceSpec& device) {
  std::string read = fmt::format("| {} |", name);
  for (const int n : {1, 2, 3, 4}) {
    read += fmt::format(" {:.2f} |", load_bandwidth(device, {.readers = n}).all.count() / 1e9);
  }
  for (const int n : {1, 4}) {
    read += fmt::format(" {:.2f} |", load_bandwidth(device, {.copiers = n}).all.count() / 1e9);
  }
  const double mixed = load_bandwidth(device, {.readers = 2, .copiers = 2}).all.count() / 1e9;
  const double disturbed = load_bandwidth(device, {.readers = 1, .random_readers = 3}).first.count() / 1e9;
  say(read + fmt::format(" {:.2f} | {:.2f} |", mixed, disturbed));
}

void pi5() {
  say("\n## Raspberry Pi 5: GB/s\n");
  say("| | 1 reads | 2 | 3 | 4 | 1 copies | 4 | 2 read, 2 copy | 1 reads beside 3 at random |\n"
      "|---|---|---|---|---|---|---|---|---|");
  say("| measured (llama.cpp #26484) | 9.26 | 13.23 | | 11.59 | 10.22 | 6.19 | | |");
  for (const char* id : {"raspberry_pi_5", "raspberry_pi_5_no_numa"}) {
    config::DeviceSpec device = config::load_device(id);
    loads(id, device);
    config::MemoryControllerSpec& c = device.controller;
    std::tie(c.read_queue, c.write_queue, c.write_high, c.write_low) = std::tuple(8, 8, 6, 2);
    loads(fmt::format("{}, queues of 8", id), device);
  }
}

constexpr std::array kTierLessons = {"c11", "d1", "d2", "d3", "d4", "d5"};

int run(std::string_view wanted) {
  struct Lesson {
    const char* name;
    void (*tell)();
  };
  bool told = false;
  std::vector<std::string_view> names;
  for (const Lesson& lesson : {Lesson{"a8", a8},
                               {"a10", a10},
                               {"c2", c2},
                               {"c2_checks", c2_checks},
                               {"c3", c3},
                               {"c4", c4},
                               {"c5", c5},
                               {"c6", c6},
                               {"c7", c7},
                               {"f1", f1},
                               {"f2", f2},
                               {"f3", f3},
                               {"f4", f4},
                               {"f5", f5},
                               {"f6", f6},
                               {"f8", f8},
                               {"pi5", pi5}}) {
    names.emplace_back(lesson.name);
    if (wanted.empty() || wanted == lesson.name) {
      lesson.tell();
      told = true;
    }
  }
  for (const char* lesson : kTierLessons) {
    names.emplace_back(lesson);
    if (wanted.empty() || wanted == lesson) {
      tell_tier_lesson(lesson, say);
      told = true;
    }
  }
  if (!told) {
    fmt::print(stderr, "lessons: '{}' is none of {}\n", wanted, fmt::join(names, ", "));
  }
  return told ? 0 : 2;
}

}  // namespace
}  // namespace kvsim::testing

int main(int argc, char** argv) {
  try {
    return kvsim::testing::run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "lessons: {}\n", error.what());
    return 1;
  }
}
