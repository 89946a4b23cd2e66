// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "models/cpu/segmenter.h"
#include "sim/report/report.h"

namespace kvsim::sim {

namespace {

/// Means and lines between them are no whole lines; DRAM moves nothing else.
std::int64_t whole_lines(double bytes) {
  return std::llround(bytes / static_cast<double>(model::kLineBytes)) * model::kLineBytes;
}

}  // namespace

std::string csv_report(const Report& report) {
  std::string csv = "token,depth,time_ps,ci95_half_width_ps,dram_read_bytes,dram_written_bytes\n";
  std::int64_t token = 0;
  for (const StepResult& step : report.record.steps) {
    if (step.mark.phase != trace::Phase::decode) {
      continue;
    }
    csv +=
        fmt::format("{},{},{},{:.0f},{},{}\n", token, step.mark.depth, time_of(step).count(), step.half_width,
                    whole_lines(step.total.bytes_read()), whole_lines(step.total.bytes_written()));
    ++token;
  }
  return csv;
}

}  // namespace kvsim::sim
