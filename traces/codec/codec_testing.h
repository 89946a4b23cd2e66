// SPDX-License-Identifier: Apache-2.0
// For tests: a folder of their own, and whole traces in one call.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "traces/codec/reader.h"
#include "traces/codec/writer.h"

namespace kvsim::trace {

/// Gives each test a folder that goes away with it. Tests run in parallel, hence the test's name in the
/// folder's.
class TemporaryFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto& info = *::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("kvsim-") + info.test_suite_name() + "-" + info.name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path file(std::string_view name = "trace.kvt") const {
    return folder_ / name;
  }
  [[nodiscard]] std::size_t files_in_folder() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::filesystem::path folder_;
};

inline TraceHeader test_header() {
  return {.kvsim_version = "0.1.0",
          .configuration = R"({"device": "test"})",
          .seed = -7,
          .inputs = {{.path = "scenarios/test.yaml", .hash = "0123456789abcdef"}}};
}

inline void write_trace(const std::filesystem::path& path, const std::vector<Record>& records) {
  TraceWriter writer(path, test_header());
  for (const Record& record : records) {
    writer.put(record);
  }
  writer.finish();
}

inline std::vector<Record> read_trace(const std::filesystem::path& path) {
  TraceReader reader(path);
  std::vector<Record> records;
  for (std::vector<Record> batch; reader.next(batch);) {
    records.insert(records.end(), batch.begin(), batch.end());
  }
  return records;
}

inline std::string content(const std::filesystem::path& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline void set_content(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace kvsim::trace
