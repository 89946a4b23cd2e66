// SPDX-License-Identifier: Apache-2.0
#include "sim/metrics/session.h"

#include <algorithm>
#include <cmath>

#include "configs/error/error.h"
#include "models/storage/storage_device.h"
#include "traces/kv_cache/kv_cache.h"
#include "traces/workload/kv_classes.h"

namespace kvsim::sim {
namespace {

constexpr Bytes kRequest{1 << 20};
constexpr std::int64_t kUnderWay = 4;
constexpr std::int64_t kSector = 512;

std::optional<Picoseconds> transfer_time(model::StorageDevice& device, model::StorageOp op, Bytes bytes) {
  const Bytes whole((bytes.count() + kSector - 1) / kSector * kSector);
  Bytes at;
  Picoseconds now;
  std::int64_t under_way = 0;
  while (at < whole || under_way > 0) {
    while (at < whole && under_way < kUnderWay) {
      const Bytes size = std::min(kRequest, whole - at);
      device.submit({.op = op, .offset = at, .bytes = size, .when = now});
      at += size;
      ++under_way;
    }
    const std::optional<model::StorageCompletion> done = device.next();
    check(done.has_value(), "what is under way ends");
    if (done->status != model::StorageStatus::ok) {
      return std::nullopt;
    }
    now = done->done;
    --under_way;
  }
  return now;
}

double lead(const SessionPoint& point) {
  return (*point.compute - *point.restore).as_double();
}

}  // namespace

Bytes session_bytes(const config::RunSpec& spec, std::int64_t tokens) {
  trace::LlmRun run = trace::llm_run(spec);
  run.workload.prompt = tokens;
  run.workload.generate = 0;
  Bytes sum;
  for (const trace::KvClass& c : trace::kv_classes(run, tokens)) {
    trace::KvCache cache(c.shape, 0, trace::KvPayload::none);
    for (std::int64_t left = tokens; left > 0;) {
      const auto plan = cache.plan(static_cast<std::uint32_t>(std::min(left, c.shape.batch)));
      check(std::holds_alternative<trace::KvPlan>(plan), "the KV cache has room for the prompt");
      cache.apply(std::get<trace::KvPlan>(plan));
      left -= std::get<trace::KvPlan>(plan).tokens;
    }
    sum += bytes_per_token(c.shape) * static_cast<std::int64_t>(cache.counters().resident);
  }
  return sum;
}

std::optional<Picoseconds> save_time(const config::RunSpec& spec, Bytes bytes) {
  model::StorageDevice device(*spec.device.storage, {.seed = static_cast<std::uint64_t>(spec.run.seed)});
  return transfer_time(device, model::StorageOp::write, bytes);
}

std::optional<Picoseconds> restore_time(const config::RunSpec& spec, Bytes bytes) {
  model::StorageDevice device(*spec.device.storage, {.seed = static_cast<std::uint64_t>(spec.run.seed)});
  if (!device.lay_out(Bytes(), bytes)) {
    return std::nullopt;
  }
  return transfer_time(device, model::StorageOp::read, bytes);
}

std::optional<std::int64_t> break_even(const std::vector<SessionPoint>& points) {
  std::optional<std::int64_t> from;
  const SessionPoint* before = nullptr;
  for (const SessionPoint& point : points) {
    if (!point.restore || !point.compute) {
      continue;
    }
    if (lead(point) <= 0) {
      from.reset();
    } else if (!from) {
      const double share = before == nullptr ? 1 : -lead(*before) / (lead(point) - lead(*before));
      const std::int64_t first = before == nullptr ? point.tokens : before->tokens;
      from = first + static_cast<std::int64_t>(std::ceil(share * static_cast<double>(point.tokens - first)));
    }
    before = &point;
  }
  return from;
}

}  // namespace kvsim::sim
