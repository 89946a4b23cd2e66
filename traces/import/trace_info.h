// SPDX-License-Identifier: Apache-2.0
// What a trace touches: accesses, distinct bytes and lines by region, for the file and for each token.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "traces/import/lackey_reader.h"
#include "traces/import/region_map.h"

namespace kvsim::trace {

inline constexpr std::uint64_t kInfoLineBytes = 64;

/// Of the bytes of one kind. An access that lies in two kinds counts in both, with its bytes in each; so does
/// a line.
struct KindInfo {
  std::uint64_t reads = 0;   ///< accesses that read
  std::uint64_t writes = 0;  ///< and that write; a modify does both
  std::uint64_t read_bytes = 0;
  std::uint64_t write_bytes = 0;
  std::uint64_t distinct_read_bytes = 0;
  std::uint64_t distinct_write_bytes = 0;
  std::uint64_t distinct_read_lines = 0;
  std::uint64_t distinct_lines = 0;  ///< read or written
  Address begin = 0;                 ///< of the span touched,
  Address end = 0;                   ///< 0 if nothing was

  bool operator==(const KindInfo&) const = default;
};

/// Of the file or of one token.
struct ScopeInfo {
  std::optional<std::uint64_t> token{};  ///< its number in the trace
  std::uint64_t instructions = 0;
  std::uint64_t loads = 0;
  std::uint64_t stores = 0;
  std::uint64_t modifies = 0;
  std::uint64_t distinct_lines = 0;
  std::vector<KindInfo> kinds{};  ///< by KindIndex

  [[nodiscard]] std::uint64_t accesses() const { return loads + stores + modifies; }
  bool operator==(const ScopeInfo&) const = default;
};

struct TraceInfo {
  ScopeInfo file;
  std::vector<ScopeInfo> tokens;  ///< in the order of the file
};

/// Takes a trace batch by batch. Memory is a bit for each byte of the pages touched, for reads and for
/// writes, of the token in hand and of the file: half of those pages at most.
class TraceInfoCollector {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;
  static constexpr std::size_t kMostPages = std::size_t{1} << 21;  ///< 8 GiB of them

  /// `regions` outlives the collector.
  explicit TraceInfoCollector(const RegionMap& regions, std::size_t most_pages = kMostPages);

  /// Throws UserError if the trace touches more than `most_pages`, or has more than 65,536 tokens.
  void take(std::span<const LackeyEvent> events);
  [[nodiscard]] TraceInfo finish();

 private:
  static constexpr std::size_t kWords = kPageBytes / 64;  ///< a word is the 64 bytes of a line
  using Bits = std::array<std::uint64_t, kWords>;

  struct Page {
    std::uint64_t number = 0;
    std::optional<KindIndex> kind;  ///< of all its bytes, if they are of one
    bool touched = false;           ///< in this scope
    Bits read{};                    ///< in this scope
    Bits written{};
    std::unique_ptr<std::array<Bits, 2>> before{};  ///< in the scopes before
  };
  struct NamedPage {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };

  void access(const LackeyEvent& event);
  void count(const LackeyEvent& event);
  Page& page_of(std::uint64_t number);
  Page& find_page(std::uint64_t number);
  void end_scope();
  void count_page(const Page& page, const Bits& read, const Bits& written, ScopeInfo& scope);
  void count_piece(KindIndex kind, const Page& page, const Bits& read, const Bits& written,
                   std::array<std::uint64_t, 2> bounds, KindInfo& info);

  const RegionMap& regions_;
  std::size_t most_pages_;
  TraceInfo info_;
  ScopeInfo scope_;
  std::deque<Page> pages_;
  std::unordered_map<std::uint64_t, Page*> by_number_;
  std::array<NamedPage, 256> recent_{};
  std::vector<Page*> touched_;
  /// The last line counted of each kind, read and at all, so that one in two pieces counts once.
  std::vector<std::array<std::uint64_t, 2>> last_lines_;
};

}  // namespace kvsim::trace
