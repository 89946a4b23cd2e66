// SPDX-License-Identifier: Apache-2.0
#include "models/testing/stream_load.h"

#include <algorithm>
#include <tuple>

#include "configs/error/error.h"
#include "models/testing/fake_memory.h"

namespace kvsim::model::testing {

namespace {

auto numbers(const MemoryCounters& c) {
  return std::tuple(c.read, c.written, c.row_hits, c.row_misses, c.row_conflicts, c.activates, c.refreshes);
}

}  // namespace

bool LoadResult::operator==(const LoadResult& other) const {
  return elapsed == other.elapsed && account == other.account && ends == other.ends &&
         numbers(counters) == numbers(other.counters) && numbers(drained) == numbers(other.drained);
}

LoadResult run_loads(const config::DeviceSpec& device, Granularity granularity,
                     const std::vector<StreamLoad>& loads, CommandLogs* logs, Picoseconds idle) {
  const std::unique_ptr<MemoryPath> made = make_memory_path(device, granularity);
  MemoryPath& path = *made;
  if (logs != nullptr) {
    logs->resize(static_cast<std::size_t>(device.controller.channels));
    for (std::uint32_t channel = 0; channel < logs->size(); ++channel) {
      dynamic_cast<BurstPath&>(path).log_commands(Channel(channel), &(*logs)[channel]);
    }
  }
  std::vector<EngineStream*> streams;
  for (const StreamLoad& load : loads) {
    EngineStream& stream = path.add_stream(load.window);
    stream.begin(Picoseconds());
    for (const Segment& segment : load.segments) {
      stream.push(segment);
    }
    streams.push_back(&stream);
  }
  for (Picoseconds until = path.run(); until != EngineStream::kNever; until = path.run()) {
    for (EngineStream* stream : streams) {
      while (!stream->finished().empty() && stream->finished().front() <= until) {
        stream->finished().pop();
      }
    }
  }
  LoadResult result;
  for (const EngineStream* stream : streams) {
    check(stream->idle(), "every stream is done");
    result.ends.push_back(stream->used_until());
  }
  const auto last = std::max_element(result.ends.begin(), result.ends.end());
  result.elapsed = *last;
  result.account = settle(result.elapsed, path.bus_time(),
                          streams[static_cast<std::size_t>(last - result.ends.begin())]->engine_time());
  result.counters = path.counters();
  result.activity = path.activity(result.elapsed + idle);
  EngineStream& later = *streams.front();
  later.begin(result.elapsed + idle + Picoseconds(1'000'000'000));
  later.push(run_of(0, Bytes(kLineBytes)));
  path.run();
  result.drained = path.counters();
  if (logs != nullptr) {
    for (std::vector<IssuedCommand>& log : *logs) {  // a train is logged whole at its decision
      std::stable_sort(log.begin(), log.end(),
                       [](const IssuedCommand& a, const IssuedCommand& b) { return a.clock < b.clock; });
    }
  }
  return result;
}

StreamWindow wide_window(std::int64_t lines) {
  return {.in_flight = lines, .ahead = 2 * lines, .stores = lines};
}

}  // namespace kvsim::model::testing
