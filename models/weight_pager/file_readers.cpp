// SPDX-License-Identifier: Apache-2.0
#include "models/weight_pager/file_readers.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"

namespace kvsim::model {
namespace {

/// Of the first program, behind any thread of the engine.
constexpr std::int64_t kFirstLane = 1024;

Bytes whole_pages(Bytes bytes) {
  return Bytes((bytes.count() + kPageBytes - 1) / kPageBytes * kPageBytes);
}

}  // namespace

void FileReaders::add(const std::vector<config::FileReaderSpec>& programs, StorageDevice& device,
                      Bytes behind) {
  for (const config::FileReaderSpec& spec : programs) {
    const Bytes size = whole_pages(spec.file);
    if (behind + size > device.part().capacity || !device.lay_out(behind, size)) {
      throw UserError(fmt::format(
          "device.os.readers: {} of file and what lies before it do not fit on {}, which holds {}",
          to_text(spec.file), device.part().name, to_text(device.part().capacity)));
    }
    programs_.push_back({.spec = spec,
                         .file = cache_.add_file(size, {{.offset = behind, .bytes = size}}),
                         .at = {},
                         .left = spec.bytes,
                         .due = spec.first,
                         .clock = spec.first});
    behind += size;
  }
}

void FileReaders::begin(Picoseconds now) {
  for (Program& program : programs_) {
    program.due = now + program.spec.first;
    program.clock = program.due;
  }
}

Bytes FileReaders::until(Picoseconds now) {
  Bytes read;
  while (!programs_.empty()) {
    const auto next = std::ranges::min_element(programs_, {}, &Program::clock);
    if (next->clock >= now) {
      break;
    }
    read += advance(*next, kFirstLane + (next - programs_.begin()));
  }
  return read;
}

/// One read().
Bytes FileReaders::advance(Program& program, std::int64_t lane) {
  const Bytes bytes = std::min(program.spec.request, program.left);
  const Bytes first = place(program, bytes);
  const Bytes until_end = std::min(bytes, whole_pages(program.spec.file) - first);
  const Touched touched =
      cache_.touch(program.file, first, until_end, {.path = AccessPath::read, .lane = lane}, program.clock);
  check(!touched.failed, "files can be read");
  program.left -= until_end;
  program.clock = touched.done;
  if (program.left == Bytes()) {
    program.left = program.spec.bytes;
    program.due = std::max(program.due + program.spec.every, touched.done);
    program.clock = program.due;
  }
  return touched.read;
}

Bytes FileReaders::place(Program& program, Bytes bytes) {
  const Bytes size = whole_pages(program.spec.file);
  if (program.spec.order == config::FileOrder::random) {
    const std::int64_t places = std::max<std::int64_t>(1, size.count() / bytes.count());
    return bytes * static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(places)));
  }
  const Bytes first = program.at;
  program.at = first + bytes >= size ? Bytes() : first + bytes;
  return first;
}

}  // namespace kvsim::model
