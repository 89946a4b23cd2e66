// SPDX-License-Identifier: Apache-2.0
#include "traces/import/byte_source.h"

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <zlib.h>

#include <fmt/format.h>
#include <zstd.h>

#include "configs/error/error.h"
#include "configs/error/input_path.h"

namespace kvsim::trace {

namespace {

constexpr std::size_t kPackedBytes = 256 << 10;
constexpr std::string_view kGzipMagic = "\x1f\x8b";          // RFC 1952, section 2.3.1
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";  // RFC 8878, section 3.1.1
constexpr const char* kCut = "the compressed data end here in the middle; the file was cut short";

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

/// The file as it is, with a look ahead at its first bytes.
class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(File file) : file_(std::move(file)) {}

  std::size_t read(char* data, std::size_t size) override {
    errno = 0;
    const std::size_t got = std::fread(data, 1, size, file_.get());
    if (std::ferror(file_.get()) != 0) {
      problem_ = fmt::format("cannot be read: {}", std::generic_category().message(errno));
      return 0;
    }
    return got;
  }

 private:
  File file_;
};

/// What the unpackers share: packed bytes in a buffer.
class PackedSource : public ByteSource {
 protected:
  explicit PackedSource(File file) : file_(std::move(file)), packed_(kPackedBytes) {}

  /// Reads the next packed bytes if all were taken. False at the file's end.
  bool refill() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = file_.read(packed_.data(), packed_.size());
      problem_ = file_.problem();
    }
    return begin_ < end_;
  }
  [[nodiscard]] const char* at() const { return packed_.data() + begin_; }
  [[nodiscard]] std::size_t left() const { return end_ - begin_; }
  void take(std::size_t bytes) { begin_ += bytes; }

 private:
  PlainSource file_;
  std::vector<char> packed_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// One gzip member after the other.
class GzipSource final : public PackedSource {
 public:
  explicit GzipSource(File file) : PackedSource(std::move(file)) {
    constexpr int kGzip = 15 + 16;  // the largest window, with a gzip header (zlib.h)
    check(inflateInit2(&stream_, kGzip) == Z_OK, "zlib can be set up");
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  std::size_t read(char* data, std::size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size && problem_.empty()) {
      if (!refill()) {
        problem_ = problem_.empty() && !between_ ? kCut : problem_;
        break;
      }
      inflate_some();
    }
    return size - stream_.avail_out;
  }

 private:
  void inflate_some() {
    // zlib does not write to its input, but takes a pointer that could.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(at()));
    stream_.avail_in = static_cast<uInt>(left());
    between_ = false;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    take(left() - stream_.avail_in);
    if (result == Z_STREAM_END) {
      between_ = true;
      check(inflateReset(&stream_) == Z_OK, "zlib begins anew");
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      problem_ = fmt::format("the gzip data are damaged here: {}",
                             stream_.msg == nullptr ? zError(result) : stream_.msg);
    }
  }

  z_stream stream_{};
  bool between_ = false;  ///< a member has ended and none begun since
};

/// One zstd frame after the other. The library refuses windows above 128 MiB, so memory is bounded.
class ZstdSource final : public PackedSource {
 public:
  explicit ZstdSource(File file)
      : PackedSource(std::move(file)), context_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {
    check(context_ != nullptr, "zstd can be set up");
  }

  std::size_t read(char* data, std::size_t size) override {
    ZSTD_outBuffer out{data, size, 0};
    while (out.pos == 0 && problem_.empty()) {
      // What is left within the decoder comes out without new input.
      if (!refill() && (!problem_.empty() || expected_ == 0 || !full_)) {
        problem_ = problem_.empty() && expected_ != 0 ? kCut : problem_;
        break;
      }
      ZSTD_inBuffer in{at(), left(), 0};
      expected_ = ZSTD_decompressStream(context_.get(), &out, &in);
      take(in.pos);
      full_ = out.pos == out.size;
      if (ZSTD_isError(expected_) != 0U) {
        problem_ = fmt::format("the zstd data are damaged here: {}", ZSTD_getErrorName(expected_));
      }
    }
    return out.pos;
  }

 private:
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::size_t expected_ = 0;  ///< 0: a frame has ended and none begun since
  bool full_ = false;         ///< the last call filled its output: there may be more
};

[[noreturn]] void fail_open(const std::filesystem::path& path, const std::string& why) {
  throw UserError(fmt::format("{}: {}. Give the name of a file that you may read.", path.string(), why));
}

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    fail_open(path, "is a folder");
  }
  refuse_named_pipe(path);
  File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) {
    fail_open(path, fmt::format("cannot be opened ({})", std::generic_category().message(errno)));
  }
  std::string magic(kZstdMagic.size(), '\0');
  magic.resize(std::fread(magic.data(), 1, magic.size(), file.get()));
  if (std::fseek(file.get(), 0, SEEK_SET) != 0) {
    fail_open(path, "is a pipe or a device");
  }
  if (magic == kZstdMagic) {
    return std::make_unique<ZstdSource>(std::move(file));
  }
  if (magic.starts_with(kGzipMagic)) {
    return std::make_unique<GzipSource>(std::move(file));
  }
  return std::make_unique<PlainSource>(std::move(file));
}

}  // namespace kvsim::trace
