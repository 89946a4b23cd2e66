// SPDX-License-Identifier: Apache-2.0
// Runs of devices whose memory is smaller than the model, beside what others measured.
#pragma once

#include <functional>
#include <string>

namespace kvsim::testing {

struct PagingRow {
  enum class Rule {
    share,   ///< the bound is a relative error
    points,  ///< the bound is a difference
    told,    ///< no bound: told beside the measured figure
  };
  std::string what;
  double measured = 0;
  double simulated = 0;
  double bound = 0;
  Rule rule = Rule::share;
  bool sets = false;  ///< parameters of device or workload come from this row
};

/// Calls `title`, `row` and `claim` as figures come out.
void measure_paging(const std::function<void(const std::string&)>& title,
                    const std::function<void(const PagingRow&)>& row,
                    const std::function<void(const std::string&, bool)>& claim);

}  // namespace kvsim::testing
