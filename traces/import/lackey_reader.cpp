// SPDX-License-Identifier: Apache-2.0
#include "traces/import/lackey_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "configs/error/diagnostics.h"
#include "configs/error/error.h"
#include "configs/error/input_path.h"

namespace kvsim::trace {

using What = LackeyEvent::What;

namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::size_t kPadding = 16;  ///< behind the last line, so that its first characters can be looked at
constexpr std::size_t kLongestLine = 4096;
constexpr std::ptrdiff_t kHexDigits = 16;
constexpr std::ptrdiff_t kSizeDigits = 6;
constexpr std::uint8_t kNoDigit = 0xff;
constexpr const char* kForms =
    "a line is 'I  HEX,BYTES', ' L HEX,BYTES', ' S HEX,BYTES' or ' M HEX,BYTES' (valgrind --tool=lackey "
    "--trace-mem=yes), or '# token N start' or '# token N end'";

constexpr std::array<std::uint8_t, 256> hex_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 10; ++i) {
    digits[static_cast<std::size_t>('0') + i] = i;
  }
  for (std::uint8_t i = 0; i < 6; ++i) {
    digits[static_cast<std::size_t>('a') + i] = digits[static_cast<std::size_t>('A') + i] =
        static_cast<std::uint8_t>(10 + i);
  }
  return digits;
}
constexpr std::array<std::uint8_t, 256> kHex = hex_digits();

std::uint8_t hex(char c) {
  return kHex[static_cast<unsigned char>(c)];
}

/// What the first three characters say; none if they begin no access or instruction.
std::optional<What> kind_of(const char* line) {
  if (line[0] == 'I' && line[1] == ' ' && line[2] == ' ') {
    return What::instruction;
  }
  if (line[0] != ' ' || line[2] != ' ') {
    return std::nullopt;
  }
  switch (line[1]) {
    case 'L':
      return What::load;
    case 'S':
      return What::store;
    case 'M':
      return What::modify;
    default:
      return std::nullopt;
  }
}

/// The event of a line that ends with a newline and is as the format has it; returns behind the newline, or
/// null.
const char* parse_access(const char* line, LackeyEvent& event) {
  const std::optional<What> what = kind_of(line);
  if (!what) {
    return nullptr;
  }
  const char* at = line + 3;
  std::uint64_t address = 0;
  for (std::uint8_t digit = 0; (digit = hex(*at)) != kNoDigit; ++at) {
    address = address << 4 | digit;
  }
  const std::ptrdiff_t digits = at - (line + 3);
  if (digits == 0 || digits > kHexDigits || *at != ',') {
    return nullptr;
  }
  const char* const size_at = ++at;
  std::uint32_t bytes = 0;
  for (; *at >= '0' && *at <= '9' && at - size_at < kSizeDigits; ++at) {
    bytes = bytes * 10 + static_cast<std::uint32_t>(*at - '0');
  }
  at += *at == '\r' ? 1 : 0;
  if (*at != '\n' || bytes == 0 || bytes > kMostAccessBytes ||
      address > std::numeric_limits<std::uint64_t>::max() - bytes) {
    return nullptr;
  }
  event = {.value = address, .bytes = bytes, .what = *what};
  return at + 1;
}

/// A piece of the user's text that is fit for a message.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result(text.substr(0, kMost));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kMost ? result + "..." : result;
}

/// Valgrind's own messages: "==PID== ...", "--PID-- ...", "**PID** ...".
bool is_message(std::string_view line) {
  const std::string_view mark = line.substr(0, 2);
  if (mark != "==" && mark != "--" && mark != "**") {
    return false;
  }
  const std::size_t end = line.find_first_not_of("0123456789", 2);
  return end != std::string_view::npos && end > 2 && line.substr(end, 2) == mark;
}

}  // namespace

LackeyReader::LackeyReader(const std::filesystem::path& path)
    : path_(path.string()), source_(open_bytes(path)), buffer_(kBufferBytes + kPadding) {}

bool LackeyReader::next(std::vector<LackeyEvent>& batch) {
  batch.clear();
  while (batch.empty()) {
    refill();
    const char* const from = buffer_.data() + begin_;
    const void* const newline = memrchr(from, '\n', end_ - begin_);
    if (newline != nullptr) {
      parse(batch, static_cast<const char*>(newline) + 1);
    } else if (end_ - begin_ > kLongestLine) {
      ++lines_;
      fail(kLongestLine + 1, fmt::format("the line is longer than {} characters; {}", kLongestLine, kForms));
    } else if (source_ended_) {
      break;
    }
  }
  if (!batch.empty()) {
    return true;
  }
  if (lines_ == 0) {
    throw UserError(fmt::format("{}: is empty; {}", path_, kForms));
  }
  if (token_) {
    fail(1, fmt::format("the trace ends within token {}, which starts on line {}; it was cut short", *token_,
                        token_line_));
  }
  return false;
}

/// Fills the buffer behind what is left of the last line. A last line without its newline gets one.
void LackeyReader::refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (!source_ended_ && end_ < kBufferBytes) {
    const std::size_t got = source_->read(buffer_.data() + end_, kBufferBytes - end_);
    end_ += got;
    if (got != 0) {
      continue;
    }
    source_ended_ = true;
    if (!source_->problem().empty()) {
      lines_ += static_cast<std::uint64_t>(std::count(buffer_.data(), buffer_.data() + end_, '\n')) + 1;
      const void* const newline = memrchr(buffer_.data(), '\n', end_);
      const char* const line = newline == nullptr ? buffer_.data() : static_cast<const char*>(newline) + 1;
      fail(static_cast<std::size_t>(buffer_.data() + end_ - line) + 1, source_->problem());
    }
    if (end_ > 0 && buffer_[end_ - 1] != '\n') {
      buffer_[end_++] = '\n';  // in the padding if need be
    }
  }
}

/// All lines up to `end`, which is behind a newline.
void LackeyReader::parse(std::vector<LackeyEvent>& batch, const char* end) {
  const char* at = buffer_.data() + begin_;
  while (at != end) {
    ++lines_;
    LackeyEvent event;
    if (const char* const next = parse_access(at, event)) {
      batch.push_back(event);
      at = next;
      continue;
    }
    const auto* const newline =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    other_line(batch, {at, static_cast<std::size_t>(newline - at)});
    at = newline + 1;
  }
  begin_ = static_cast<std::size_t>(end - buffer_.data());
}

void LackeyReader::other_line(std::vector<LackeyEvent>& batch, std::string_view line) {
  if (line.size() > kLongestLine) {
    fail(kLongestLine + 1, fmt::format("the line is longer than {} characters; {}", kLongestLine, kForms));
  }
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  if (line.starts_with("# token")) {
    token_line(batch, line);
    return;
  }
  // Blank lines, comments, and the starts of superblocks (--trace-superblocks=yes).
  if (line.empty() || line.starts_with('#') || line.starts_with("SB ") || is_message(line)) {
    return;
  }
  if (line.size() >= 3 && kind_of(line.data())) {
    refuse_access(line);
  }
  fail(1, fmt::format("'{}' is no line of a lackey trace; {}", shown(line), kForms));
}

void LackeyReader::token_line(std::vector<LackeyEvent>& batch, std::string_view line) {
  constexpr std::string_view kBegin = "# token ";
  std::uint64_t number = 0;
  const char* const end = line.data() + line.size();
  const char* const digits = line.data() + std::min(kBegin.size(), line.size());
  const auto [stop, error] = std::from_chars(digits, end, number);
  const std::string_view rest(stop, static_cast<std::size_t>(end - stop));
  const bool starts = rest == " start";
  if (!line.starts_with(kBegin) || error != std::errc{} || (!starts && rest != " end")) {
    fail(1, fmt::format("'{}' is neither '# token N start' nor '# token N end' with a number N below 2^64",
                        shown(line)));
  }
  if (starts && token_) {
    fail(1, fmt::format("token {} starts within token {}, which starts on line {}", number, *token_,
                        token_line_));
  }
  if (!starts && token_ != number) {
    fail(1, token_ ? fmt::format("token {} ends within token {}, which starts on line {}", number, *token_,
                                 token_line_)
                   : fmt::format("token {} ends, but has not started", number));
  }
  token_ = starts ? std::optional(number) : std::nullopt;
  token_line_ = lines_;
  batch.push_back({.value = number, .bytes = 0, .what = starts ? What::token_start : What::token_end});
}

/// Says what is wrong with a line that begins as an access.
void LackeyReader::refuse_access(std::string_view line) const {
  const std::size_t comma = std::min(line.find_first_not_of("0123456789abcdefABCDEF", 3), line.size());
  const std::string_view address = line.substr(3, comma - 3);
  if (address.empty() || comma == line.size() || line[comma] != ',') {
    fail(comma + 1, fmt::format("the address is hexadecimal digits and a comma behind them; {}", kForms));
  }
  if (address.size() > static_cast<std::size_t>(kHexDigits)) {
    fail(4, fmt::format("address '{}' has more than {} digits", shown(address), kHexDigits));
  }
  const std::string_view size = line.substr(comma + 1);
  std::uint32_t bytes = 0;
  const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
  if (error != std::errc{} || stop != size.data() + size.size() || bytes == 0 || bytes > kMostAccessBytes ||
      size.size() > static_cast<std::size_t>(kSizeDigits)) {
    fail(comma + 2,
         fmt::format("size '{}' is not a whole number of bytes from 1 to {}", shown(size), kMostAccessBytes));
  }
  fail(4, fmt::format("{} bytes at address {} reach beyond the end of the address space", bytes, address));
}

void LackeyReader::fail(std::size_t column, std::string_view what) const {
  const auto line = std::min<std::uint64_t>(lines_, std::numeric_limits<int>::max());
  fail_at({path_, static_cast<int>(line), static_cast<int>(column)}, what);
}

bool looks_like_lackey(const std::filesystem::path& path) {
  refuse_named_pipe(path);
  std::ifstream file(path, std::ios::binary);
  std::array<char, 7> first{};
  file.read(first.data(), first.size());
  const std::string_view start(first.data(), static_cast<std::size_t>(file.gcount()));
  return start.starts_with("\x1f\x8b") || start.starts_with("\x28\xb5\x2f\xfd") || start == "# token" ||
         start.starts_with("==") || (start.size() >= 3 && kind_of(start.data()));
}

}  // namespace kvsim::trace
