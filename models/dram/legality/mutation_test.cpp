// SPDX-License-Identifier: Apache-2.0
// Random legal traffic of every standard: is it found legal, and is every rule found broken when a command
// that the rule held back comes one clock too early?
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/dram/legality/checker.h"
#include "models/dram/legality/random_traffic.h"
#include "models/dram/legality/test_parts.h"

namespace kvsim::model::legality {
namespace {

constexpr int kCommandsDrawn = 100'000;  // at least, and until every rule has been tried,
constexpr int kMostDrawn = 3'000'000;    // but not for ever
constexpr int kMutationsOfEach = 8;      // more would only take time

struct Case {
  std::string name;
  config::DramPartSpec part;
  std::int64_t ranks;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const TestPart& part : test_parts()) {
    for (const std::int64_t ranks : {1, 2}) {
      all.push_back({part.name + "_" + std::to_string(ranks) + "ranks", part.part, ranks});
    }
  }
  return all;
}

std::vector<std::string> rules_of(std::span<const Violation> found) {
  std::vector<std::string> rules;
  for (const Violation& violation : found) {
    rules.push_back(std::string(violation.rule));
  }
  return rules;
}

std::string pair_name(const PairRule& pair) {
  return std::string(to_string(pair.from)) + ">" + std::string(to_string(pair.to)) + " " +
         std::string(pair.name);
}

class Mutation : public ::testing::TestWithParam<Case> {};

TEST_P(Mutation, LegalTrafficIsLegalAndOneClockLessIsNot) {
  const Conditions conditions{.ranks = GetParam().ranks};
  RandomTraffic traffic(GetParam().part, conditions, 7);
  Checker checker(GetParam().part, conditions);
  std::map<std::pair<std::string, std::optional<std::size_t>>, int> tried;
  std::set<std::string> untried{"tFAW", "command bus"};
  if (GetParam().ranks > 1) {
    untried.insert("tRTRS");
  }
  for (const PairRule& pair : traffic.table().pairs) {
    untried.insert(pair_name(pair));
  }
  for (int i = 0; i < kCommandsDrawn || (!untried.empty() && i < kMostDrawn); ++i) {
    const Drawn drawn = traffic.next();
    if (i > 0 && !drawn.only_reason.empty() && tried[{drawn.only_reason, drawn.pair}]++ < kMutationsOfEach) {
      Checker other = checker;
      IssuedCommand early = drawn.command;
      early.clock -= 1;
      ASSERT_THAT(rules_of(other.check(early, drawn.open_row)), ::testing::ElementsAre(drawn.only_reason))
          << to_string(early.command) << " as command " << i;
      untried.erase(drawn.pair ? pair_name(traffic.table().pairs[*drawn.pair]) : drawn.only_reason);
    }
    const auto found = checker.check(drawn.command, drawn.open_row);
    ASSERT_TRUE(found.empty()) << "command " << i << ": " << found[0].rule << ": " << found[0].text;
  }
  EXPECT_THAT(untried, ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Standards, Mutation, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kvsim::model::legality
