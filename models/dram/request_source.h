// SPDX-License-Identifier: Apache-2.0
// Raw request streams from files: 64 B reads and writes at an address.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace kvsim::model {

/// A request in eight bytes, as the binary format has it (little-endian there).
using PackedRequest = std::uint64_t;  // address << 1 | is_write

[[nodiscard]] constexpr PackedRequest pack(std::uint64_t address, bool is_write) {
  return address << 1 | (is_write ? 1 : 0);
}

inline constexpr std::int64_t kRequestBytes = 64;

/// Where requests are pulled from, batch by batch.
class RequestSource {
 public:
  RequestSource() = default;
  RequestSource(const RequestSource&) = delete;
  RequestSource& operator=(const RequestSource&) = delete;
  virtual ~RequestSource() = default;

  /// The next requests, valid until the next call; empty at the end.
  [[nodiscard]] virtual std::span<const PackedRequest> next() = 0;
};

/// Opens a trace: lines `R 0xADDR` or `W 0xADDR` (in either case, with blank lines and # comments), or else
/// eight bytes a request, PackedRequest in little-endian. Reads it piece by piece. Throws UserError for what
/// it cannot read.
[[nodiscard]] std::unique_ptr<RequestSource> open_requests(const std::filesystem::path& path);

}  // namespace kvsim::model
