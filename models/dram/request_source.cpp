// SPDX-License-Identifier: Apache-2.0
#include "models/dram/request_source.h"

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::model {

namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;
constexpr std::size_t kLongestLine = 64;
static_assert(std::endian::native == std::endian::little, "the binary format is read as it lies in memory");

[[noreturn]] void fail(const std::string& path, int error) {
  throw UserError(fmt::format("{}: {}", path, std::generic_category().message(error)));
}

class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path)
      : path_(path.string()), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
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
  int descriptor_;
};

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
      throw UserError(
          fmt::format("{}:{}: longer than any request 'R|W 0xADDRESS'", file_->path(), line_ + 1));
    }
  }

  void parse_line(std::string_view line) {
    check_length(line.size());
    ++line_;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      return;
    }
    std::uint64_t address = 0;
    const bool starts = (line[0] == 'R' || line[0] == 'W') && line.substr(1).starts_with(" 0x");
    const char* end = line.data() + line.size();
    const auto parsed = std::from_chars(line.data() + (starts ? 4 : line.size()), end, address, 16);
    if (!starts || parsed.ec == std::errc::invalid_argument || parsed.ptr != end) {
      throw UserError(fmt::format("{}:{}: '{}' is no request; 'R 0xADDRESS' or 'W 0xADDRESS'", file_->path(),
                                  line_, line));
    }
    if (parsed.ec != std::errc() || address >> 63 != 0) {
      throw UserError(fmt::format("{}:{}: address '{}' has more than 63 bits", file_->path(), line_, line));
    }
    requests_.push_back(pack(address, line[0] == 'W'));
  }

  std::unique_ptr<InputFile> file_;
  std::vector<char> text_;  ///< read, not yet parsed
  bool end_ = false;
  std::uint64_t line_ = 0;
  std::vector<PackedRequest> requests_;
};

}  // namespace

std::unique_ptr<RequestSource> open_requests(const std::filesystem::path& path) {
  Start start{.file = std::make_unique<InputFile>(path), .bytes = std::vector<char>(kBlock)};
  start.bytes.resize(start.file->read(start.bytes));
  const std::string_view text(start.bytes.data(), start.bytes.size());
  // As a binary request these bytes would be an address of 2^60 and more, or a very odd one.
  if (text.starts_with("R 0x") || text.starts_with("W 0x")) {
    return std::make_unique<TextRequests>(std::move(start));
  }
  return std::make_unique<BinaryRequests>(std::move(start));
}

}  // namespace kvsim::model
