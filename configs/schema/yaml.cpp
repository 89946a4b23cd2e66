// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/yaml.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "configs/error/error.h"
#include "configs/error/input_path.h"
#include "configs/schema/note.h"
#include "configs/schema/utf8.h"

namespace kvsim::config {
namespace {

constexpr std::size_t kMaxFile = std::size_t{16} << 20;
// Far above any real configuration; they bound time and memory that a hostile file can cost.
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxValues = 100'000;
constexpr std::size_t kMaxKeys = 1'000;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// Builds the tree from yaml-cpp's events: its Node API drops duplicate keys, quotes and places of missing
/// values.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const SourceText& source, Diagnostics& errors)
      : source_(source), errors_(errors), lines_(split_lines(source.text)) {}

  std::optional<Value> take() { return std::move(root_); }

  [[nodiscard]] SourceLocation place(const YAML::Mark& mark) const {
    if (!source_.has_lines || mark.line < 0) {
      return {source_.name};
    }
    return {source_.name, mark.line + 1, mark.column + 1};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp finds documents without end where it cannot go on.
    if (documents_ > 0 && mark.pos == document_) {
      fail_at(place(mark), "not valid YAML: unexpected text");
    }
    if (documents_++ > 0) {
      fail_at(place(mark), "a second YAML document begins here; a file holds one");
    }
    document_ = mark.pos;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_plain(mark, "?", anchor);
    add(new_value(Value::Kind::null, mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    errors_.error(place(mark), "",
                  "aliases (*name) are not supported; write the value out, or use 'extends'");
    add(new_value(Value::Kind::invalid, mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Value value = new_value(Value::Kind::scalar, mark);
    value.text = text;
    value.quoted = tag == "!";
    check_closed(mark);
    if (find_non_text(text)) {
      fail_at(value.where, "the text holds a control character");
    }
    check_plain(mark, value.quoted ? "?" : tag, anchor);
    if (const auto line = static_cast<std::size_t>(mark.line); line < lines_.size()) {
      value.note = find_note(lines_[line], static_cast<std::size_t>(mark.column));
    }
    add(std::move(value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::list, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::map, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  /// A list or map that is not yet complete; a map alternates between awaiting a key and awaiting its value.
  struct Frame {
    Value value;
    std::optional<MapEntry> entry;
  };

  Value new_value(Value::Kind kind, const YAML::Mark& mark) {
    if (++values_ > kMaxValues) {
      fail_at(place(mark), fmt::format("more than {} values in one file", kMaxValues));
    }
    Value value;
    value.kind = kind;
    value.where = place(mark);
    return value;
  }

  void check_plain(const YAML::Mark& mark, std::string_view tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      errors_.error(place(mark), "",
                    "anchors (&name) are not supported; write the value out, or use 'extends'");
    }
    if (tag != "?") {
      errors_.error(place(mark), "", "tags (!name) are not supported; remove the tag");
    }
  }

  /// yaml-cpp takes a quote that is never closed if the file ends with a line end.
  void check_closed(const YAML::Mark& mark) {
    const std::string_view text = std::string_view(source_.text).substr(static_cast<std::size_t>(mark.pos));
    if (text.empty() || (text[0] != '"' && text[0] != '\'')) {
      return;
    }
    if (skip_quoted(text, 0) == std::string_view::npos) {
      fail_at(place(mark), "not valid YAML: this quote is not closed");
    }
  }

  void open(Value::Kind kind, const YAML::Mark& mark, std::string_view tag, YAML::anchor_t anchor) {
    if (stack_.size() >= kMaxDepth) {
      fail_at(place(mark), fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    check_plain(mark, tag, anchor);
    stack_.push_back({new_value(kind, mark), std::nullopt});
  }

  void close() {
    Value done = std::move(stack_.back().value);
    stack_.pop_back();
    add(std::move(done));
  }

  /// Path of the innermost list or map that is not yet complete.
  [[nodiscard]] std::string open_path() const {
    std::string path = source_.path;
    for (std::size_t i = 0; i + 1 < stack_.size(); ++i) {
      const Frame& frame = stack_[i];
      path = frame.entry ? join_path(path, frame.entry->key) : join_path(path, frame.value.items.size());
    }
    return path;
  }

  [[nodiscard]] bool awaits_key() const {
    return !stack_.empty() && stack_.back().value.is_map() && !stack_.back().entry;
  }

  void add(Value value) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (awaits_key()) {
      begin_entry(std::move(value));
    } else if (Frame& frame = stack_.back(); frame.value.is_list()) {
      frame.value.items.push_back(std::move(value));
    } else {
      end_entry(frame, std::move(value));
    }
  }

  /// An entry without key is dropped when its value comes. (A bracket that is never closed looks like a key
  /// too, but then the parser fails before the end and has the better message.)
  void begin_entry(Value key) {
    if (!key.is_scalar() || key.text.empty()) {
      errors_.error(key.where, "", fmt::format("a key must be plain text, not {}", describe(key)));
      key.text.clear();
    }
    stack_.back().entry = MapEntry{std::move(key.text), std::move(key.where), {}};
  }

  void end_entry(Frame& frame, Value value) {
    MapEntry entry = std::move(*frame.entry);
    frame.entry.reset();
    if (entry.key.empty()) {
      return;
    }
    if (entry.key == "<<") {
      errors_.error(entry.where, "", "merge keys (<<) are not supported; use 'extends'");
    } else if (const Value* first = frame.value.find(entry.key)) {
      const int line = first->where.line;
      errors_.error(
          entry.where, join_path(open_path(), entry.key),
          "the key is given twice" + (line == 0 ? "" : fmt::format("; the first is in line {}", line)));
    } else {
      if (frame.value.entries.size() >= kMaxKeys) {
        fail_at(entry.where, fmt::format("more than {} keys", kMaxKeys));
      }
      entry.value = std::move(value);
      frame.value.entries.push_back(std::move(entry));
    }
  }

  const SourceText& source_;
  Diagnostics& errors_;
  std::vector<std::string_view> lines_;
  std::vector<Frame> stack_;
  std::optional<Value> root_;
  std::size_t values_ = 0;
  int documents_ = 0;
  int document_ = 0;  ///< where the last one began
};

/// Refuses what yaml-cpp would misread or explain badly.
void check_characters(const SourceText& source) {
  if (const std::optional<std::size_t> at = find_non_text(source.text)) {
    throw UserError(fmt::format(
        "{}: byte {} is not text (UTF-8); is this a binary file? A YAML file is expected", source.name, *at));
  }
  int number = 0;
  for (const std::string_view line : split_lines(source.text)) {
    ++number;
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos || line[first] != '\t') {
      continue;
    }
    const std::size_t content = line.find_first_not_of(" \t\r");
    if (content == std::string_view::npos || line[content] == '#') {
      continue;
    }
    fail_at({source.name, number, static_cast<int>(first) + 1},
            "a tab indents this line; indent with spaces");
  }
}

}  // namespace

SourceText read_source(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw UserError(fmt::format("{}: there is no such file; check the path", name));
  }
  if (std::filesystem::is_directory(status)) {
    throw UserError(fmt::format("{}: is a directory; give the path of a YAML file", name));
  }
  refuse_named_pipe(path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> chunk{};
  do {
    file.read(chunk.data(), chunk.size());
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  } while (file && text.size() <= kMaxFile);
  if (text.empty() && !file.eof()) {
    throw UserError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  }
  if (text.size() > kMaxFile) {
    throw UserError(
        fmt::format("{}: is larger than {} MiB, far too large for a configuration", name, kMaxFile >> 20));
  }
  return {.name = name, .text = std::move(text)};
}

Value parse_yaml(const SourceText& source, Diagnostics& errors) {
  if (source.text.starts_with(kByteOrderMark)) {
    SourceText marked = source;
    marked.text.erase(0, kByteOrderMark.size());
    return parse_yaml(marked, errors);
  }
  check_characters(source);
  TreeBuilder builder(source, errors);
  try {
    std::istringstream stream(source.text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    fail_at(builder.place(error.mark), fmt::format("not valid YAML: {}", error.msg));
  }
  std::optional<Value> root = builder.take();
  if (!root || root->kind == Value::Kind::null) {
    throw UserError(fmt::format("{}: is empty; nothing but comments or blanks is in it", source.name));
  }
  return std::move(*root);
}

}  // namespace kvsim::config
