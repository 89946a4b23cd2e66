// SPDX-License-Identifier: Apache-2.0
#include "sim/report/fio_report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include <fmt/format.h>

#include "configs/units/text.h"
#include "sim/metrics/human.h"

namespace kvsim::sim {

using model::FioPattern;
using model::StorageStatus;
using nlohmann::ordered_json;

namespace {

/// fio's own list.
constexpr std::array kPercentiles = {1.0,  5.0,  10.0, 20.0, 30.0, 40.0, 50.0,  60.0, 70.0,
                                     80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99};

bool writes(const FioRun& run) {
  return run.spec.pattern == FioPattern::write || run.spec.pattern == FioPattern::randwrite;
}

int error_of(StorageStatus status) {
  switch (status) {
    case StorageStatus::ok:
      return 0;
    case StorageStatus::device_full:
      return ENOSPC;
    case StorageStatus::read_only:
      return EROFS;
    case StorageStatus::beyond_capacity:
    case StorageStatus::misaligned:
      return EINVAL;
  }
  return EINVAL;
}

double per_second(double value, const model::FioResult& result) {
  return result.ios == 0 ? 0 : value / seconds(result.elapsed);
}

ordered_json latency_json(const model::FioLatency& latency, bool with_percentiles) {
  ordered_json json = {{"min", latency.least},
                       {"max", latency.histogram.max()},
                       {"mean", latency.mean()},
                       {"stddev", latency.deviation()},
                       {"N", latency.histogram.count()}};
  if (with_percentiles && latency.histogram.count() > 0) {
    ordered_json list = ordered_json::object();
    for (const double percent : kPercentiles) {
      list[fmt::format("{:.6f}", percent)] =
          std::min(latency.histogram.quantile(percent / 100), latency.histogram.max());
    }
    json["percentile"] = list;
  }
  return json;
}

ordered_json side_json(const model::FioResult& result) {
  const double bandwidth = per_second(result.moved.as_double(), result);
  return {{"io_bytes", result.moved.count()},
          {"io_kbytes", result.moved.count() / 1024},
          {"bw_bytes", std::llround(bandwidth)},
          {"bw", std::llround(bandwidth / 1024)},
          {"iops", per_second(static_cast<double>(result.ios), result)},
          {"runtime", std::llround(milliseconds(result.elapsed))},
          {"total_ios", result.ios},
          {"slat_ns", latency_json(result.submission, false)},
          {"clat_ns", latency_json(result.completion, true)},
          {"lat_ns", latency_json(result.whole, false)}};
}

ordered_json device_json(const FioRun& run) {
  const model::StorageCounters& c = run.counters;
  return {{"status", to_string(run.result.status)},
          {"place", run.result.place.count()},
          {"host_read_bytes", c.host_read.count()},
          {"host_written_bytes", c.host_written.count()},
          {"slc_programmed_bytes", c.slc_programmed.count()},
          {"native_programmed_bytes", c.native_programmed.count()},
          {"map_programmed_bytes", c.map_programmed.count()},
          {"collected_bytes", c.collected.count()},
          {"map_hits", c.map_hits},
          {"map_misses", c.map_misses},
          {"map_flushes", c.map_flushes},
          {"read_retries", c.retries},
          {"suspends", c.suspends},
          {"superblock_erases", c.erases},
          {"waf", run.wear.write_amplification},
          {"cycles_used", run.wear.cycles},
          {"erases_least", run.wear.erases.least},
          {"erases_most", run.wear.erases.most},
          {"days_to_endurance",
           run.wear.days_to_endurance ? ordered_json(*run.wear.days_to_endurance) : ordered_json()}};
}

std::string microseconds(double ns) {
  return ns >= 1e7 ? fmt::format("{:.1f} ms", ns / 1e6) : fmt::format("{:.1f} us", ns / 1e3);
}

std::string run_text(const FioRun& run) {
  const model::FioResult& result = run.result;
  const auto quantile = [&](double share) {
    const model::Histogram& all = result.completion.histogram;
    return microseconds(static_cast<double>(std::min(all.quantile(share), all.max())));
  };
  std::string text = fmt::format("{}: bs {}, depth {} x {}, size {}\n", run.name, to_text(run.spec.block),
                                 run.spec.depth, run.spec.jobs, to_text(run.spec.size));
  if (result.ios > 0) {
    text += fmt::format("  bandwidth    {:.1f} MB/s, {:.0f} requests/s, {} in {}\n",
                        per_second(result.moved.as_double(), result) / 1e6,
                        per_second(static_cast<double>(result.ios), result), human(result.moved),
                        human(result.elapsed));
    text += fmt::format("  latency      mean {}, p50 {}, p99 {}, p99.9 {}, p99.99 {}, max {}\n",
                        microseconds(result.completion.mean()), quantile(0.5), quantile(0.99),
                        quantile(0.999), quantile(0.9999), quantile(1));
  }
  const model::StorageCounters& c = run.counters;
  if (c.map_hits + c.map_misses > 0) {
    text += fmt::format(
        "  mapping      {} of look-ups held\n",
        percent(static_cast<double>(c.map_hits) / static_cast<double>(c.map_hits + c.map_misses)));
  }
  if (writes(run) && run.wear.write_amplification > 0) {
    text += fmt::format("  wear         write amplification {:.3f} (data {}, collected {}, mapping {})\n",
                        run.wear.write_amplification, human(c.slc_programmed + c.native_programmed),
                        human(c.collected), human(c.map_programmed));
    if (run.wear.days_to_endurance) {
      text += fmt::format("               {:.3g} days to the rated cycles at this rate, day and night\n",
                          *run.wear.days_to_endurance);
    }
  }
  if (result.status != StorageStatus::ok) {
    text += fmt::format("  ended        {} at {}\n", to_string(result.status), to_text(result.place));
  }
  return text;
}

}  // namespace

ordered_json fio_json(const config::StoragePartSpec& part, const std::vector<FioRun>& runs) {
  ordered_json jobs = ordered_json::array();
  for (const FioRun& run : runs) {
    const model::FioResult none;
    jobs.push_back({{"jobname", run.name},
                    {"groupid", 0},
                    {"error", error_of(run.result.status)},
                    {"job options",
                     {{"rw", run.name},
                      {"bs", std::to_string(run.spec.block.count())},
                      {"iodepth", std::to_string(run.spec.depth)},
                      {"numjobs", std::to_string(run.spec.jobs)},
                      {"size", std::to_string(run.spec.size.count())}}},
                    {"read", side_json(writes(run) ? none : run.result)},
                    {"write", side_json(writes(run) ? run.result : none)},
                    {"device", device_json(run)}});
  }
  return {{"part", part.name}, {"jobs", jobs}};
}

std::string fio_text(const config::StoragePartSpec& part, const std::vector<FioRun>& runs) {
  std::string text =
      fmt::format("{}{}\n", part.name, part.description.empty() ? "" : ": " + part.description);
  for (const FioRun& run : runs) {
    text += run_text(run);
  }
  return text;
}

}  // namespace kvsim::sim
