// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "configs/spec/resolve.h"
#include "sim/report/report.h"
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
                      {"max", milliseconds(speed.inter_token->max)}};
  }
  return json;
}

ordered_json throughput(const Speed& speed) {
  ordered_json decode = ordered_json::array();
  for (const DepthSpeed& at : speed.decode) {
    decode.push_back({{"depth", at.depth}, {"tokens_per_s", at.tokens_per_second}});
  }
  return {{"decode", std::move(decode)},
          {"decode_mean_tokens_per_s", speed.mean_tokens_per_second},
          {"prefill_tokens_per_s", speed.prefill_tokens_per_second}};
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
  for (const model::LedgerItem& item : report.record.items) {
    items.push_back({{"name", item.name},
                     {"kind", std::string(to_string(item.kind))},
                     {"backing", backing_name(item.backing)},
                     {"bytes", item.bytes.count()}});
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
      {"message", s.verdict.message}};
  json["latency"] = s.speed ? latency(*s.speed) : ordered_json(nullptr);
  json["throughput"] = s.speed ? throughput(*s.speed) : ordered_json(nullptr);
  json["breakdown"] = s.speed ? breakdown(*s.speed) : ordered_json::array();
  json["dram"] = {{"peak_gbs", s.peak.count() / 1e9}};
  json["roofline"] = nullptr;
  if (s.speed) {
    json["dram"].update({{"read_gbs", s.speed->read.count() / 1e9},
                         {"write_gbs", s.speed->written.count() / 1e9},
                         {"row_hit", s.speed->row_hit},
                         {"row_miss", s.speed->row_miss},
                         {"row_conflict", s.speed->row_conflict}});
    json["roofline"] = {{"bytes_per_token", s.speed->bytes_per_token.count()},
                        {"tokens_per_s", s.speed->roofline_tokens_per_second}};
  }
  json["memory"] = memory(report);
  json["fidelity"] = {
      {"mode", fidelity_name(report.spec.run.fidelity)},
      {"simulated_share", s.speed ? ordered_json(s.speed->simulated_share) : ordered_json(nullptr)},
      {"relative_ci", s.speed ? ordered_json(s.speed->relative_ci) : ordered_json(nullptr)}};
  json["provenance"] = provenance(report);
  return json.dump(2) + "\n";
}

}  // namespace kvsim::sim
