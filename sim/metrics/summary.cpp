// SPDX-License-Identifier: Apache-2.0
#include "sim/metrics/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "models/os_memory/memory_ledger.h"
#include "sim/metrics/human.h"
#include "sim/metrics/notes.h"
#include "sim/run/in_memory.h"
#include "sim/run/tiered_kv.h"
#include "traces/workload/memory_layout.h"

namespace kvsim::sim {

using model::Owner;
using trace::Phase;

namespace {

std::vector<const StepResult*> steps_of(const RunRecord& record, Phase phase) {
  std::vector<const StepResult*> steps;
  for (const StepResult& step : record.steps) {
    if (step.mark.phase == phase) {
      steps.push_back(&step);
    }
  }
  return steps;
}

Measurement sum_of(const std::vector<const StepResult*>& steps) {
  Measurement sum;
  for (const StepResult* step : steps) {
    sum += step->total;
  }
  return sum;
}

/// Nearest-rank percentile of sorted values.
Picoseconds percentile(const std::vector<Picoseconds>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

Percentiles percentiles_of_steps(const std::vector<const StepResult*>& steps) {
  std::vector<Picoseconds> times;
  for (const StepResult* step : steps) {
    times.push_back(time_of(*step));
  }
  return percentiles_of(std::move(times));
}

/// 0, 512, 1024, 2048, ... and the last depth, as far as a step ran there.
std::vector<DepthSpeed> speeds_of(const RunRecord& record) {
  std::vector<DepthSpeed> speeds;
  std::int64_t last = 0;
  for (const StepResult& step : record.steps) {
    last = step.mark.phase == Phase::decode ? std::max<std::int64_t>(last, step.mark.depth) : last;
  }
  const auto shown = [&](std::int64_t depth) {
    return depth == 0 || depth == last || (depth >= 512 && (depth & (depth - 1)) == 0);
  };
  for (const StepResult& step : record.steps) {
    const bool one_token = step.mark.phase == Phase::decode || step.mark.phase == Phase::probe;
    if (one_token && shown(step.mark.depth)) {
      speeds.push_back({.depth = step.mark.depth, .tokens_per_second = 1 / seconds(time_of(step))});
    }
  }
  std::sort(speeds.begin(), speeds.end(),
            [](const DepthSpeed& a, const DepthSpeed& b) { return a.depth < b.depth; });
  return speeds;
}

std::vector<BreakdownPart> breakdown_of(const Measurement& sum) {
  struct Name {
    Owner owner;
    const char* part;
    const char* text;
  };
  static constexpr Name kNames[] = {
      {Owner::weights, "weights", "weights (data beats)"},
      {Owner::kv_read, "kv_read", "KV read (data beats)"},
      {Owner::kv_write, "kv_write", "KV write (data beats)"},
      {Owner::other_data, "other_traffic", "other traffic (data beats)"},
      {Owner::masters, "other_masters", "other masters (data beats)"},
      {Owner::compute, "compute", "compute not hidden"},
      {Owner::row, "row_conflicts", "row misses and conflicts"},
      {Owner::refresh, "refresh", "refresh"},
      {Owner::turnaround, "turnaround", "read/write and rank turnaround"},
      {Owner::queue, "queue", "waiting in queues"},
      {Owner::latency, "latency", "access latency not hidden"},
      {Owner::barrier, "barrier", "threads meeting"},
      {Owner::storage, "storage", "waiting for storage"},
  };
  static_assert(std::size(kNames) == model::kOwners);
  std::vector<BreakdownPart> parts;
  for (const Name& name : kNames) {
    parts.push_back(
        {.part = name.part, .text = name.text, .share = sum.part(name.owner) / sum.picoseconds()});
  }
  return parts;
}

struct RowShares {
  double hit, miss, conflict;
};

RowShares row_shares(const Measurement& m) {
  const double commands = std::max(1.0, m.row_hits() + m.row_misses() + m.row_conflicts());
  return {m.row_hits() / commands, m.row_misses() / commands, m.row_conflicts() / commands};
}

std::vector<OperatorFigures> operators_of(const RunRecord& record) {
  std::vector<OperatorFigures> operators;
  for (std::size_t i = 0; i < record.decode_operators.size(); ++i) {
    const Measurement& m = record.decode_operators[i];
    if (m.picoseconds() > 0) {
      const RowShares rows = row_shares(m);
      operators.push_back({.name = std::string(to_string(static_cast<trace::Operator>(i))),
                           .time = Picoseconds(std::llround(m.picoseconds())),
                           .read = Bytes(std::llround(m.bytes_read())),
                           .written = Bytes(std::llround(m.bytes_written())),
                           .row_hit = rows.hit,
                           .row_miss = rows.miss,
                           .row_conflict = rows.conflict});
    }
  }
  return operators;
}

/// Without a cache each step computes all tokens so far, so the longest has each of them once.
KvComputations kv_computations_of(const config::RunSpec& spec, const RunRecord& record) {
  KvComputations of;
  std::int64_t longest = 0;
  for (const StepResult& step : record.steps) {
    if (step.mark.phase == Phase::prefill || step.mark.phase == Phase::decode) {
      of.made += step.mark.tokens;
      longest = std::max<std::int64_t>(longest, step.mark.tokens);
    }
  }
  of.with_cache = spec.engine.kv_cache == config::KvCacheUse::recomputed ? longest : of.made;
  return of;
}

Speed speed_of(const config::RunSpec& spec, const RunRecord& record) {
  const auto prefill = steps_of(record, Phase::prefill);
  const auto decode = steps_of(record, Phase::decode);
  Speed speed;
  double prompt = 0;
  for (const StepResult* step : prefill) {
    speed.time_to_first_token += time_of(*step);
    prompt += step->mark.tokens;
  }
  if (speed.time_to_first_token > Picoseconds()) {
    speed.prefill_tokens_per_second = prompt / seconds(speed.time_to_first_token);
  }
  double time = 0;
  double simulated = 0;
  double half_width = 0;
  for (const StepResult& step : record.steps) {
    time += step.total.picoseconds();
    simulated += step.simulated;
    half_width += step.half_width;  // the steps share their samples, so their errors add up
  }
  speed.simulated_share = time > 0 ? std::min(1.0, simulated / time) : 1;
  speed.relative_ci = time > 0 ? half_width / time : 0;
  speed.target_reached = speed.relative_ci <= spec.run.relative_error;
  speed.kv_computations = kv_computations_of(spec, record);
  speed.decode = speeds_of(record);
  if (decode.empty()) {
    return speed;
  }
  const Measurement sum = sum_of(decode);
  const double elapsed = sum.picoseconds() / kPicosecondsPerSecond;
  speed.inter_token = percentiles_of_steps(decode);
  speed.breakdown = breakdown_of(sum);
  speed.storage = storage_figures(spec, record, sum);
  speed.read = BytesPerSecond(sum.bytes_read() / elapsed);
  speed.written = BytesPerSecond(sum.bytes_written() / elapsed);
  const RowShares rows = row_shares(sum);
  speed.row_hit = rows.hit;
  speed.row_miss = rows.miss;
  speed.row_conflict = rows.conflict;
  speed.operators = operators_of(record);
  Bytes bytes;
  for (const StepResult* step : decode) {
    bytes += step->model_bytes;
  }
  const auto tokens = static_cast<double>(decode.size());
  speed.energy = phase_energy(spec.device, sum);
  speed.energy_per_token = speed.energy ? speed.energy->account.total() / tokens : Joules();
  speed.bytes_per_token = bytes / static_cast<std::int64_t>(decode.size());
  speed.roofline_tokens_per_second = peak_bandwidth(spec.device).count() / (bytes.as_double() / tokens);
  speed.mean_tokens_per_second = tokens / elapsed;
  return speed;
}

}  // namespace

Percentiles percentiles_of(std::vector<Picoseconds> times) {
  std::sort(times.begin(), times.end());
  return {.p50 = percentile(times, 0.5),
          .p95 = percentile(times, 0.95),
          .p99 = percentile(times, 0.99),
          .max = times.back()};
}

/// What was simulated of operators tells how the ranks' time divides over the states; there was as much of it
/// as the steps took, threads' meetings included.
std::optional<DramEnergyFigures> phase_energy(const config::DeviceSpec& device, const Measurement& sum) {
  model::DramActivity activity = sum.activity();
  double measured = 0;
  for (const Picoseconds time : activity.background) {
    measured += time.as_double();
  }
  const auto ranks = static_cast<double>(device.controller.channels * device.controller.ranks);
  for (Picoseconds& time : activity.background) {
    time =
        Picoseconds(measured > 0 ? std::llround(time.as_double() / measured * ranks * sum.picoseconds()) : 0);
  }
  return dram_energy(device.dram, activity, Picoseconds(std::llround(sum.picoseconds())),
                     Bytes(std::llround(sum.bytes_read() + sum.bytes_written())));
}

Picoseconds time_of(const StepResult& step) {
  return Picoseconds(std::llround(step.total.picoseconds()));
}

std::int64_t max_context(const config::RunSpec& spec) {
  const trace::LlmRun run = trace::llm_run(spec);
  const auto fits = [&](std::int64_t tokens) {
    model::MemoryLedger ledger(spec.device.os, dram_capacity(spec.device));
    for (const config::MasterUse& use : spec.device.masters) {
      if (ledger.allocate({.address = 0,
                           .bytes = config::buffer_bytes(use.master),
                           .backing = trace::Backing::device_contiguous})) {
        return false;
      }
    }
    for (const trace::Allocation& a : trace::allocations(run, tokens)) {
      const trace::Alloc alloc{
          .address = 0, .bytes = a.bytes, .kind = a.kind, .backing = a.backing, .name = a.name};
      if (is_tiered(spec, alloc) && !file_fits(spec, alloc)) {
        return false;
      }
      for (const trace::Alloc& part : in_memory(spec, alloc)) {
        if (ledger.allocate(part)) {
          return false;
        }
      }
    }
    return !ledger.pages();
  };
  std::int64_t low = 0;  // fits, or no context at all
  std::int64_t high = std::max<std::int64_t>(1, spec.model.context) + 1;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

Summary summarise(const config::RunSpec& spec, const RunRecord& record) {
  Summary summary;
  summary.peak = peak_bandwidth(spec.device);
  summary.max_context_tokens = max_context(spec);
  if (record.broken) {
    summary.verdict = {.fits = false,
                       .limit = record.broken->limit,
                       .token = record.broken->token,
                       .message = record.broken->message,
                       .notes = notes_of(spec)};
    return summary;
  }
  summary.verdict = {
      .fits = true,
      .limit = "",
      .token = std::nullopt,
      .message = fmt::format("{} of {} in use at most", human(record.peak), human(record.available)),
      .notes = notes_of(spec)};
  summary.speed = speed_of(spec, record);
  if (spec.engine.kv_tiers) {
    add_tier_notes(spec, summary.verdict.notes);
  }
  if (record.swaps) {
    summary.verdict.limit = "memory";
    summary.verdict.pages = true;
    summary.verdict.message =
        fmt::format("{} are asked for, of which {} can be used: what does not fit is swapped to {} and back",
                    human(record.total), human(record.available), spec.device.storage->name);
  } else if (record.pages) {
    summary.verdict.limit = "page cache";
    summary.verdict.pages = true;
    summary.verdict.notes.emplace_back(
        "the first tokens find what loading left in memory; speed settles over some tens of tokens");
    summary.verdict.message =
        record.total > record.available
            ? fmt::format(
                  "{} are asked for, of which {} can be used: weights are read from {} again and again",
                  human(record.total), human(record.available), spec.device.storage->name)
            : fmt::format(
                  "{} of {} in use, but other programs' files push weights out, which are read from {} "
                  "again",
                  human(record.total), human(record.available), spec.device.storage->name);
  } else if (record.streams_layers) {
    summary.verdict.message +=
        fmt::format("; weights are read from {} layer by layer", spec.device.storage->name);
  }
  return summary;
}

}  // namespace kvsim::sim
