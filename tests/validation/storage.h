// SPDX-License-Identifier: Apache-2.0
// Measured storage devices beside the parts of the catalogue.
#pragma once

#include <functional>
#include <string>

namespace kvsim::testing {

struct StorageRow {
  std::string what;
  double measured = 0;
  double simulated = 0;
  double bound = 0;        ///< allowed relative error, or
  bool is_factor = false;  ///< the allowed factor
  bool sets_part = false;  ///< parameters of the part come from this row
};

/// Calls `title` and `row` as figures come out.
void measure_storage(const std::function<void(const std::string&)>& title,
                     const std::function<void(const StorageRow&)>& row);

}  // namespace kvsim::testing
