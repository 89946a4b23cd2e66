// SPDX-License-Identifier: Apache-2.0
#include "models/dram/command_csv.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "configs/error/diagnostics.h"
#include "configs/error/error.h"
#include "configs/error/input_path.h"

namespace kvsim::model {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kLineBytes = 128;  // more than any line takes: eight numbers of at most 19 digits
constexpr std::size_t kLongestLine = 4096;
constexpr std::array<std::string_view, 8> kFields = {"clock",      "command", "channel", "rank",
                                                     "bank_group", "bank",    "row",     "column"};

/// What a message shows of something that may be anything.
std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string out(text.substr(0, kShown));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kShown ? out + "..." : out;
}

bool for_whole_rank(Command command) {
  using enum Command;
  return command != activate && command != precharge && command != refresh_bank && !is_read(command) &&
         !is_write(command);
}

}  // namespace

CommandCsvWriter::CommandCsvWriter(std::filesystem::path path, const config::DramPartSpec& part, Shape shape)
    : file_(std::move(path)),
      buffer_(kBufferBytes, '\0'),
      banks_per_group_(static_cast<std::uint32_t>(part.banks / part.bank_groups)),
      banks_per_rank_(static_cast<std::uint32_t>(part.banks)),
      banks_per_channel_(static_cast<std::uint32_t>(part.banks * shape.ranks)),
      open_rows_(banks_per_channel_ * static_cast<std::size_t>(shape.channels)) {
  file_.write(kCommandCsvHeader);
  file_.write("\n");
}

void CommandCsvWriter::write(std::uint32_t channel, const IssuedCommand& command) {
  if (used_ + kLineBytes > buffer_.size()) {
    file_.write(std::string_view(buffer_.data(), used_));
    used_ = 0;
  }
  std::uint32_t row = command.row;
  std::uint32_t& open_row = open_rows_[std::size_t{channel} * banks_per_channel_ + command.bank];
  if (command.command == Command::activate) {
    open_row = row;
  } else if (is_read(command.command) || is_write(command.command)) {
    row = open_row;
  }
  char* at = buffer_.data() + used_;
  char* const end = buffer_.data() + buffer_.size();
  at = std::to_chars(at, end, command.clock).ptr;
  *at++ = ',';
  const std::string_view name = to_string(command.command);
  at = std::copy(name.begin(), name.end(), at);
  const std::uint32_t in_rank = command.bank % banks_per_rank_;
  for (const std::uint32_t value : {channel, command.bank / banks_per_rank_, in_rank / banks_per_group_,
                                    in_rank % banks_per_group_, row, command.column}) {
    *at++ = ',';
    at = std::to_chars(at, end, value).ptr;
  }
  *at++ = '\n';
  used_ = static_cast<std::size_t>(at - buffer_.data());
}

void CommandCsvWriter::finish() {
  file_.write(std::string_view(buffer_.data(), used_));
  used_ = 0;
  file_.commit();
}

CommandCsvReader::CommandCsvReader(const std::filesystem::path& path)
    : path_(path.string()), buffer_(kBufferBytes) {
  refuse_named_pipe(path);
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (file_ == nullptr) {
    throw UserError(fmt::format("cannot read {}: {}", path_, std::generic_category().message(errno)));
  }
  if (!next_line(line_)) {
    throw UserError(
        fmt::format("{} is empty; a command trace begins with the line '{}'", path_, kCommandCsvHeader));
  }
  if (line_ != kCommandCsvHeader) {
    fail(line_, fmt::format("'{}' is not the header of a command trace, which is '{}'", shown(line_),
                            kCommandCsvHeader));
  }
}

std::optional<CsvCommand> CommandCsvReader::next() {
  if (!next_line(line_)) {
    return std::nullopt;
  }
  std::array<Field, kFields.size()> fields;
  std::size_t at = 0;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (at > line_.size()) {
      fail(line_.substr(line_.size()), fmt::format("the line ends before its {}; a line has {} values: {}",
                                                   kFields[i], kFields.size(), kCommandCsvHeader));
    }
    fields[i] = next_field(line_, at);
    fields[i].name = kFields[i];
  }
  if (at <= line_.size()) {
    fail(line_.substr(at),
         fmt::format("the line goes on behind its column; a line has {} values", kFields.size()));
  }
  CsvCommand out;
  out.line = line_number_;
  out.clock = number(fields[0], kCommandCsvClocks - 1);
  out.command = command(fields[1]);
  const bool rank_wide = for_whole_rank(out.command);
  out.channel = index(fields[2], true).value();
  out.rank = index(fields[3], true).value();
  out.bank_group = index(fields[4], !rank_wide).value_or(0);
  out.bank = index(fields[5], !rank_wide).value_or(0);
  out.row = index(fields[6], out.command == Command::activate);
  out.column = index(fields[7], false);
  return out;
}

bool CommandCsvReader::next_line(std::string_view& line) {
  for (std::size_t searched = 0;;) {
    const char* const from = buffer_.data() + begin_;
    const std::size_t left = end_ - begin_;
    const void* const found = left > searched ? std::memchr(from + searched, '\n', left - searched) : nullptr;
    if (found == nullptr && !file_ended_ && left <= kLongestLine) {
      searched = left;
      refill();
      continue;
    }
    if (found == nullptr && left == 0) {
      return false;
    }
    ++line_number_;
    const std::size_t length =
        found == nullptr ? left : static_cast<std::size_t>(static_cast<const char*>(found) - from);
    line_ = {from, std::min(length, kLongestLine)};
    if (length > kLongestLine) {
      fail(line_, fmt::format("'{}' is a line of more than {} characters, and no command trace's",
                              shown(line_), kLongestLine));
    }
    begin_ += length + (found == nullptr ? 0 : 1);
    line = line_.ends_with('\r') ? line_.substr(0, length - 1) : line_;
    return true;
  }
}

void CommandCsvReader::refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const std::size_t got = std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
  if (std::ferror(file_.get()) != 0) {
    throw UserError(fmt::format("cannot read {}: {}", path_, std::generic_category().message(errno)));
  }
  end_ += got;
  file_ended_ = got == 0;
}

CommandCsvReader::Field CommandCsvReader::next_field(std::string_view line, std::size_t& at) const {
  const std::size_t comma = std::min(line.find(',', at), line.size());
  const Field field{{}, line.substr(at, comma - at)};
  at = comma + 1;
  return field;
}

std::int64_t CommandCsvReader::number(const Field& field, std::int64_t largest) const {
  std::int64_t value = 0;
  const char* const end = field.text.data() + field.text.size();
  const auto [stop, error] = std::from_chars(field.text.data(), end, value);
  const bool is_number = stop == end && error != std::errc::invalid_argument;
  if (!is_number || error == std::errc::result_out_of_range || value < 0 || value > largest ||
      field.text.front() == '-') {
    fail(field.text,
         fmt::format("{} '{}' is not a whole number from 0 to {}", field.name, shown(field.text), largest));
  }
  return value;
}

std::optional<std::uint32_t> CommandCsvReader::index(const Field& field, bool needed) const {
  if (field.text.empty() && !needed) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(number(field, std::numeric_limits<std::uint32_t>::max()));
}

Command CommandCsvReader::command(const Field& field) const {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (int i = 0; i < kCommands; ++i) {
      all.push_back(to_string(static_cast<Command>(i)));
    }
    return all;
  }();
  const auto found = std::find(names.begin(), names.end(), field.text);
  if (found == names.end()) {
    const auto meant = did_you_mean(field.text, names);
    fail(field.text,
         fmt::format("command '{}' is unknown{}; one of {}", shown(field.text),
                     meant ? fmt::format(", did you mean '{}'?", *meant) : "", fmt::join(names, " ")));
  }
  return static_cast<Command>(found - names.begin());
}

void CommandCsvReader::fail(std::string_view at, std::string_view what) const {
  fail_at({path_, static_cast<int>(std::min<std::uint64_t>(line_number_, std::numeric_limits<int>::max())),
           static_cast<int>(at.data() - line_.data()) + 1},
          what);
}

}  // namespace kvsim::model
