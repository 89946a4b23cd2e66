// SPDX-License-Identifier: Apache-2.0
// A part of every standard for the checker's tests, independent of the catalogue.
#pragma once

#include <string>
#include <vector>

#include "configs/spec/dram_spec.h"

namespace kvsim::model::legality {

struct TestPart {
  std::string name;
  config::DramPartSpec part;
};

/// One of each standard. Timings are plausible for it, and no two of them alike where that can be avoided.
[[nodiscard]] std::vector<TestPart> test_parts();
[[nodiscard]] config::DramPartSpec test_part(config::DramStandard standard);

}  // namespace kvsim::model::legality
