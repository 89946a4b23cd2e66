// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "sim/metrics/human.h"
#include "sim/report/masters_report.h"
#include "sim/report/report.h"
#include "sim/report/soak_report.h"
#include "sim/report/storage_report.h"
#include "sim/version.h"

namespace kvsim::sim {

namespace {

using Out = std::back_insert_iterator<std::string>;

void verdict(Out out, const Report& report) {
  const Verdict& v = report.summary.verdict;
  fmt::format_to(out, "{}: {}\n", !v.fits ? "DOES NOT FIT" : v.pages ? "PAGES" : "FITS", v.message);
  for (const std::string& note : v.notes) {
    fmt::format_to(out, "Note: {}\n", note);
  }
  fmt::format_to(out, "\n");
  fmt::format_to(out, "{} {}, KV {}, on {}\n", report.spec.model.name, report.spec.engine.weights.name,
                 name(report.spec.engine.kv), report.spec.device.name);
  fmt::format_to(out, "{} prompt tokens, {} generated, {} threads\n\n", report.spec.workload.prompt,
                 report.spec.workload.generate, report.spec.workload.threads);
}

void latency(Out out, const Speed& speed) {
  fmt::format_to(out, "Time to first token    {:>10}   ({:.1f} tokens/s prefill)\n",
                 human(speed.time_to_first_token), speed.prefill_tokens_per_second);
  if (!speed.inter_token) {
    return;
  }
  fmt::format_to(out, "Inter-token latency    {:>10} p50, {} p95, {} p99, {} max\n",
                 human(speed.inter_token->p50), human(speed.inter_token->p95), human(speed.inter_token->p99),
                 human(speed.inter_token->max));
  for (const DepthSpeed& at : speed.decode) {
    fmt::format_to(out, "Decode at depth {:>6}   {:>6.2f} tokens/s\n", at.depth, at.tokens_per_second);
  }
  fmt::format_to(
      out,
      "Roofline               {:>6.2f} tokens/s   ({} of weights and KV per token at peak bandwidth; "
      "simulated: {:.2f})\n\n",
      speed.roofline_tokens_per_second, human(speed.bytes_per_token), speed.mean_tokens_per_second);
}

/// Of a run that has no KV cache.
void recomputing(Out out, const Report& report) {
  if (report.spec.engine.kv_cache == config::KvCacheUse::recomputed) {
    const KvComputations& kv = report.summary.speed->kv_computations;
    fmt::format_to(out, "K and V computed       {:>6} tokens   (no KV cache; with one {})\n\n", kv.made,
                   kv.with_cache);
  }
}

void breakdown(Out out, const Speed& speed) {
  fmt::format_to(out, "Where a decode token's time goes\n");
  for (const BreakdownPart& part : speed.breakdown) {
    fmt::format_to(out, "  {:<32} {:>8}\n", part.text, percent(part.share));
  }
  fmt::format_to(out, "\n");
}

void dram(Out out, const Summary& summary) {
  const Speed& speed = *summary.speed;
  fmt::format_to(out, "DRAM while decoding    {} read, {} written, of {} peak ({})\n", human(speed.read),
                 human(speed.written), human(summary.peak),
                 percent((speed.read.count() + speed.written.count()) / summary.peak.count()));
  fmt::format_to(out, "Rows                   {} hit, {} miss, {} conflict\n", percent(speed.row_hit),
                 percent(speed.row_miss), percent(speed.row_conflict));
  if (speed.energy) {
    const DramEnergyFigures& e = *speed.energy;
    fmt::format_to(
        out, "DRAM energy            {:.1f} mJ per token, {:.0f} mW, {:.2f} pJ/bit; {} in the background\n",
        speed.energy_per_token.count() * 1e3, e.mean.count() * 1e3, e.picojoules_per_bit,
        percent(ratio(e.account.background(), e.account.total())));
  }
  fmt::format_to(out, "\n");
}

void item(Out out, const model::LedgerItem& item, const char* remark) {
  const bool mapped = item.backing == trace::Backing::file_mapped;
  fmt::format_to(out, "  {:<32} {:>12}{}{}\n", item.name, human(item.bytes), mapped ? "   (file-mapped)" : "",
                 remark);
}

void memory(Out out, const Report& report) {
  const config::OsSpec& os = report.spec.device.os;
  fmt::format_to(out, "Memory budget\n");
  fmt::format_to(out, "  {:<32} {:>12}\n", "installed", human(dram_capacity(report.spec.device)));
  fmt::format_to(out, "  {:<32} {:>12}\n", "- firmware", human(os.firmware));
  fmt::format_to(out, "  {:<32} {:>12}\n", "- operating system", human(os.reserve));
  fmt::format_to(out, "  {:<32} {:>12}\n", "= left for the model", human(report.record.available));
  for (const model::LedgerItem& one : report.record.items) {
    item(out, one, "");
  }
  const std::vector<model::LedgerItem>& refused = report.record.refused;
  for (const model::LedgerItem& one : refused) {
    item(out, one, &one == &refused.front() ? "   <- breaks the limit" : "");
  }
  const bool broken = report.record.broken.has_value();
  fmt::format_to(out, "  {:<32} {:>12}   ({} {})\n",
                 broken                ? "needed"
                 : report.record.pages ? "asked for"
                                       : "in use",
                 human(report.record.total), broken ? "held at most:" : "peak", human(report.record.peak));
  fmt::format_to(
      out, "Largest context        {} tokens{}\n\n", report.summary.max_context_tokens,
      report.summary.max_context_tokens == report.spec.model.context ? " (the model's own limit)" : "");
}

void fidelity(Out out, const Report& report) {
  const Speed& speed = *report.summary.speed;
  switch (report.spec.run.fidelity) {
    case config::Fidelity::exact:
      fmt::format_to(out, "Fidelity               exact: every DRAM burst was scheduled\n");
      break;
    case config::Fidelity::train:
      fmt::format_to(out, "Fidelity               train: every row train was scheduled\n");
      break;
    case config::Fidelity::automatic:
      fmt::format_to(
          out,
          "Fidelity               auto: {} of the time simulated, the rest reused from like operators and "
          "interpolated over depth; +-{} at 95 % confidence{}\n",
          percent(speed.simulated_share), percent(speed.relative_ci),
          speed.target_reached
              ? ""
              : fmt::format(" (target of {:.4g} % not reached)", 100 * report.spec.run.relative_error));
      break;
  }
}

}  // namespace

std::string text_report(const Report& report) {
  std::string text;
  const Out out = std::back_inserter(text);
  verdict(out, report);
  if (report.summary.speed) {
    latency(out, *report.summary.speed);
    recomputing(out, report);
    if (report.summary.speed->inter_token) {
      breakdown(out, *report.summary.speed);
      if (report.summary.speed->storage) {
        fmt::format_to(out, "{}",
                       storage_text(*report.summary.speed->storage,
                                    report.spec.workload.prompt + report.spec.workload.generate));
      }
      dram(out, report.summary);
      text += masters_text(report.record.masters);
    }
  }
  if (report.soak) {
    text += soak_text(*report.soak);
  }
  memory(out, report);
  if (report.summary.speed) {
    fidelity(out, report);
  }
  fmt::format_to(out, "kvsim {}, seed {}\n", kVersion, report.spec.run.seed);
  return text;
}

}  // namespace kvsim::sim
