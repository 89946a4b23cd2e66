// SPDX-License-Identifier: Apache-2.0
#include "traces/codec/output_file.h"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

namespace fs = std::filesystem;

constexpr int kClosed = -1;
constexpr int kNameTries = 100;

/// Where the bytes shall end up: rename() would replace a symbolic link or a device by a plain file.
fs::path resolve(const fs::path& target) {
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (error == std::errc::filename_too_long) {
    throw UserError(
        fmt::format("cannot write {}: the name is too long. Give a shorter one.", target.string()));
  }
  if (error || !fs::exists(status)) {
    if (fs::is_symlink(fs::symlink_status(target, error))) {
      throw UserError(fmt::format(
          "cannot write {}: it is a symbolic link that leads nowhere. Remove it, or give the name "
          "of a file.",
          target.string()));
    }
    return target;
  }
  if (!fs::is_regular_file(status)) {
    throw UserError(fmt::format(
        "cannot write {}: it exists and is not a regular file. Give the name of a file.", target.string()));
  }
  return fs::canonical(target);
}

std::string advice(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "Create the folder, or write to another place.";
    case ENAMETOOLONG:
      return "Give a shorter name.";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "Free some space, or write to another place.";
    default:
      return "Write to a place where you may.";
  }
}

}  // namespace

OutputFile::OutputFile(fs::path target) : target_(resolve(target)), descriptor_(kClosed) {
  // O_EXCL: never write through a link somebody left under the temporary name.
  for (int i = 0; i < kNameTries && descriptor_ == kClosed; ++i) {
    temporary_ = target_;
    temporary_ += fmt::format(".{}-{}.tmp", ::getpid(), i);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ == kClosed && errno != EEXIST) {
      fail(errno);
    }
  }
  if (descriptor_ == kClosed) {
    fail(EEXIST);
  }
}

OutputFile::~OutputFile() {
  close();
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      fail(errno);
    }
    bytes.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  // Some file systems report a full disk only here.
  if (::fsync(descriptor_) != 0) {
    fail(errno);
  }
  if (::close(std::exchange(descriptor_, kClosed)) != 0) {
    fail(errno);
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail(errno);
  }
  temporary_.clear();
}

void OutputFile::fail(int error) const {
  throw UserError(fmt::format("cannot write {}: {}. {}", target_.string(),
                              std::generic_category().message(error), advice(error)));
}

void OutputFile::close() {
  if (descriptor_ != kClosed) {
    ::close(std::exchange(descriptor_, kClosed));
  }
}

}  // namespace kvsim::trace
