// SPDX-License-Identifier: Apache-2.0
#include "configs/error/diagnostics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(SourceLocation, ShowsOnlyWhatItHas) {
  EXPECT_EQ(to_string({"a.yaml", 7, 12}), "a.yaml:7:12");
  EXPECT_EQ(to_string({"--set a=1"}), "--set a=1");
}

TEST(Diagnostics, NothingWrongThrowsNothing) {
  EXPECT_NO_THROW(Diagnostics().throw_if_any());
}

TEST(Diagnostics, TellsAllErrorsInTheOrderOfTheFile) {
  Diagnostics errors;
  errors.error({"b.yaml", 1, 1}, "", "third");
  errors.error({"a.yaml", 10, 2}, "x.y", "second");
  errors.error({"a.yaml", 9, 30}, "x", "first");
  EXPECT_EQ(message_of([&] { errors.throw_if_any(); }),
            "a.yaml:9:30: x: first\na.yaml:10:2: x.y: second\nb.yaml:1:1: third");
}

TEST(Diagnostics, CountsWhatIsTooMuchToRead) {
  Diagnostics errors;
  for (int i = 1; i <= 50; ++i) {
    errors.error({"a.yaml", i, 1}, "", "wrong");
  }
  const std::string message = message_of([&] { errors.throw_if_any(); });
  EXPECT_THAT(message, EndsWith("a.yaml:40:1: wrong\n... and 10 more errors"));
}

TEST(Diagnostics, AMessageIsOneLineThatCanBeRead) {
  Diagnostics errors;
  errors.error({"a.yaml", 1, 1}, "x", "'two\nlines' " + std::string(1'000'000, 'y'));
  const std::string message = message_of([&] { errors.throw_if_any(); });
  EXPECT_THAT(message, testing::StartsWith("a.yaml:1:1: x: 'two lines' yyy"));
  EXPECT_LT(message.size(), 1'100U);
}

TEST(Diagnostics, ACauseIsAddedToErrorsThatAreNew) {
  Diagnostics before;
  before.error({"a.yaml", 1, 1}, "", "old");
  Diagnostics errors = before;
  errors.error({"a.yaml", 2, 1}, "x", "new");
  errors.error({"--set y=1"}, "y", "new");
  errors.add_cause(before, std::vector<std::string>{"--set y=1"}, "after --set y=1");
  EXPECT_EQ(message_of([&] { errors.throw_if_any(); }),
            "--set y=1: y: new\na.yaml:1:1: old\na.yaml:2:1: x: new (after --set y=1)");
}

TEST(Diagnostics, RepeatsCountButAreNotToldAgain) {
  Diagnostics errors;
  errors.repeat();
  EXPECT_EQ(errors.count(), 1U);
  EXPECT_TRUE(errors.empty());
  EXPECT_NO_THROW(errors.throw_if_any());
}

TEST(DidYouMean, FindsTheNearest) {
  const std::vector<std::string> keys{"ubatch", "barrier", "kv_tile", "weights"};
  EXPECT_EQ(did_you_mean("ubach", keys), "ubatch");
  EXPECT_EQ(did_you_mean("batch", keys), "ubatch");
  EXPECT_EQ(did_you_mean("barreir", keys), "barrier");  // two neighbours swapped
  EXPECT_EQ(did_you_mean("rnu", std::vector<std::string>{"run"}), "run");
  EXPECT_EQ(did_you_mean("KV_TILE", keys), "kv_tile");
  EXPECT_EQ(did_you_mean("wieghts", keys), "weights");
}

TEST(DidYouMean, StaysSilentWhenNothingIsNear) {
  const std::vector<std::string> keys{"ubatch", "kv"};
  EXPECT_EQ(did_you_mean("colour", keys), std::nullopt);
  EXPECT_EQ(did_you_mean("ab", keys), std::nullopt);
  EXPECT_EQ(did_you_mean("", keys), std::nullopt);
  EXPECT_EQ(did_you_mean(std::string(10'000, 'x'), keys), std::nullopt);
  EXPECT_EQ(did_you_mean("x", std::vector<std::string>()), std::nullopt);
}

TEST(Check, ThrowsABugWithItsPlace) {
  EXPECT_NO_THROW(check(true, "never told"));
  try {
    check(false, "two is odd");
    FAIL() << "did not throw";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("diagnostics_test.cpp"));
    EXPECT_THAT(error.what(), EndsWith("two is odd does not hold"));
  }
}

}  // namespace
}  // namespace kvsim
