// SPDX-License-Identifier: Apache-2.0
// What `kvsim storage bench` writes: fio's JSON by fio's names, and a text.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/storage/fio_job.h"

namespace kvsim::sim {

struct FioRun {
  std::string name;  ///< fio's word for the pattern
  model::FioSpec spec;
  model::FioResult result;
  model::StorageCounters counters;
  model::StorageWear wear;
};

/// `error` is the number of Linux that fio would have met: ENOSPC, EROFS, EINVAL.
[[nodiscard]] nlohmann::ordered_json fio_json(const config::StoragePartSpec& part,
                                              const std::vector<FioRun>& runs);
[[nodiscard]] std::string fio_text(const config::StoragePartSpec& part, const std::vector<FioRun>& runs);

}  // namespace kvsim::sim
