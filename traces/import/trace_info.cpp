// SPDX-License-Identifier: Apache-2.0
#include "traces/import/trace_info.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::trace {

using What = LackeyEvent::What;

namespace {

constexpr std::size_t kMostTokens = 65'536;
constexpr std::uint64_t kNoLine = ~std::uint64_t{0};

/// Bits `from` to `to` - 1 of a word; 0 <= from < to <= 64.
std::uint64_t mask_of(std::uint64_t from, std::uint64_t to) {
  return ~std::uint64_t{0} >> (64 - (to - from)) << from;
}

std::uint64_t bits(std::uint64_t word) {
  return static_cast<std::uint64_t>(std::popcount(word));
}

/// Adds what scopes have in common but the distinct.
void add_counts(ScopeInfo& sum, const ScopeInfo& scope) {
  sum.instructions += scope.instructions;
  sum.loads += scope.loads;
  sum.stores += scope.stores;
  sum.modifies += scope.modifies;
  for (std::size_t i = 0; i < sum.kinds.size(); ++i) {
    sum.kinds[i].reads += scope.kinds[i].reads;
    sum.kinds[i].writes += scope.kinds[i].writes;
    sum.kinds[i].read_bytes += scope.kinds[i].read_bytes;
    sum.kinds[i].write_bytes += scope.kinds[i].write_bytes;
  }
}

}  // namespace

TraceInfoCollector::TraceInfoCollector(const RegionMap& regions, std::size_t most_pages)
    : regions_(regions), most_pages_(most_pages), last_lines_(regions.kinds().size()) {
  info_.file.kinds.resize(regions.kinds().size());
  scope_.kinds.resize(regions.kinds().size());
}

void TraceInfoCollector::take(std::span<const LackeyEvent> events) {
  for (const LackeyEvent& event : events) {
    switch (event.what) {
      case What::instruction:
        ++scope_.instructions;
        break;
      case What::load:
        ++scope_.loads;
        access(event);
        break;
      case What::store:
        ++scope_.stores;
        access(event);
        break;
      case What::modify:
        ++scope_.modifies;
        access(event);
        break;
      case What::token_start:
        end_scope();
        scope_.token = event.value;
        break;
      case What::token_end:
        end_scope();
        break;
    }
  }
}

void TraceInfoCollector::access(const LackeyEvent& event) {
  count(event);
  const std::uint64_t all_ones = ~std::uint64_t{0};
  const std::uint64_t read = reads(event.what) ? all_ones : 0;
  const std::uint64_t write = writes(event.what) ? all_ones : 0;
  const Address end = event.value + event.bytes;
  for (Address at = event.value; at < end;) {
    const Address word_end = (at | 63) + 1;
    const Address stop = std::min(word_end == 0 ? end : word_end, end);
    Page& page = page_of(at / kPageBytes);
    const std::size_t word = at % kPageBytes / 64;
    const std::uint64_t mask = mask_of(at % 64, at % 64 + (stop - at));
    page.read[word] |= mask & read;
    page.written[word] |= mask & write;
    at = stop;
  }
}

/// Bytes and accesses by kind.
void TraceInfoCollector::count(const LackeyEvent& event) {
  const Address last = event.value + event.bytes - 1;
  const auto add = [&](KindIndex kind, std::uint64_t bytes, std::uint64_t accesses) {
    KindInfo& info = scope_.kinds[kind];
    const bool read = reads(event.what);
    const bool write = writes(event.what);
    info.reads += read ? accesses : 0;
    info.writes += write ? accesses : 0;
    info.read_bytes += read ? bytes : 0;
    info.write_bytes += write ? bytes : 0;
  };
  const Page& page = page_of(event.value / kPageBytes);
  if (page.kind && last / kPageBytes == page.number) {
    add(*page.kind, event.bytes, 1);
    return;
  }
  std::uint64_t counted = 0;  // a bit for each kind that has the access already
  static_assert(kMostRegionKinds <= 64, "a bit for each kind");
  for (Address at = event.value; at <= last;) {
    const RegionMap::Piece piece = regions_.piece_at(at);
    const Address stop = std::min(piece.end, last + 1);
    const std::uint64_t bit = std::uint64_t{1} << piece.kind;
    add(piece.kind, stop - at, (counted & bit) == 0 ? 1 : 0);
    counted |= bit;
    at = stop;
  }
}

TraceInfoCollector::Page& TraceInfoCollector::page_of(std::uint64_t number) {
  NamedPage& recent = recent_[number % recent_.size()];
  if (recent.number != number) {
    recent = {.number = number, .page = &find_page(number)};
  }
  Page& page = *recent.page;
  if (!page.touched) {
    page.touched = true;
    touched_.push_back(&page);
  }
  return page;
}

TraceInfoCollector::Page& TraceInfoCollector::find_page(std::uint64_t number) {
  const auto found = by_number_.find(number);
  if (found != by_number_.end()) {
    return *found->second;
  }
  if (pages_.size() == most_pages_) {
    throw UserError(fmt::format("the trace touches more than {} pages of {} KiB; cut it into several files",
                                most_pages_, kPageBytes >> 10));
  }
  Page& page = pages_.emplace_back();
  page.number = number;
  const Address begin = number * kPageBytes;
  const RegionMap::Piece piece = regions_.piece_at(begin);
  if (piece.end - begin >= kPageBytes || piece.end == ~Address{0}) {
    page.kind = piece.kind;
  }
  by_number_.emplace(number, &page);
  return page;
}

/// What was touched since the last scope ended is the token's, or lies outside any; and it is the file's.
void TraceInfoCollector::end_scope() {
  const bool is_token = scope_.token.has_value();
  if (is_token && info_.tokens.size() == kMostTokens) {
    throw UserError(fmt::format("the trace has more than {} tokens; cut it into several files", kMostTokens));
  }
  std::fill(last_lines_.begin(), last_lines_.end(), std::array{kNoLine, kNoLine});
  add_counts(info_.file, scope_);
  for (Page* const page : touched_) {
    if (is_token) {
      count_page(*page, page->read, page->written, scope_);
    }
    if (page->before == nullptr) {
      page->before = std::make_unique<std::array<Bits, 2>>();
    }
    for (std::size_t i = 0; i < kWords; ++i) {
      (*page->before)[0][i] |= std::exchange(page->read[i], 0);
      (*page->before)[1][i] |= std::exchange(page->written[i], 0);
    }
    page->touched = false;
  }
  touched_.clear();
  if (is_token) {
    info_.tokens.push_back(std::move(scope_));
  }
  scope_ = {};
  scope_.kinds.resize(regions_.kinds().size());
}

TraceInfo TraceInfoCollector::finish() {
  end_scope();
  std::fill(last_lines_.begin(), last_lines_.end(), std::array{kNoLine, kNoLine});
  for (const Page& page : pages_) {
    count_page(page, (*page.before)[0], (*page.before)[1], info_.file);
  }
  return std::move(info_);
}

/// Adds the distinct bytes and lines of a page.
void TraceInfoCollector::count_page(const Page& page, const Bits& read, const Bits& written,
                                    ScopeInfo& scope) {
  for (std::size_t i = 0; i < kWords; ++i) {
    scope.distinct_lines += (read[i] | written[i]) != 0 ? 1 : 0;
  }
  const Address begin = page.number * kPageBytes;
  for (std::uint64_t at = 0; at < kPageBytes;) {
    RegionMap::Piece piece{.kind = page.kind.value_or(0), .end = ~Address{0}};
    if (!page.kind) {
      piece = regions_.piece_at(begin + at);
    }
    const bool whole = piece.end == ~Address{0} || piece.end - begin >= kPageBytes;
    const std::uint64_t stop = whole ? kPageBytes : piece.end - begin;
    count_piece(piece.kind, page, read, written, {at, stop}, scope.kinds[piece.kind]);
    at = stop;
  }
}

/// Bytes `bounds` of a page are of one kind.
void TraceInfoCollector::count_piece(KindIndex kind, const Page& page, const Bits& read, const Bits& written,
                                     std::array<std::uint64_t, 2> bounds, KindInfo& info) {
  const auto [from, to] = bounds;
  for (std::uint64_t word = from / 64; word * 64 < to; ++word) {
    const std::uint64_t start = word * 64;
    const std::uint64_t mask =
        mask_of(from > start ? from - start : 0, std::min<std::uint64_t>(to - start, 64));
    const std::uint64_t r = read[word] & mask;
    const std::uint64_t w = written[word] & mask;
    if ((r | w) == 0) {
      continue;
    }
    info.distinct_read_bytes += bits(r);
    info.distinct_write_bytes += bits(w);
    auto& [read_line, line] = last_lines_[kind];
    const std::uint64_t here = page.number * kWords + word;
    info.distinct_lines += std::exchange(line, here) != here ? 1 : 0;
    info.distinct_read_lines += r != 0 && std::exchange(read_line, here) != here ? 1 : 0;
    const Address begin = page.number * kPageBytes + start;
    const Address first = begin + static_cast<Address>(std::countr_zero(r | w));
    const Address end = begin + 64 - static_cast<Address>(std::countl_zero(r | w));
    info.begin = info.end == 0 ? first : std::min(info.begin, first);
    info.end = std::max(info.end, end);
  }
}

}  // namespace kvsim::trace
