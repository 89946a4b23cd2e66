// SPDX-License-Identifier: Apache-2.0
#include "traces/codec/reader.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/error/input_path.h"
#include "traces/codec/block.h"
#include "traces/codec/frame.h"

namespace kvsim::trace {

struct TraceReader::Impl {
  explicit Impl(std::filesystem::path p) : path(std::move(p)) { open(); }

  void open();
  void read_preamble();
  void read_header();
  bool next(std::vector<Record>& batch);

  /// Bytes read, fewer than asked only at the file's end.
  std::size_t read(char* data, std::size_t size);
  /// Reads the next frame's message into `m`; returns false at the file's end.
  template <class Message>
  bool read_message(Message& m);
  void check_totals();
  [[noreturn]] void damaged(const std::string& what) const;

  std::filesystem::path path;
  std::ifstream file;
  std::uint64_t offset = 0;       // of the next byte
  std::uint64_t frame_start = 0;  // of the frame in hand, for messages
  Decompressor decompressor;
  std::string frame;
  std::string message;
  pb::Block block;
  TraceHeader header;
  std::uint64_t records = 0;
  std::uint64_t blocks = 0;
  bool ended = false;
};

void TraceReader::Impl::damaged(const std::string& what) const {
  throw UserError(fmt::format(
      "{}: byte {}: {}. The file was cut short or changed after it was written; record the trace again.",
      path.string(), frame_start, what));
}

void TraceReader::Impl::open() {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw UserError(fmt::format("{}: is a folder. Give the name of a trace file.", path.string()));
  }
  refuse_named_pipe(path);
  file.open(path, std::ios::binary);
  if (!file) {
    throw UserError(fmt::format("{}: cannot be opened ({}). Give the name of a trace file that you may read.",
                                path.string(), std::generic_category().message(errno)));
  }
  read_preamble();
  read_header();
}

std::size_t TraceReader::Impl::read(char* data, std::size_t size) {
  file.read(data, static_cast<std::streamsize>(size));
  if (file.bad()) {
    throw UserError(fmt::format("{}: byte {}: cannot be read. Check the disk.", path.string(), offset));
  }
  const auto got = static_cast<std::size_t>(file.gcount());
  offset += got;
  return got;
}

void TraceReader::Impl::read_preamble() {
  std::string magic(kMagic.size(), '\0');
  if (read(magic.data(), magic.size()) != magic.size() || magic != kMagic) {
    throw UserError(
        fmt::format("{}: byte 0: is not a kvsim trace. Give a file that `kvsim run --record` has written.",
                    path.string()));
  }
  std::array<char, kLengthBytes> bytes{};
  frame_start = offset;
  if (read(bytes.data(), bytes.size()) != bytes.size()) {
    damaged("the file ends within its format version");
  }
  const std::uint32_t version = from_bytes(bytes);
  if (version == 0) {
    damaged("there is no format version 0");
  }
  if (version > kTraceFormatVersion) {
    throw UserError(
        fmt::format("{}: byte {}: has format version {}, and this kvsim reads up to version {}. Use a newer "
                    "kvsim, or record the trace with this one.",
                    path.string(), frame_start, version, kTraceFormatVersion));
  }
}

void TraceReader::Impl::read_header() {
  pb::Header m;
  if (!read_message(m)) {
    damaged("the file ends before its header");
  }
  header.kvsim_version = m.kvsim_version();
  header.configuration = m.configuration();
  header.seed = m.seed();
  for (const pb::InputFile& input : m.inputs()) {
    header.inputs.push_back({.path = input.path(), .hash = input.hash()});
  }
}

template <class Message>
bool TraceReader::Impl::read_message(Message& m) {
  frame_start = offset;
  std::array<char, kLengthBytes> bytes{};
  const std::size_t got = read(bytes.data(), bytes.size());
  if (got == 0) {
    return false;
  }
  const std::size_t length = from_bytes(bytes);
  if (got == bytes.size() && (length == 0 || length > max_frame_bytes())) {
    damaged(fmt::format("a block of {} bytes, where 1 to {} are possible", length, max_frame_bytes()));
  }
  frame.resize(length);
  if (got != bytes.size() || read(frame.data(), length) != length) {
    damaged("the file ends within a block");
  }
  if (const std::string problem = decompressor.message(frame, message); !problem.empty()) {
    damaged(problem);
  }
  if (!m.ParseFromString(message)) {  // clears `m` first
    damaged("the block does not hold a message");
  }
  return true;
}

bool TraceReader::Impl::next(std::vector<Record>& batch) {
  batch.clear();
  if (ended) {
    return false;
  }
  if (!read_message(block)) {
    damaged("the file ends before its last block");
  }
  if (const std::string problem = decode(block, batch); !problem.empty()) {
    damaged(problem);
  }
  if (block.has_totals()) {
    check_totals();
    ended = true;
    return false;
  }
  if (batch.empty()) {
    damaged("the block is empty");
  }
  records += batch.size();
  ++blocks;
  return true;
}

void TraceReader::Impl::check_totals() {
  if (block.tag_size() != 0 || block.totals().records() != records || block.totals().blocks() != blocks) {
    damaged(fmt::format("the file holds {} records in {} blocks, and its end says {} in {}", records, blocks,
                        block.totals().records(), block.totals().blocks()));
  }
  frame_start = offset;
  char more = 0;
  if (read(&more, 1) != 0) {
    damaged("the file goes on after its end");
  }
}

bool is_recording(const std::filesystem::path& path) {
  refuse_named_pipe(path);
  std::ifstream file(path, std::ios::binary);
  std::string magic(kMagic.size(), '\0');
  return file.read(magic.data(), static_cast<std::streamsize>(magic.size())) && magic == kMagic;
}

TraceReader::TraceReader(std::filesystem::path path) : impl_(std::make_unique<Impl>(std::move(path))) {}

TraceReader::~TraceReader() = default;

const TraceHeader& TraceReader::header() const {
  return impl_->header;
}

bool TraceReader::next(std::vector<Record>& batch) {
  return impl_->next(batch);
}

}  // namespace kvsim::trace
