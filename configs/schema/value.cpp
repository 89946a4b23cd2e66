// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/value.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "configs/schema/utf8.h"

namespace kvsim::config {
namespace {

constexpr std::size_t kNoteColumn = 36;

/// Files may hold anything; a terminal is not told to obey it.
std::string printable(std::string_view text) {
  std::string shown;
  for (std::optional<std::size_t> bad = find_non_text(text); bad; bad = find_non_text(text)) {
    shown += text.substr(0, *bad);
    shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[*bad]));
    text.remove_prefix(*bad + 1);
  }
  return shown + std::string(text);
}

bool is_flat_list(const Value& value) {
  return value.is_list() && std::ranges::all_of(value.items, &Value::is_scalar);
}

std::string inline_text(const Value& value) {
  if (!value.is_list()) {
    return value.text;
  }
  std::string text = "[";
  for (const Value& item : value.items) {
    text += (text.size() > 1 ? ", " : "") + item.text;
  }
  return text + "]";
}

const std::string& note_of(const Value& value) {
  return value.is_list() && !value.items.empty() ? value.items.front().note : value.note;
}

void append_line(std::string line, const std::string& note, std::string& out) {
  if (!note.empty()) {
    if (line.size() < kNoteColumn) {
      line.resize(kNoteColumn, ' ');
    }
    line += "  # " + note;
  }
  out += line + "\n";
}

void append(const Value& value, std::size_t indent, std::string& out);

/// "key: value", or "key:" with the value's lines below it.
void append_entry(const std::string& head, const Value& value, std::size_t indent, std::string& out) {
  if (value.is_map() || (value.is_list() && !is_flat_list(value))) {
    out += head + "\n";
    append(value, indent + 2, out);
  } else {
    append_line(head + " " + inline_text(value), note_of(value), out);
  }
}

void append(const Value& value, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const MapEntry& entry : value.entries) {
    append_entry(margin + entry.key + ":", entry.value, indent, out);
  }
  if (value.is_scalar() || is_flat_list(value)) {
    return append_line(margin + inline_text(value), note_of(value), out);
  }
  for (const Value& item : value.items) {
    if (!item.is_map() && !item.is_list()) {
      append_entry(margin + "-", item, indent, out);
      continue;
    }
    // The first line of an item carries its dash.
    std::string lines;
    append(item, indent + 2, lines);
    if (lines.size() > indent) {
      lines[indent] = '-';
    }
    out += lines;
  }
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &MapEntry::key);
  return found == entries.end() ? nullptr : &found->value;
}

Value* Value::find(std::string_view key) {
  const auto found = std::ranges::find(entries, key, &MapEntry::key);
  return found == entries.end() ? nullptr : &found->value;
}

void Value::set(std::string_view key, Value value) {
  MapEntry entry{std::string(key), value.where, std::move(value)};
  if (const auto old = std::ranges::find(entries, key, &MapEntry::key); old != entries.end()) {
    *old = std::move(entry);
  } else {
    entries.push_back(std::move(entry));
  }
}

bool Value::erase(std::string_view key) {
  return std::erase_if(entries, [key](const MapEntry& entry) { return entry.key == key; }) > 0;
}

Value scalar_value(std::string_view text, const SourceLocation& where) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.where = where;
  value.text = text;
  return value;
}

Value map_value(const SourceLocation& where) {
  Value value;
  value.kind = Value::Kind::map;
  value.where = where;
  return value;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  return text.size() <= kLongest ? fmt::format("'{}'", printable(text))
                                 : fmt::format("'{}...'", printable(text.substr(0, kLongest)));
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return "nothing";
    case Value::Kind::scalar:
      return fmt::format("the text {}", in_quotes(value.text));
    case Value::Kind::list:
      return "a list";
    case Value::Kind::map:
      return "a map";
    case Value::Kind::invalid:
      break;
  }
  return "an invalid value";
}

std::string join_path(std::string_view path, std::string_view step) {
  if (path.empty() || step.empty()) {
    return std::string(path.empty() ? step : path);
  }
  return fmt::format("{}.{}", path, step);
}

std::string join_path(std::string_view path, std::size_t index) {
  return join_path(path, std::to_string(index));
}

std::string to_annotated_text(const Value& value) {
  std::string out;
  append(value, 0, out);
  return out;
}

}  // namespace kvsim::config
