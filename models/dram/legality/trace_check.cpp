// SPDX-License-Identifier: Apache-2.0
#include "models/dram/legality/trace_check.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "models/dram/legality/checker.h"

namespace kvsim::model::legality {

namespace {

constexpr std::uint32_t kChannels = 64;  // as many as a memory controller's description may have

class TraceChecker {
 public:
  TraceChecker(const config::DramPartSpec& part, const Conditions& conditions, std::size_t keep)
      : part_(part), conditions_(conditions), keep_(keep) {}

  void check(const CsvCommand& csv) {
    ++findings_.commands;
    findings_.highest_rank = std::max(findings_.highest_rank, csv.rank);
    if (const auto bank = bank_of(csv)) {
      const IssuedCommand command{csv.clock, csv.command, *bank, csv.row.value_or(0), csv.column.value_or(0)};
      for (const Violation& violation : channel(csv).check(command, csv.row)) {
        add(csv, violation.rule, violation.text);
      }
    }
  }

  TraceFindings take() {
    std::stable_sort(findings_.by_rule.begin(), findings_.by_rule.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return std::move(findings_);
  }

 private:
  /// The bank's index in its channel; none if the part has no such bank, which is told.
  std::optional<std::uint16_t> bank_of(const CsvCommand& csv) {
    const std::int64_t banks_per_group = part_.banks / part_.bank_groups;
    const bool inside = within(csv, "rank", csv.rank, conditions_.ranks) &&
                        within(csv, "bank_group", csv.bank_group, part_.bank_groups) &&
                        within(csv, "bank", csv.bank, banks_per_group);
    if (!inside) {
      return std::nullopt;
    }
    return static_cast<std::uint16_t>(csv.rank * part_.banks + csv.bank_group * banks_per_group + csv.bank);
  }
  bool within(const CsvCommand& csv, std::string_view what, std::int64_t value, std::int64_t count) {
    if (value < count) {
      return true;
    }
    add(csv, "range",
        fmt::format("{} to {} {}, which are 0 to {}", to_string(csv.command), what, value, count - 1));
    return false;
  }

  Checker& channel(const CsvCommand& csv) {
    if (csv.channel >= kChannels) {
      throw UserError(
          fmt::format("line {}: channel {} is more than the {} channels that a controller may have", csv.line,
                      csv.channel, kChannels));
    }
    if (csv.channel >= channels_.size()) {
      channels_.resize(csv.channel + 1);
    }
    std::unique_ptr<Checker>& checker = channels_[csv.channel];
    if (checker == nullptr) {
      checker = std::make_unique<Checker>(part_, conditions_);
      ++findings_.channels;
    }
    return *checker;
  }

  void add(const CsvCommand& csv, std::string_view rule, std::string text) {
    ++findings_.violations;
    if (findings_.first.size() < keep_) {
      findings_.first.push_back({csv.line, csv.channel, rule, std::move(text)});
    }
    const auto known = std::find_if(findings_.by_rule.begin(), findings_.by_rule.end(),
                                    [&](const auto& count) { return count.first == rule; });
    if (known != findings_.by_rule.end()) {
      ++known->second;
    } else {
      findings_.by_rule.emplace_back(rule, 1);
    }
  }

  const config::DramPartSpec& part_;
  const Conditions& conditions_;
  std::size_t keep_;
  std::vector<std::unique_ptr<Checker>> channels_;
  TraceFindings findings_;
};

}  // namespace

TraceFindings check_trace(CommandCsvReader& reader, const config::DramPartSpec& part,
                          const Conditions& conditions, std::size_t keep) {
  TraceChecker checker(part, conditions, keep);
  while (const auto command = reader.next()) {
    checker.check(*command);
  }
  return checker.take();
}

}  // namespace kvsim::model::legality
