// SPDX-License-Identifier: Apache-2.0
// The law of includes: configs <- traces <- models <- sim <- tests. Reads every #include of every source.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace kvsim {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kChain = {"configs", "traces", "models", "sim", "tests"};

/// Position in the chain of a path's first folder; the chain's length if it is none of them.
std::size_t position(const std::string& path) {
  const std::string folder = path.substr(0, path.find('/'));
  return static_cast<std::size_t>(std::find(kChain.begin(), kChain.end(), folder) - kChain.begin());
}

struct Include {
  std::string file;
  std::string included;
  bool quoted = false;
};

std::vector<Include> includes_of_project() {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*(["<])([^">]+)[">])re");
  std::vector<Include> includes;
  for (const std::string_view folder : kChain) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(KVSIM_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") {
        continue;
      }
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        std::smatch match;
        if (std::regex_search(line, match, kInclude)) {
          includes.push_back({fs::relative(entry.path(), KVSIM_SOURCE_DIR), match[2], match[1] == "\""});
        }
      }
    }
  }
  return includes;
}

TEST(IncludeChain, EachFolderIncludesOnlyWhatStandsToItsLeft) {
  const auto includes = includes_of_project();
  ASSERT_GT(includes.size(), 100U);
  for (const Include& include : includes) {
    if (position(include.included) < kChain.size()) {
      EXPECT_LE(position(include.included), position(include.file))
          << include.file << " includes " << include.included;
    }
  }
}

TEST(IncludeChain, OwnHeadersAreNamedFromTheRoot) {
  const std::set<std::string> generated = {"traces/codec/trace.pb.h", "sim/version.h"};
  for (const Include& include : includes_of_project()) {
    if (include.quoted) {
      EXPECT_TRUE(generated.contains(include.included) ||
                  fs::exists(fs::path(KVSIM_SOURCE_DIR) / include.included))
          << include.file << " includes \"" << include.included << "\"";
    }
  }
}

TEST(IncludeChain, OnlyModelsAndSimKnowSystemC) {
  for (const Include& include : includes_of_project()) {
    const bool systemc = include.included == "systemc" || include.included == "systemc.h" ||
                         include.included.rfind("tlm", 0) == 0;
    if (systemc && !include.quoted) {
      EXPECT_GE(position(include.file), position("models"))
          << include.file << " includes " << include.included;
    }
  }
}

TEST(IncludeChain, ModelsAndTracesDoNotReadYaml) {
  for (const Include& include : includes_of_project()) {
    if (include.included.rfind("yaml-cpp", 0) == 0) {
      EXPECT_EQ(position(include.file), position("configs")) << include.file;
    }
  }
}

}  // namespace
}  // namespace kvsim
