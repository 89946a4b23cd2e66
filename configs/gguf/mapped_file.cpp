// SPDX-License-Identifier: Apache-2.0
#include "configs/gguf/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view why) {
  throw UserError(fmt::format("{}: {}", path.string(), why));
}

/// Closes when it goes out of scope: the mapping stays without it.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (value_ < 0) {
      refuse(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
    }
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int value() const { return value_; }

 private:
  int value_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path);
  struct stat status {};
  if (::fstat(file.value(), &status) != 0) {
    refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    refuse(path, "is no regular file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return;  // nothing can be mapped of it
  }
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (start == MAP_FAILED) {  // NOLINT: the macro casts
    refuse(path, fmt::format("cannot be mapped: {}", std::strerror(errno)));
  }
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace kvsim::config
