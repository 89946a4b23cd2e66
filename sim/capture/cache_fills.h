// SPDX-License-Identifier: Apache-2.0
// What a cache would fetch and write back for a captured trace: one level, no time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "configs/spec/device_spec.h"
#include "models/cache/cache.h"
#include "traces/import/lackey_reader.h"

namespace kvsim::sim {

/// Lines of a cache.
struct FillCounts {
  std::int64_t hits = 0;
  std::int64_t fills = 0;        ///< fetched, by loads and by stores
  std::int64_t write_backs = 0;  ///< modified lines that had to leave

  FillCounts& operator+=(const FillCounts& other);
  bool operator==(const FillCounts&) const = default;
};

/// A cache that allocates on loads and on stores (those of a capture are smaller than a line), empty where a
/// token starts. An access that crosses lines is one of each.
class CacheFills {
 public:
  explicit CacheFills(const config::CacheSpec& spec) : spec_(spec), cache_(spec) {}

  void take(std::span<const trace::LackeyEvent> events);
  void finish() { end_scope(); }

  [[nodiscard]] const config::CacheSpec& spec() const { return spec_; }
  [[nodiscard]] const std::vector<FillCounts>& tokens() const { return tokens_; }
  /// Of all tokens and of what lies outside any.
  [[nodiscard]] const FillCounts& file() const { return file_; }

 private:
  void access(const trace::LackeyEvent& event);
  void end_scope();

  config::CacheSpec spec_;
  model::Cache cache_;
  std::vector<FillCounts> tokens_;
  FillCounts scope_;
  FillCounts file_;
  bool in_token_ = false;
};

}  // namespace kvsim::sim
