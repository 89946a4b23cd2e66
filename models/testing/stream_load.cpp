// SPDX-License-Identifier: Apache-2.0
#include "models/testing/stream_load.h"

#include <algorithm>
#include <tuple>

#include "configs/error/error.h"

namespace kvsim::model::testing {

namespace {

auto numbers(const MemoryCounters& c) {
  return std::tuple(c.read, c.written, c.row_hits, c.row_misses, c.row_conflicts, c.activates, c.refreshes);
}

}  // namespace

bool LoadResult::operator==(const LoadResult& other) const {
  return elapsed == other.elapsed && path == other.path && ends == other.ends && paths == other.paths &&
         numbers(counters) == numbers(other.counters);
}

LoadResult run_loads(const config::DeviceSpec& device, Granularity granularity,
                     const std::vector<StreamLoad>& loads) {
  MemoryPath path(device, granularity);
  std::vector<LineStream*> streams;
  for (const StreamLoad& load : loads) {
    LineStream& stream = path.add_stream(load.window);
    stream.begin(Picoseconds(), {});
    for (const Segment& segment : load.segments) {
      stream.push(segment);
    }
    streams.push_back(&stream);
  }
  for (Picoseconds until = path.run(); until != LineStream::kNever; until = path.run()) {
    for (LineStream* stream : streams) {
      while (!stream->finished().empty() && stream->finished().front() <= until) {
        stream->finished().pop();
      }
    }
  }
  LoadResult result;
  for (const LineStream* stream : streams) {
    check(stream->idle(), "every stream is done");
    result.ends.push_back(stream->used_until());
    result.paths.push_back(stream->used_path());
  }
  const auto last = std::max_element(result.ends.begin(), result.ends.end());
  result.elapsed = *last;
  result.path = result.paths[static_cast<std::size_t>(last - result.ends.begin())];
  result.counters = path.counters();
  return result;
}

StreamWindow wide_window(std::int64_t lines) { return {.in_flight = lines, .ahead = 2 * lines, .stores = lines}; }

}  // namespace kvsim::model::testing
