// SPDX-License-Identifier: Apache-2.0
// Where reading has come to, and the value that stands there: what checks need to say what is wrong where.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "configs/schema/value.h"

namespace kvsim::config {

/// A value of the configuration under its path.
class Place {
 public:
  Place(const Value& value, std::string path, Diagnostics& errors)
      : value_(&value), path_(std::move(path)), errors_(&errors) {}

  [[nodiscard]] const Value& value() const { return *value_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Diagnostics& errors() const { return *errors_; }

  [[nodiscard]] Place child(std::string_view key, const Value& value) const {
    return {value, join_path(path_, key), *errors_};
  }

  void error(std::string_view what) const { errors_->error(value_->where, path_, what); }

  /// An error about a key below this place ("mapping.row"), told where the key, or else its parent, is
  /// written.
  void error(std::string_view key, std::string_view what) const;

 private:
  const Value* value_;
  std::string path_;
  Diagnostics* errors_;
};

}  // namespace kvsim::config
