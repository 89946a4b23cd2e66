// SPDX-License-Identifier: Apache-2.0
#include "models/dram/request_source.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "configs/error/diagnostics.h"
#include "configs/error/error.h"
#include "configs/error/input_path.h"

namespace kvsim::model {

namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;
constexpr std::size_t kLongestLine = 4096;  // with its comment
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kBlanks = " \t";
static_assert(std::endian::native == std::endian::little, "the binary format is read as it lies in memory");

[[noreturn]] void fail(const std::string& path, int error) {
  throw UserError(fmt::format("{}: {}", path, std::generic_category().message(error)));
}

class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path) : path_(path.string()) {
    refuse_named_pipe(path);
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) {
      fail(path_, errno);
    }
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() { ::close(descriptor_); }

  /// Fills `into` as far as the file goes.
  std::size_t read(std::span<char> into) {
    std::size_t filled = 0;
    while (filled < into.size()) {
      const ::ssize_t got = ::read(descriptor_, into.data() + filled, into.size() - filled);
      if (got < 0 && errno != EINTR) {
        fail(path_, errno);
      }
      if (got == 0) {
        break;
      }
      filled += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return filled;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

int line_number(std::uint64_t line) {
  return static_cast<int>(std::min<std::uint64_t>(line, std::numeric_limits<int>::max()));
}

/// What a reader got of its file to tell the format by.
struct Start {
  std::unique_ptr<InputFile> file;
  std::vector<char> bytes;  ///< a block, or the whole file
};

class BinaryRequests : public RequestSource {
 public:
  explicit BinaryRequests(Start start)
      : file_(std::move(start.file)), first_(start.bytes.size()), block_(kBlock / sizeof(PackedRequest)) {
    std::memcpy(block_.data(), start.bytes.data(), first_);
  }

  std::span<const PackedRequest> next() override {
    const std::size_t bytes = first_ != 0 ? std::exchange(first_, 0) : file_->read(as_chars());
    if (bytes % sizeof(PackedRequest) != 0) {
      throw UserError(fmt::format(
          "{}: {} bytes are left after {} requests of {} bytes; the file is cut, or no binary trace",
          file_->path(), bytes % sizeof(PackedRequest), requests_ + bytes / sizeof(PackedRequest),
          sizeof(PackedRequest)));
    }
    requests_ += bytes / sizeof(PackedRequest);
    return {block_.data(), bytes / sizeof(PackedRequest)};
  }

 private:
  std::span<char> as_chars() {
    return {static_cast<char*>(static_cast<void*>(block_.data())), block_.size() * sizeof(PackedRequest)};
  }

  std::unique_ptr<InputFile> file_;
  std::size_t first_;  ///< bytes of the block that are read already
  std::vector<PackedRequest> block_;
  std::uint64_t requests_ = 0;
};

class TextRequests : public RequestSource {
 public:
  explicit TextRequests(Start start) : file_(std::move(start.file)), text_(std::move(start.bytes)) {}

  std::span<const PackedRequest> next() override {
    requests_.clear();
    while (requests_.empty() && !(end_ && text_.empty())) {
      parse();
      const std::size_t kept = text_.size();
      text_.resize(kept + kBlock);
      const std::size_t got = file_->read(std::span(text_).subspan(kept));
      text_.resize(kept + got);
      end_ = got == 0;
    }
    return requests_;
  }

 private:
  /// Takes all whole lines out of the text; at the end of the file also the last one.
  void parse() {
    std::string_view rest(text_.data(), text_.size());
    while (!rest.empty()) {
      const std::size_t length = rest.find('\n');
      if (length == std::string_view::npos && !end_) {
        check_length(rest.size());
        break;
      }
      parse_line(rest.substr(0, length));
      rest.remove_prefix(length == std::string_view::npos ? rest.size() : length + 1);
    }
    text_.erase(text_.begin(), text_.end() - static_cast<std::ptrdiff_t>(rest.size()));
  }

  void check_length(std::size_t length) const {
    if (length > kLongestLine) {
      fail_at({file_->path(), line_number(line_ + 1), 1},
              fmt::format("a line of more than {} characters, and no request", kLongestLine));
    }
  }

  /// Blank lines and what follows a # say nothing.
  void parse_line(std::string_view line) {
    check_length(line.size());
    ++line_;
    const char* const begin = line.data();
    line = line.substr(0, line.find('#'));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) {
      return;
    }
    const char kind = line[0];
    const bool write = kind == 'W' || kind == 'w';
    if (!write && kind != 'R' && kind != 'r') {
      fail(line.data() - begin, line);
    }
    const std::size_t blanks = std::min(line.find_first_not_of(kBlanks, 1), line.size());
    std::string_view digits = line.substr(blanks);
    if (blanks == 1 || !(digits.starts_with("0x") || digits.starts_with("0X"))) {
      fail(digits.data() - begin, line);
    }
    digits.remove_prefix(2);
    std::uint64_t address = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), address, 16);
    if (parsed.ec == std::errc::invalid_argument || parsed.ptr != digits.data() + digits.size()) {
      fail(parsed.ptr - begin, line);
    }
    if (parsed.ec != std::errc() || address >> 63 != 0) {
      fail_at(at(digits.data() - begin), fmt::format("the address of '{}' has more than 63 bits", line));
    }
    requests_.push_back(pack(address, write));
  }

  [[nodiscard]] SourceLocation at(std::ptrdiff_t column) const {
    return {file_->path(), line_number(line_), static_cast<int>(column) + 1};
  }
  [[noreturn]] void fail(std::ptrdiff_t column, std::string_view line) const {
    constexpr std::size_t kShown = 40;
    std::string shown(line.substr(0, kShown));
    std::ranges::replace_if(
        shown, [](char c) { return c < ' ' || c > '~'; }, '?');
    fail_at(at(column), fmt::format("'{}{}' is no request; a text trace has lines 'R 0xADDRESS' and 'W "
                                    "0xADDRESS', a binary one eight bytes a request",
                                    shown, line.size() > kShown ? "..." : ""));
  }

  std::unique_ptr<InputFile> file_;
  std::vector<char> text_;  ///< read, not yet parsed
  bool end_ = false;
  std::uint64_t line_ = 0;
  std::vector<PackedRequest> requests_;
};

/// The top byte of a binary request is 0: no memory has addresses of 2^55 and more. No text has a 0.
bool is_text(std::span<const char> bytes) {
  const auto first = bytes.first(std::min(bytes.size(), sizeof(PackedRequest)));
  return first.size() < sizeof(PackedRequest) ? std::ranges::find(first, '\0') == first.end()
                                              : first.back() != '\0';
}

}  // namespace

std::unique_ptr<RequestSource> open_requests(const std::filesystem::path& path) {
  Start start{.file = std::make_unique<InputFile>(path), .bytes = std::vector<char>(kBlock)};
  start.bytes.resize(start.file->read(start.bytes));
  if (!is_text(start.bytes)) {
    return std::make_unique<BinaryRequests>(std::move(start));
  }
  if (std::string_view(start.bytes.data(), start.bytes.size()).starts_with(kByteOrderMark)) {
    start.bytes.erase(start.bytes.begin(), start.bytes.begin() + kByteOrderMark.size());
  }
  return std::make_unique<TextRequests>(std::move(start));
}

}  // namespace kvsim::model
