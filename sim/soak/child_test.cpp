// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/child.h"

#include <csignal>
#include <stdexcept>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/error.h"
#include "sim/run/runner.h"

namespace kvsim::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Children, TellInTheOrderOfTheWork) {
  EXPECT_THAT(in_children({[] {
                             usleep(50'000);
                             return std::string("slow");
                           },
                           [] { return std::string("quick"); }, [] { return std::string(); }},
                          2, nullptr),
              ElementsAre("slow", "quick", ""));
}

TEST(Children, TellMoreThanAPipeHolds) {
  const std::string text(1'000'000, 'x');
  EXPECT_EQ(in_children({[&] { return text; }}, 1, nullptr).front(), text);
}

TEST(Children, LeaveThisProcessAsItIs) {
  int here = 1;
  EXPECT_EQ(in_children({[&] { return std::to_string(++here); }}, 1, nullptr).front(), "2");
  EXPECT_EQ(here, 1);
}

TEST(Children, PassOnWhatTheyThrow) {
  const auto run = [](void (*fail)()) {
    return [fail] {
      static_cast<void>(in_children({[] { return std::string("well"); },
                                     [fail] {
                                       fail();
                                       return std::string();
                                     }},
                                    2, nullptr));
    };
  };
  EXPECT_THAT(run([] { throw UserError("does not fit"); }), ThrowsMessage<UserError>("does not fit"));
  EXPECT_THAT(run([] { throw std::logic_error("a bug"); }),
              ThrowsMessage<std::runtime_error>(HasSubstr("a bug")));
  EXPECT_THROW(run([] { throw Interrupted(); })(), Interrupted);
  EXPECT_THAT(run([] { raise(SIGKILL); }), ThrowsMessage<UserError>(HasSubstr("ended by signal 9")));
}

TEST(Children, TellWhenTheyAreAskedAndNotBefore) {
  Children children(nullptr);
  const Children::Ticket bad = children.start([]() -> std::string { throw UserError("does not fit"); });
  const Children::Ticket good = children.start([] { return std::string("well"); });
  while (children.running() > 0) {
    children.listen();
  }
  EXPECT_EQ(children.take(good), "well");
  EXPECT_THROW(static_cast<void>(children.take(bad)), UserError);
  static_cast<void>(children.start([] {
    pause();
    return std::string();
  }));  // nobody waits for this one
  EXPECT_EQ(children.running(), 1);
}

TEST(Children, EndWhenTheUserAsks) {
  const std::atomic<bool> stop{true};
  EXPECT_THROW(static_cast<void>(in_children({[] { return std::string(); }}, 1, &stop)), Interrupted);
}

}  // namespace
}  // namespace kvsim::sim
