// SPDX-License-Identifier: Apache-2.0
#include "sim/report/masters_report.h"

#include <iterator>

#include <fmt/format.h>

#include "sim/metrics/human.h"

namespace kvsim::sim {

using nlohmann::ordered_json;

namespace {

ordered_json quantiles(const model::Histogram& times) {
  if (times.count() == 0) {
    return nullptr;
  }
  const auto ms = [](std::int64_t picoseconds) { return milliseconds(Picoseconds(picoseconds)); };
  return {{"p50", ms(times.quantile(0.5))},
          {"p95", ms(times.quantile(0.95))},
          {"p99", ms(times.quantile(0.99))},
          {"max", ms(times.max())}};
}

double gigabytes(Bytes bytes, Picoseconds time) {
  return time > Picoseconds() ? (bytes / time).count() / 1e9 : 0;
}

}  // namespace

ordered_json masters_json(const std::vector<MasterResult>& masters) {
  ordered_json list = ordered_json::array();
  for (const MasterResult& master : masters) {
    const model::MasterFigures& f = master.figures;
    list.push_back({{"name", master.spec.name},
                    {"simulated_ms", milliseconds(master.time)},
                    {"read_bytes", f.read.count()},
                    {"written_bytes", f.written.count()},
                    {"copied_bytes", f.copied.count()},
                    {"lost_bytes", f.lost.count()},
                    {"read_gbs", gigabytes(f.read + f.copied, master.time)},
                    {"write_gbs", gigabytes(f.written + f.copied, master.time)},
                    {"transfers", f.transfers},
                    {"latency_ms", quantiles(f.latency)},
                    {"delay_ms", quantiles(f.delay)},
                    {"deadlines", {{"due", f.due}, {"missed", f.missed}}},
                    {"core_share", ratio(f.stolen, std::max(master.time, Picoseconds(1)))}});
  }
  return list;
}

std::string masters_text(const std::vector<MasterResult>& masters) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const MasterResult& master : masters) {
    const model::MasterFigures& f = master.figures;
    fmt::format_to(out, "{:<28} {:.3f} GB/s read, {:.3f} written; {} p50, {} p99, {} max a transfer",
                   master.spec.name, gigabytes(f.read + f.copied, master.time),
                   gigabytes(f.written + f.copied, master.time), human(Picoseconds(f.latency.quantile(0.5))),
                   human(Picoseconds(f.latency.quantile(0.99))), human(Picoseconds(f.latency.max())));
    if (f.due > 0) {
      fmt::format_to(out, "; {} of {} deadlines missed", f.missed, f.due);
    }
    if (f.lost > Bytes()) {
      fmt::format_to(out, "; {} lost", human(f.lost));
    }
    fmt::format_to(out, "\n");
  }
  return text.empty()
             ? text
             : fmt::format("Other masters, over {} simulated\n{}\n", human(masters.front().time), text);
}

}  // namespace kvsim::sim
