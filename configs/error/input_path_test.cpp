// SPDX-License-Identifier: Apache-2.0
#include "configs/error/input_path.h"

#include <array>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"

namespace kvsim {
namespace {

TEST(InputPath, NamedPipesAreRefusedAndNothingElse) {
  const std::string pipe = testing::TempDir() + "/kvsim_input_path_pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message_of([&] { refuse_named_pipe(pipe); }), testing::HasSubstr("is a named pipe"));
  std::filesystem::remove(pipe);
  EXPECT_EQ(message_of([&] { refuse_named_pipe(pipe); }), "no error")
      << "whoever opens it says what is wrong";
  EXPECT_EQ(message_of([] { refuse_named_pipe("/dev/null"); }), "no error");
  EXPECT_EQ(message_of([] { refuse_named_pipe(testing::TempDir()); }), "no error");
}

TEST(InputPath, PipesThatAreOpenPass) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_EQ(message_of([&] { refuse_named_pipe("/proc/self/fd/" + std::to_string(ends[0])); }), "no error");
  EXPECT_EQ(message_of([&] { refuse_named_pipe("/dev/fd/" + std::to_string(ends[0])); }), "no error");
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace kvsim
