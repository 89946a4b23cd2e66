// SPDX-License-Identifier: Apache-2.0
#include "sim/report/compare_report.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/metrics/human.h"
#include "sim/version.h"

namespace kvsim::sim {
namespace {

using nlohmann::ordered_json;

using Row = std::vector<std::string>;
/// The first row is the head.
using Table = std::vector<Row>;

std::string milliseconds(const std::optional<double>& value) {
  return value ? human(Picoseconds(std::llround(*value * 1e9))) : "-";
}

std::string against(const std::optional<double>& value, const std::optional<double>& first) {
  return value && first && *first != 0 ? fmt::format("{:+.1f} %", 100 * (*value / *first - 1)) : "-";
}

/// Depths at which any variant was probed.
std::vector<std::int64_t> depths(const CompareReport& report) {
  std::vector<std::int64_t> all;
  for (const VariantFigures& v : report.variants) {
    if (v.throughput.is_object() && v.throughput.contains("decode")) {
      for (const ordered_json& at : v.throughput.at("decode")) {
        all.push_back(at.at("depth").get<std::int64_t>());
      }
    }
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string speed_at(const VariantFigures& v, std::int64_t depth) {
  if (v.throughput.is_object() && v.throughput.contains("decode")) {
    for (const ordered_json& at : v.throughput.at("decode")) {
      if (at.at("depth").get<std::int64_t>() == depth) {
        return fmt::format("{:.2f}", at.at("tokens_per_s").get<double>());
      }
    }
  }
  return "-";
}

template <class Has>
bool any(const CompareReport& report, Has has) {
  return std::ranges::any_of(report.variants, has);
}

std::string bytes_per_token(const VariantFigures& v, const char* key) {
  return v.storage.is_object() && v.storage.contains(key) && v.storage.at(key).is_number()
             ? human(Bytes(std::llround(v.storage.at(key).get<double>())))
             : "-";
}

std::string days(const VariantFigures& v) {
  return v.storage.is_object() && v.storage.contains("days_to_endurance") &&
                 v.storage.at("days_to_endurance").is_number()
             ? fmt::format("{:.0f}", v.storage.at("days_to_endurance").get<double>())
             : "-";
}

Table main_table(const CompareReport& report) {
  const bool energy = any(report, [](const auto& v) { return v.mj_per_token.has_value(); });
  const bool storage = any(report, [](const auto& v) { return v.storage.is_object(); });
  const bool quality = any(report, [](const auto& v) { return v.quality.has_value(); });
  Table table{{"variant", "verdict", "TTFT", "tokens/s", "against first"}};
  for (const std::int64_t depth : depths(report)) {
    table[0].push_back(fmt::format("at {}", depth));
  }
  for (const char* name : {"ITL p95", "peak memory"}) {
    table[0].emplace_back(name);
  }
  const auto when = [&](bool there, std::initializer_list<const char*> names) {
    table[0].insert(table[0].end(), there ? names.begin() : names.end(), names.end());
  };
  when(energy, {"DRAM mJ/token"});
  when(storage, {"flash read/token", "flash written/token", "days to endurance"});
  when(quality, {"perplexity", "recall"});
  table[0].emplace_back("unbeaten");
  for (const VariantFigures& v : report.variants) {
    Row row{v.name,
            !v.fits   ? "DOES NOT FIT"
            : v.pages ? "pages"
                      : "fits",
            milliseconds(v.ttft_ms), v.tokens_per_second ? fmt::format("{:.2f}", *v.tokens_per_second) : "-",
            &v == &report.variants.front()
                ? std::string("-")
                : against(v.tokens_per_second, report.variants.front().tokens_per_second)};
    for (const std::int64_t depth : depths(report)) {
      row.push_back(speed_at(v, depth));
    }
    row.push_back(milliseconds(v.itl_p95_ms));
    row.push_back(human(v.peak));
    if (energy) {
      row.push_back(v.mj_per_token ? fmt::format("{:.1f}", *v.mj_per_token) : "-");
    }
    if (storage) {
      row.push_back(bytes_per_token(v, "read_bytes_per_token"));
      row.push_back(bytes_per_token(v, "write_bytes_per_token"));
      row.push_back(days(v));
    }
    if (quality) {
      row.push_back(v.quality ? fmt::format("{:+.3f} %", v.quality->perplexity_change_percent) : "-");
      row.push_back(v.quality && v.quality->recall ? fmt::format("{:.1f} %", 100 * *v.quality->recall) : "-");
    }
    row.emplace_back(v.pareto ? "*" : "");
    table.push_back(std::move(row));
  }
  return table;
}

/// Milliseconds of a decode token by mechanism: a row each, a column per variant. Empty if nothing was
/// generated.
Table parts_table(const CompareReport& report) {
  std::vector<std::string> parts;
  Table table{{"ms of a decode token"}};
  for (const VariantFigures& v : report.variants) {
    table[0].push_back(v.name);
    for (const TokenPart& part : v.parts) {
      if (std::ranges::find(parts, part.part) == parts.end()) {
        parts.push_back(part.part);
      }
    }
  }
  for (const std::string& part : parts) {
    Row& row = table.emplace_back(Row{part_text(part)});
    for (const VariantFigures& v : report.variants) {
      const auto found = std::ranges::find(v.parts, part, &TokenPart::part);
      row.push_back(found == v.parts.end() ? "-" : fmt::format("{:.3f}", found->milliseconds));
    }
  }
  return parts.empty() ? Table{} : table;
}

std::string aligned(const Table& table) {
  std::vector<std::size_t> widths;
  for (const Row& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : table) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string piped(const Table& table) {
  std::string text;
  for (const Row& row : table) {
    for (const std::string& cell : row) {
      text += "| " + replaced(cell, "|", "\\|") + " ";
    }
    text += "|\n";
    if (&row == &table.front()) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        text += "|---";
      }
      text += "|\n";
    }
  }
  return text;
}

/// Variants that do not fit, each with why.
std::string misfits(const CompareReport& report) {
  std::string text;
  for (const VariantFigures& v : report.variants) {
    if (!v.fits) {
      text += fmt::format("{}: {}\n", v.name, v.message);
    }
  }
  return text.empty() ? text : "\n" + text;
}

std::string written(const CompareReport& report, std::string (*write)(const Table&)) {
  std::string text = write(main_table(report)) + misfits(report);
  if (const Table parts = parts_table(report); !parts.empty()) {
    text += "\n" + write(parts);
  }
  return text + "\n" + report.answer.sentence + "\n";
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json quality_json_of(const VariantFigures& v) {
  if (!v.quality) {
    return {};
  }
  return {{"perplexity_change_percent", v.quality->perplexity_change_percent},
          {"recall", or_null(v.quality->recall)}};
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) {
    return text;
  }
  std::string result = "\"";
  for (const char c : text) {
    result += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return result + "\"";
}

}  // namespace

std::string compare_text(const CompareReport& report) {
  return written(report, aligned) + fmt::format("kvsim {}\n", kVersion);
}

std::string compare_markdown(const CompareReport& report) {
  return written(report, piped);
}

std::string compare_json(const CompareReport& report) {
  ordered_json json = {
      {"schema", kCompareSchema}, {"version", kVersion}, {"variants", ordered_json::array()}};
  for (std::size_t i = 0; i < report.variants.size(); ++i) {
    const VariantFigures& v = report.variants[i];
    ordered_json parts = ordered_json::array();
    for (const TokenPart& part : v.parts) {
      parts.push_back({{"part", part.part}, {"ms_per_token", part.milliseconds}});
    }
    json["variants"].push_back({{"name", v.name},
                                {"scenario", report.scenarios[i]},
                                {"set", report.changes[i]},
                                {"verdict", {{"fits", v.fits}, {"pages", v.pages}, {"message", v.message}}},
                                {"ttft_ms", or_null(v.ttft_ms)},
                                {"throughput", v.throughput},
                                {"itl_p50_ms", or_null(v.itl_p50_ms)},
                                {"itl_p95_ms", or_null(v.itl_p95_ms)},
                                {"peak_bytes", v.peak.count()},
                                {"mj_per_token", or_null(v.mj_per_token)},
                                {"storage", v.storage},
                                {"quality", quality_json_of(v)},
                                {"parts", std::move(parts)},
                                {"relative_ci", v.relative_ci},
                                {"pareto", v.pareto}});
  }
  const Answer& a = report.answer;
  json["answer"] = {{"winner", a.winner.empty() ? ordered_json() : ordered_json(a.winner)},
                    {"against", a.against.empty() ? ordered_json() : ordered_json(a.against)},
                    {"margin_percent", or_null(a.margin_percent)},
                    {"mechanism", a.mechanism.empty() ? ordered_json() : ordered_json(a.mechanism)},
                    {"mechanism_ms", or_null(a.mechanism_ms)},
                    {"sentence", a.sentence}};
  return json.dump(2) + "\n";
}

std::string compare_csv(const CompareReport& report) {
  std::string text =
      "name,fits,ttft_ms,tokens_per_s,itl_p50_ms,itl_p95_ms,peak_bytes,mj_per_token,perplexity_change_"
      "percent,"
      "pareto\n";
  const auto value = [](const std::optional<double>& v) { return v ? fmt::format("{}", *v) : ""; };
  for (const VariantFigures& v : report.variants) {
    const auto perplexity = v.quality ? std::optional(v.quality->perplexity_change_percent) : std::nullopt;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", quoted(v.name), v.fits ? 1 : 0, value(v.ttft_ms),
                        value(v.tokens_per_second), value(v.itl_p50_ms), value(v.itl_p95_ms), v.peak.count(),
                        value(v.mj_per_token), value(perplexity), v.pareto ? 1 : 0);
  }
  return text;
}

}  // namespace kvsim::sim
