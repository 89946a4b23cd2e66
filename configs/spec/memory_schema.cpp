// SPDX-License-Identifier: Apache-2.0
// Tables of where weights are, and of other programs that read files.
#include "configs/spec/memory_schema.h"

#include <fmt/format.h>

#include "configs/spec/expert_layers.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using namespace kvsim::literals;

constexpr Picoseconds kDay(24LL * 3600 * 1'000'000'000'000);

void check_request(Bytes request, const Place& place) {
  if (request.count() % kDirectBlock.count() != 0) {
    place.error("request",
                fmt::format("{} is not a multiple of {}", to_text(request), to_text(kDirectBlock)));
  }
}

void check_stream(const WeightStream& stream, const Place& place) {
  check_request(stream.request, place);
}

void check_reader(const FileReaderSpec& reader, const Place& place) {
  check_request(reader.request, place);
  if (reader.request > reader.file) {
    place.error("request",
                fmt::format("{} is more than the file, {}", to_text(reader.request), to_text(reader.file)));
  }
}

/// Layers read by the engine have the storage to themselves, and are used as they lie in the file.
void check_streamed(const RunSpec& run, const Place& place) {
  if (!run.device.storage) {
    place.error("memory.weights", "streamed weights need a device.storage to be read from");
  }
  if (run.model.experts) {
    place.error("memory.weights",
                fmt::format("{} is a mixture, of which a token uses few experts: stream those "
                            "(engine.experts.place: streamed)",
                            run.model.name));
  }
  if (run.engine.repack) {
    place.error("engine.repack", "streamed weights are used as they lie in the file: repack: false");
  }
  if (run.engine.kv_tiers) {
    place.error("engine.kv_tiers",
                "streamed weights have the storage to themselves: keep the KV cache in "
                "memory, or weights mapped or anonymous");
  }
}

}  // namespace

void check_memory(const RunSpec& run, const Place& place) {
  const MemorySpec& memory = run.memory;
  if (memory.load == MapLoad::on_demand && memory.weights != WeightBacking::mapped) {
    place.error("memory.load", fmt::format("on_demand is of mapped weights, but memory.weights is {}",
                                           to_text(memory.weights)));
  }
  if (memory.locked > Bytes() && memory.weights == WeightBacking::anonymous) {
    place.error("memory.locked", "is of mapped or streamed weights, but memory.weights is anonymous");
  }
  if (memory.weights == WeightBacking::streamed) {
    check_streamed(run, place);
  } else if (memory.stream != WeightStream{}) {
    place.error("memory.stream",
                fmt::format("is of streamed weights, but memory.weights is {}", to_text(memory.weights)));
  }
  if (run.device.os.readers.empty()) {
    return;
  }
  if (!run.device.storage) {
    place.error("device.os.readers", "programs that read files need a device.storage");
  } else if (run.engine.kv_tiers) {
    place.error("device.os.readers", "a KV cache in tiers has the storage to itself: leave out one of both");
  }
}

template <>
const Schema<FileReaderSpec>& schema<FileReaderSpec>() {
  using T = FileReaderSpec;
  static const Schema<T> kSchema{
      "another program that reads a file with read(), from the storage that holds the model and through the "
      "same page cache",
      {field("name", &T::name, "what it is").by_default(""),
       field("file", &T::file, "size of its file, which lies behind the model's").between(4_KiB, 1024_GiB),
       field("bytes", &T::bytes, "that it reads at a time, as fast as it can").between(4_KiB, 1024_GiB),
       field("every", &T::every, "from one such time to the next; what takes longer goes on without a pause")
           .between(1_us, kDay),
       field("first", &T::first, "first time, after the engine has loaded")
           .between(0_ps, kDay)
           .by_default(0_ps),
       field("request", &T::request, "bytes of each read()").between(4_KiB, 64_MiB).by_default(128_KiB),
       field("order", &T::order,
             "sequential: on from where it stopped, and after the end from the beginning again; random: "
             "anywhere, by run.seed")
           .optional()},
      check_reader};
  return kSchema;
}

template <>
const Schema<WeightStream>& schema<WeightStream>() {
  using T = WeightStream;
  static const Schema<T> kSchema{
      "how streamed weights are read",
      {field("request", &T::request, "largest read, in blocks of 4 KiB").between(4_KiB, 64_MiB).optional(),
       field("in_flight", &T::in_flight, "reads at once, each by a thread of its own")
           .between(1, 256)
           .optional(),
       field(
           "buffers", &T::buffers,
           "layers that memory has room for: the one at work, and those that are read meanwhile; 2 is double "
           "buffering")
           .between(2, 1024)
           .optional()},
      check_stream};
  return kSchema;
}

template <>
const Schema<MemorySpec>& schema<MemorySpec>() {
  using T = MemorySpec;
  static const Schema<T> kSchema{
      "how memory is taken",
      {field("weights", &T::weights,
             "mapped: pages of the model file, which can be dropped; anonymous: a copy in memory "
             "(--no-mmap); streamed: the engine reads one layer past the page cache (O_DIRECT) while it "
             "computes another")
           .optional(),
       field("load", &T::load,
             "of mapped weights that do not fit: populated, read whole and in order beforehand (MAP_POPULATE "
             "and "
             "FADV_SEQUENTIAL, as llama.cpp does); on_demand, read when touched (a plain mmap)")
           .optional(),
       field("locked", &T::locked,
             "weights that never leave memory: of mapped ones the first bytes of the file (mlock), of "
             "streamed ones the first of the layers, then the output matrix; more than there are: all")
           .between(0_B, 1024_GiB)
           .optional(),
       field("stream", &T::stream, "how streamed weights are read").optional()}};
  return kSchema;
}

}  // namespace kvsim::config
