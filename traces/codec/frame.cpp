// SPDX-License-Identifier: Apache-2.0
#include "traces/codec/frame.h"

#include "configs/error/error.h"
#include "traces/codec/header.h"

namespace kvsim::trace {
namespace {

/// Measured: never slower to write than gzip -6 nor larger by more than 5 %; higher levels cost more than
/// they save.
constexpr int kCompressionLevel = 3;

}  // namespace

std::array<char, kLengthBytes> to_bytes(std::uint32_t value) {
  std::array<char, kLengthBytes> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xffU);
    value >>= 8U;
  }
  return bytes;
}

std::uint32_t from_bytes(const std::array<char, kLengthBytes>& bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8U | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

std::size_t max_frame_bytes() {
  return ZSTD_compressBound(kMaxMessageBytes);
}

Compressor::Compressor() : context_(ZSTD_createCCtx(), &ZSTD_freeCCtx) {
  check(context_ != nullptr, "zstd has memory for its context");
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
}

std::string_view Compressor::frame(std::string_view message) {
  check(message.size() <= kMaxMessageBytes, "a trace's message is small enough to be read back");
  buffer_.resize(kLengthBytes + ZSTD_compressBound(message.size()));
  const std::size_t size = ZSTD_compress2(context_.get(), buffer_.data() + kLengthBytes,
                                          buffer_.size() - kLengthBytes, message.data(), message.size());
  check(ZSTD_isError(size) == 0, "zstd compresses into a buffer of ZSTD_compressBound bytes");
  const auto length = to_bytes(static_cast<std::uint32_t>(size));
  buffer_.replace(0, kLengthBytes, length.data(), length.size());
  return std::string_view(buffer_).substr(0, kLengthBytes + size);
}

Decompressor::Decompressor() : context_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {
  check(context_ != nullptr, "zstd has memory for its context");
}

std::string Decompressor::message(std::string_view frame, std::string& message) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    return "the block does not say how large it is";
  }
  if (size > kMaxMessageBytes) {
    return "the block claims " + std::to_string(size) + " bytes, more than a block may have";
  }
  message.resize(size);
  const std::size_t made =
      ZSTD_decompressDCtx(context_.get(), message.data(), message.size(), frame.data(), frame.size());
  if (ZSTD_isError(made) != 0) {
    return std::string("the block does not decompress (") + ZSTD_getErrorName(made) + ")";
  }
  if (made != size) {
    return "the block is shorter than it claims";
  }
  return {};
}

}  // namespace kvsim::trace
