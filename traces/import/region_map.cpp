// SPDX-License-Identifier: Apache-2.0
#include "traces/import/region_map.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "configs/error/diagnostics.h"
#include "configs/error/error.h"
#include "configs/error/input_path.h"

namespace kvsim::trace {

namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kMostRanges = 1'000'000;
constexpr std::string_view kView = "VIEW";
constexpr std::string_view kOther = "other";
constexpr const char* kColumns =
    "the first line names the columns, kind,start,end and more, and each further line is a range";

}  // namespace

/// Reads the file line by line and keeps what is needed for messages.
class RegionFile {
 public:
  explicit RegionFile(const std::filesystem::path& path) : path_(path.string()) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      throw UserError(fmt::format("{}: is a folder. Give the name of a region file.", path_));
    }
    refuse_named_pipe(path);
    file_.open(path);
    if (!file_) {
      throw UserError(fmt::format("{}: cannot be opened ({}). Give the name of a region file.", path_,
                                  std::generic_category().message(errno)));
    }
  }

  RegionMap read() {
    read_header();
    while (next_line()) {
      if (!line_.empty()) {
        read_range();
      }
    }
    return join();
  }

 private:
  struct Field {
    std::string text;
    std::size_t column = 1;
  };
  struct Entry {
    RegionMap::Range range;
    int line = 0;
    std::size_t column = 1;
  };

  [[noreturn]] void fail(std::size_t column, std::string_view what) const {
    fail_at({path_, line_number_, static_cast<int>(column)}, what);
  }

  bool next_line() {
    line_.clear();
    ++line_number_;
    char c = 0;
    while (file_.get(c) && c != '\n') {
      if (line_.size() == kLongestLine) {
        fail(kLongestLine + 1, fmt::format("the line is longer than {} characters", kLongestLine));
      }
      line_ += c;
    }
    if (line_.ends_with('\r')) {
      line_.pop_back();
    }
    return !line_.empty() || file_.good();
  }

  /// The line's fields; one in quotes may hold commas, and doubled quotes (RFC 4180).
  [[nodiscard]] std::vector<Field> fields() const {
    std::vector<Field> result;
    std::size_t at = 0;
    do {
      Field field{.text = {}, .column = at + 1};
      bool quoted = at < line_.size() && line_[at] == '"';
      at += quoted ? 1 : 0;
      for (; at < line_.size() && (quoted || line_[at] != ','); ++at) {
        if (quoted && line_[at] == '"') {
          if (at + 1 == line_.size() || line_[at + 1] != '"') {
            quoted = false;
            continue;
          }
          ++at;
        }
        field.text += line_[at];
      }
      if (quoted) {
        fail(field.column, "the quote does not end on this line");
      }
      result.push_back(field);
    } while (at++ < line_.size());
    return result;
  }

  void read_header() {
    if (!next_line()) {
      fail(1, fmt::format("is empty; {}", kColumns));
    }
    const std::vector<Field> names = fields();
    const auto find = [&](const char* name) {
      const auto found =
          std::find_if(names.begin(), names.end(), [&](const Field& field) { return field.text == name; });
      return static_cast<std::size_t>(found - names.begin());
    };
    kind_ = find("kind");
    start_ = find("start");
    end_ = find("end");
    bytes_ = find("bytes");
    columns_ = names.size();
    for (const auto& [column, name] :
         {std::pair{kind_, "kind"}, std::pair{start_, "start"}, std::pair{end_, "end"}}) {
      if (column == columns_) {
        fail(1, fmt::format("there is no column '{}'; {}", name, kColumns));
      }
    }
  }

  void read_range() {
    const std::vector<Field> all = fields();
    if (all.size() != columns_) {
      fail(1, fmt::format("the line has {} values, and the first line names {}", all.size(), columns_));
    }
    if (entries_.size() == kMostRanges) {
      fail(1, fmt::format("there are more than {} ranges", kMostRanges));
    }
    const Address begin = number(all[start_], "start");
    const Address end = number(all[end_], "end");
    if (end <= begin) {
      fail(all[end_].column, fmt::format("the range ends at {:#x}, which is not behind its start {:#x}; end "
                                         "is the first byte behind the range",
                                         end, begin));
    }
    if (bytes_ < columns_ && number(all[bytes_], "bytes") != end - begin) {
      fail(all[bytes_].column, fmt::format("{} bytes, but from {:#x} to {:#x} there are {}", all[bytes_].text,
                                           begin, end, end - begin));
    }
    entries_.push_back({.range = {.begin = begin, .end = end, .kind = kind(all[kind_])},
                        .line = line_number_,
                        .column = all[start_].column});
  }

  [[nodiscard]] std::uint64_t number(const Field& field, const char* name) const {
    const bool hex = field.text.starts_with("0x");
    const char* const begin = field.text.data() + (hex ? 2 : 0);
    const char* const end = field.text.data() + field.text.size();
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value, hex ? 16 : 10);
    if (error != std::errc{} || stop != end) {
      fail(field.column,
           fmt::format("{} '{}' is no number below 2^64, decimal or with 0x before it", name, field.text));
    }
    return value;
  }

  KindIndex kind(const Field& field) {
    std::string name = field.text;
    if (name.ends_with(kView)) {
      name.resize(name.size() - kView.size());
    }
    if (name.empty()) {
      fail(field.column,
           field.text.empty() ? "the kind is empty" : "VIEW stands behind no kind; as in KVVIEW");
    }
    const auto found = std::find(kinds_.begin(), kinds_.end(), name);
    if (found != kinds_.end()) {
      return static_cast<KindIndex>(found - kinds_.begin());
    }
    if (kinds_.size() + 1 == kMostRegionKinds) {
      fail(field.column, fmt::format("there are more than {} kinds", kMostRegionKinds - 1));
    }
    kinds_.push_back(name);
    return static_cast<KindIndex>(kinds_.size() - 1);
  }

  /// Ranges by address; of one kind those that overlap or touch are one.
  [[nodiscard]] RegionMap join() {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.range.begin < b.range.begin; });
    RegionMap map;
    map.kinds_ = kinds_;
    const Entry* last = nullptr;  // the one that reaches furthest so far
    for (const Entry& entry : entries_) {
      if (last != nullptr && entry.range.begin < last->range.end && entry.range.kind != last->range.kind) {
        fail_overlap(entry, *last);
      }
      RegionMap::Range* const joined = map.ranges_.empty() ? nullptr : &map.ranges_.back();
      if (joined != nullptr && entry.range.begin <= joined->end && entry.range.kind == joined->kind) {
        joined->end = std::max(joined->end, entry.range.end);
      } else {
        map.ranges_.push_back(entry.range);
      }
      last = last == nullptr || entry.range.end > last->range.end ? &entry : last;
    }
    if (std::find(kinds_.begin(), kinds_.end(), kOther) == kinds_.end()) {
      map.kinds_.emplace_back(kOther);
    } else {
      move_last(map);
    }
    return map;
  }

  /// A kind that the file calls "other" is joined with what is in no range.
  static void move_last(RegionMap& map) {
    const auto other =
        static_cast<KindIndex>(std::find(map.kinds_.begin(), map.kinds_.end(), kOther) - map.kinds_.begin());
    map.kinds_.erase(map.kinds_.begin() + other);
    map.kinds_.emplace_back(kOther);
    std::erase_if(map.ranges_, [&](const RegionMap::Range& range) { return range.kind == other; });
    for (RegionMap::Range& range : map.ranges_) {
      range.kind = static_cast<KindIndex>(range.kind - (range.kind > other ? 1 : 0));
    }
  }

  [[noreturn]] void fail_overlap(const Entry& a, const Entry& b) const {
    const Entry& second = a.line > b.line ? a : b;
    const Entry& first = a.line > b.line ? b : a;
    fail_at({path_, second.line, static_cast<int>(second.column)},
            fmt::format("the range {:#x} to {:#x} of '{}' overlaps one of '{}', {:#x} to {:#x} on line {}; "
                        "only ranges of one kind may overlap",
                        second.range.begin, second.range.end, kinds_[second.range.kind],
                        kinds_[first.range.kind], first.range.begin, first.range.end, first.line));
  }

  std::string path_;
  std::ifstream file_;
  std::string line_;
  int line_number_ = 0;
  std::size_t kind_ = 0;  ///< places of the columns,
  std::size_t start_ = 0;
  std::size_t end_ = 0;
  std::size_t bytes_ = 0;
  std::size_t columns_ = 0;  ///< and their number
  std::vector<std::string> kinds_;
  std::vector<Entry> entries_;
};

RegionMap RegionMap::load(const std::filesystem::path& path) {
  return RegionFile(path).read();
}

RegionMap::Piece RegionMap::piece_at(Address address) const {
  const auto other = static_cast<KindIndex>(kinds_.size() - 1);
  const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                     [](Address at, const Range& range) { return at < range.begin; });
  if (next != ranges_.begin() && address < std::prev(next)->end) {
    return {.kind = std::prev(next)->kind, .end = std::prev(next)->end};
  }
  return next == ranges_.end() ? Piece{.kind = other} : Piece{.kind = other, .end = next->begin};
}

Kind use_of(const std::string& kind) {
  if (kind == "W" || kind == "weights") {
    return Kind::weights;
  }
  if (kind == "KV" || kind == "kv") {
    return Kind::kv;
  }
  return kind == "C" || kind == "compute" || kind == "scratch" ? Kind::scratch : Kind::other;
}

}  // namespace kvsim::trace
