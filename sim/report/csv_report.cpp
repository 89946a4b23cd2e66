// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/report/report.h"

namespace kvsim::sim {

std::string csv_report(const Report& report) {
  std::string csv = "token,depth,time_ps,interval_ps,dram_read_bytes,dram_written_bytes\n";
  std::int64_t token = 0;
  for (const StepResult& step : report.record.steps) {
    if (step.mark.phase != trace::Phase::decode) {
      continue;
    }
    csv += fmt::format("{},{},{},{:.0f},{:.0f},{:.0f}\n", token, step.mark.depth, time_of(step).count(),
                       step.half_width, step.total.bytes_read(), step.total.bytes_written());
    ++token;
  }
  return csv;
}

}  // namespace kvsim::sim
