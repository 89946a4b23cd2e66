// SPDX-License-Identifier: Apache-2.0
// The command trace as a file: one command a line, channels mixed, each channel's clocks in order.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/spec/dram_spec.h"
#include "models/dram/command.h"
#include "traces/codec/output_file.h"

namespace kvsim::model {

inline constexpr std::string_view kCommandCsvHeader = "clock,command,channel,rank,bank_group,bank,row,column";

/// Clocks of a command trace are below this, so that sums of them do not overflow.
inline constexpr Cycle kCommandCsvClocks = Cycle{1} << 61;

/// Every failure is a UserError. Without finish() nothing is left behind.
class CommandCsvWriter {
 public:
  struct Shape {
    std::int64_t channels = 1;
    std::int64_t ranks = 1;
  };
  CommandCsvWriter(std::filesystem::path path, const config::DramPartSpec& part, Shape shape);

  /// Reads and writes are written with the row that is open. Precondition: the command is within the shape.
  void write(std::uint32_t channel, const IssuedCommand& command);
  void finish();

 private:
  trace::OutputFile file_;
  std::string buffer_;
  std::size_t used_ = 0;
  std::uint32_t banks_per_group_;
  std::uint32_t banks_per_rank_;
  std::uint32_t banks_per_channel_;
  std::vector<std::uint32_t> open_rows_;  ///< by channel and bank
};

/// A line of the file. A command for a whole rank needs no bank; a row and a column may be left out where the
/// command carries none.
struct CsvCommand {
  std::uint64_t line = 0;
  Cycle clock = 0;
  Command command = Command::activate;
  std::uint32_t channel = 0;
  std::uint32_t rank = 0;
  std::uint32_t bank_group = 0;
  std::uint32_t bank = 0;  ///< within the group
  std::optional<std::uint32_t> row;
  std::optional<std::uint32_t> column;
};

/// Trusts nothing: whatever is not as the header says is a UserError with file, line and column. Whether
/// there is such a bank or row is for the part to say.
class CommandCsvReader {
 public:
  explicit CommandCsvReader(const std::filesystem::path& path);

  /// The next command, or none at the end.
  [[nodiscard]] std::optional<CsvCommand> next();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Field {
    std::string_view name;
    std::string_view text;
  };

  [[nodiscard]] bool next_line(std::string_view& line);
  void refill();
  [[nodiscard]] Field next_field(std::string_view line, std::size_t& at) const;
  [[nodiscard]] std::int64_t number(const Field& field, std::int64_t largest) const;
  [[nodiscard]] std::optional<std::uint32_t> index(const Field& field, bool needed) const;
  [[nodiscard]] Command command(const Field& field) const;
  [[noreturn]] void fail(std::string_view at, std::string_view what) const;

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< of what has not been read, in the buffer
  std::size_t end_ = 0;
  bool file_ended_ = false;
  std::uint64_t line_number_ = 0;
  std::string_view line_;
};

}  // namespace kvsim::model
