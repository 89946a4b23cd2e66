// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "configs/spec/resolve.h"
#include "sim/report/energy_json.h"
#include "sim/report/masters_report.h"
#include "sim/report/report.h"
#include "sim/report/soak_report.h"
#include "sim/report/storage_report.h"
#include "sim/version.h"

namespace kvsim::sim {

using nlohmann::ordered_json;

namespace {

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json latency(const Speed& speed) {
  ordered_json json = {{"ttft_ms", milliseconds(speed.time_to_first_token)}, {"itl_ms", nullptr}};
  if (speed.inter_token) {
    json["itl_ms"] = {{"p50", milliseconds(speed.inter_token->p50)},
                      {"p95", milliseconds(speed.inter_token->p95)},
                      {"p99", milliseconds(speed.inter_token->p99)},
                      {"max", milliseconds(speed.inter_token->max)}};
  }
  return json;
}

ordered_json throughput(const Speed& speed) {
  ordered_json decode = ordered_json::array();
  for (const DepthSpeed& at : speed.decode) {
    decode.push_back({{"depth", at.depth}, {"tokens_per_s", at.tokens_per_second}});
  }
  return {{"kv_computations",
           {{"tokens", speed.kv_computations.made}, {"with_cache", speed.kv_computations.with_cache}}},
          {"decode", std::move(decode)},
          {"decode_mean_tokens_per_s", speed.mean_tokens_per_second},
          {"prefill_tokens_per_s", speed.prefill_tokens_per_second}};
}

bool decoded(const Summary& summary) {
  return summary.speed && summary.speed->inter_token;
}

/// Over decode steps, and so nothing where none ran.
ordered_json dram(const Summary& summary) {
  ordered_json json = {{"peak_gbs", summary.peak.count() / 1e9}};
  for (const char* key : {"read_gbs", "write_gbs", "row_hit", "row_miss", "row_conflict", "energy"}) {
    json[key] = nullptr;
  }
  if (decoded(summary)) {
    json.update({{"read_gbs", summary.speed->read.count() / 1e9},
                 {"write_gbs", summary.speed->written.count() / 1e9},
                 {"row_hit", summary.speed->row_hit},
                 {"row_miss", summary.speed->row_miss},
                 {"row_conflict", summary.speed->row_conflict}});
    if (const Speed& speed = *summary.speed; speed.energy) {
      json["energy"] = energy_json(speed.energy, "mj_per_token",
                                   ratio(speed.energy_per_token, speed.energy->account.total()));
    }
  }
  return json;
}

ordered_json operators(const Speed& speed) {
  ordered_json list = ordered_json::array();
  for (const OperatorFigures& op : speed.operators) {
    list.push_back({{"operator", op.name},
                    {"time_ms", milliseconds(op.time)},
                    {"read_bytes", op.read.count()},
                    {"written_bytes", op.written.count()},
                    {"row_hit", op.row_hit},
                    {"row_miss", op.row_miss},
                    {"row_conflict", op.row_conflict}});
  }
  return list;
}

ordered_json breakdown(const Speed& speed) {
  ordered_json parts = ordered_json::array();
  for (const BreakdownPart& part : speed.breakdown) {
    parts.push_back({{"part", part.part}, {"share", part.share}});
  }
  return parts;
}

std::string backing_name(trace::Backing backing) {
  switch (backing) {
    case trace::Backing::anonymous:
      return "anonymous";
    case trace::Backing::file_mapped:
      return "file-mapped";
    case trace::Backing::device_contiguous:
      return "contiguous";
  }
  return "";
}

ordered_json memory(const Report& report) {
  ordered_json items = ordered_json::array();
  const auto add = [&items](const model::LedgerItem& item, bool breaks) {
    items.push_back({{"name", item.name},
                     {"kind", std::string(to_string(item.kind))},
                     {"backing", backing_name(item.backing)},
                     {"bytes", item.bytes.count()},
                     {"breaks_limit", breaks}});
  };
  for (const model::LedgerItem& item : report.record.items) {
    add(item, false);
  }
  const std::vector<model::LedgerItem>& refused = report.record.refused;
  for (const model::LedgerItem& item : refused) {
    add(item, &item == &refused.front());
  }
  return {{"items", std::move(items)},
          {"total_bytes", report.record.total.count()},
          {"peak_bytes", report.record.peak.count()},
          {"available_bytes", report.record.available.count()},
          {"os_reserve_bytes", report.spec.device.os.reserve.count()},
          {"installed_bytes", dram_capacity(report.spec.device).count()},
          {"max_context_tokens", report.summary.max_context_tokens}};
}

std::string fidelity_name(config::Fidelity fidelity) {
  switch (fidelity) {
    case config::Fidelity::exact:
      return "exact";
    case config::Fidelity::train:
      return "train";
    case config::Fidelity::automatic:
      return "auto";
  }
  return "";
}

ordered_json fidelity(const Report& report) {
  ordered_json json = {{"mode", fidelity_name(report.spec.run.fidelity)},
                       {"simulated_share", nullptr},
                       {"relative_ci", nullptr},
                       {"relative_error", report.spec.run.relative_error},
                       {"target_reached", nullptr}};
  if (report.summary.speed) {
    json["simulated_share"] = report.summary.speed->simulated_share;
    json["relative_ci"] = report.summary.speed->relative_ci;
    json["target_reached"] = report.summary.speed->target_reached;
  }
  return json;
}

ordered_json provenance(const Report& report) {
  ordered_json inputs = ordered_json::array();
  for (const config::InputFile& input : report.inputs) {
    inputs.push_back({{"path", input.path}, {"hash", input.hash}});
  }
  return {{"version", kVersion},
          {"seed", report.spec.run.seed},
          {"config", config::to_json(report.spec)},
          {"inputs", std::move(inputs)}};
}

}  // namespace

std::string json_report(const Report& report) {
  const Summary& s = report.summary;
  ordered_json json;
  json["schema"] = kSchema;
  json["verdict"] = {
      {"fits", s.verdict.fits},
      {"limit", s.verdict.limit.empty() ? ordered_json(nullptr) : ordered_json(s.verdict.limit)},
      {"token", or_null(s.verdict.token)},
      {"pages", s.verdict.pages},
      {"message", s.verdict.message},
      {"notes", s.verdict.notes}};
  json["latency"] = s.speed ? latency(*s.speed) : ordered_json(nullptr);
  json["throughput"] = s.speed ? throughput(*s.speed) : ordered_json(nullptr);
  json["breakdown"] = s.speed ? breakdown(*s.speed) : ordered_json::array();
  json["dram"] = dram(s);
  json["operators"] = s.speed ? operators(*s.speed) : ordered_json::array();
  json["storage"] = s.speed && s.speed->storage ? storage_json(*s.speed->storage) : ordered_json(nullptr);
  json["masters"] = masters_json(report.record.masters);
  json["roofline"] = nullptr;
  if (decoded(s)) {
    json["roofline"] = {{"bytes_per_token", s.speed->bytes_per_token.count()},
                        {"tokens_per_s", s.speed->roofline_tokens_per_second}};
  }
  json["memory"] = memory(report);
  json["fidelity"] = fidelity(report);
  if (report.soak) {
    add_soak(json, *report.soak);
  }
  json["provenance"] = provenance(report);
  return json.dump(2) + "\n";
}

}  // namespace kvsim::sim
