// SPDX-License-Identifier: Apache-2.0
// What the tests of scenarios share: a folder of files that is new for each test.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/resolve.h"

namespace kvsim::config {

class ScenarioTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("kvsim_") + test.name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "sub");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  RunSpec load(const std::string& text, const Overrides& overrides = {}) const {
    return load_scenario(write("main.yaml", text), overrides).spec;
  }

  /// The message, with the folder's path taken out.
  std::string error_of(const std::string& text, const Overrides& overrides = {}) const {
    std::string message = message_of([&] { static_cast<void>(load(text, overrides)); });
    const std::string prefix = folder_.string() + "/";
    for (std::size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }

  std::filesystem::path folder_;
};

/// The shortest scenario.
inline const std::string kPlain = "device: rk3588\nmodel: llama3_8b\n";

}  // namespace kvsim::config
