// SPDX-License-Identifier: Apache-2.0
// One frame of a trace file: a length and a zstd frame that holds one message. Internal to the codec.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <zstd.h>

namespace kvsim::trace {

/// Not text (so that no tool takes it for it), and damaged by line-end conversion, as PNG's magic number is.
inline constexpr std::string_view kMagic = "\x89KVT\r\n\x1a\n";
inline constexpr std::size_t kLengthBytes = 4;

/// Little-endian, as everything in the file outside Protobuf.
[[nodiscard]] std::array<char, kLengthBytes> to_bytes(std::uint32_t value);
[[nodiscard]] std::uint32_t from_bytes(const std::array<char, kLengthBytes>& bytes);

/// Most bytes the zstd frame of a message can have.
[[nodiscard]] std::size_t max_frame_bytes();

class Compressor {
 public:
  Compressor();
  /// The frame of `message`, length first. Valid until the next call.
  [[nodiscard]] std::string_view frame(std::string_view message);

 private:
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;
  std::string buffer_;
};

class Decompressor {
 public:
  Decompressor();
  /// Sets `message` to what `frame` (without its length) holds; refuses more than kMaxMessageBytes before
  /// making room for it. Returns what is wrong with the frame, or nothing.
  [[nodiscard]] std::string message(std::string_view frame, std::string& message);

 private:
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
};

}  // namespace kvsim::trace
