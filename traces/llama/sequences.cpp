// SPDX-License-Identifier: Apache-2.0
#include "traces/llama/sequences.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/error/error.h"
#include "configs/error/input_path.h"

namespace kvsim::trace {
namespace {

using nlohmann::json;

constexpr const char* kForm =
    R"(a line is {"tokens": [1, 2, ...], "answers": [[first index, distance], ...]})";

std::uint32_t whole(const json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
    throw UserError(fmt::format("{} is no whole number from 0 to 4294967295; {}", value.dump(), kForm));
  }
  return value.get<std::uint32_t>();
}

const json& list(const json& value, const char* what) {
  if (!value.is_array()) {
    throw UserError(fmt::format("'{}' is no list; {}", what, kForm));
  }
  return value;
}

Answer answer(const json& pair, std::size_t tokens) {
  if (!pair.is_array() || pair.size() != 2) {
    throw UserError(
        fmt::format("an answer is a pair of first index and distance, not {}; {}", pair.dump(), kForm));
  }
  const Answer result{.first = whole(pair[0]), .distance = whole(pair[1])};
  if (result.first < 1 || std::uint64_t{result.first} + kAnswerTokens > tokens) {
    throw UserError(fmt::format("the answer at {} is not within the {} tokens, with one before it",
                                result.first, tokens));
  }
  if (result.distance < 1) {
    throw UserError(fmt::format("the answer at {} has no distance to its fact; {}", result.first, kForm));
  }
  if (result.distance > result.first) {
    throw UserError(
        fmt::format("the answer at {} cannot be {} tokens behind its fact", result.first, result.distance));
  }
  return result;
}

TokenSequence sequence(const std::string& line) {
  std::set<std::string> keys;
  const json object = json::parse(line, [&keys](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 && !keys.insert(parsed.get<std::string>()).second) {
      throw UserError(fmt::format("the key '{}' stands there twice", parsed.get<std::string>()));
    }
    return true;
  });
  if (!object.is_object() || !object.contains("tokens")) {
    throw UserError(kForm);
  }
  TokenSequence result;
  for (const auto& [key, value] : object.items()) {
    if (key == "tokens") {
      for (const json& token : list(value, "tokens")) {
        result.tokens.push_back(whole(token));
      }
    } else if (key != "answers") {
      throw UserError(fmt::format("unknown key '{}'; {}", key, kForm));
    }
  }
  if (result.tokens.size() < 2) {
    throw UserError("a sequence has at least two tokens: the second is the first that is predicted");
  }
  const json answers = object.value("answers", json::array());
  for (const json& pair : list(answers, "answers")) {
    const Answer one = answer(pair, result.tokens.size());
    if (std::ranges::find(result.answers, one.first, &Answer::first) != result.answers.end()) {
      throw UserError(fmt::format("the answer at {} stands there twice", one.first));
    }
    result.answers.push_back(one);
  }
  return result;
}

}  // namespace

std::string read_text(const std::string& path) {
  refuse_named_pipe(path);
  std::error_code error;
  std::ifstream in(path, std::ios::binary);
  if (std::filesystem::is_directory(path, error) || !in) {
    throw UserError(fmt::format("cannot read '{}': it is no file, is not there, or may not be read", path));
  }
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<TokenSequence> parse_sequences(const std::string& path, const std::string& contents) {
  std::istringstream in(contents);
  std::vector<TokenSequence> sequences;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    try {
      sequences.push_back(sequence(line));
    } catch (const json::exception& error) {
      throw UserError(fmt::format("{}:{}: {}", path, number, error.what()));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (sequences.empty()) {
    throw UserError(fmt::format("'{}' holds no sequence; {}", path, kForm));
  }
  return sequences;
}

}  // namespace kvsim::trace
