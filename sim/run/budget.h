// SPDX-License-Identifier: Apache-2.0
// What a run asks for in vain, as the ledger would have booked it.
#pragma once

#include <vector>

#include "models/os_memory/memory_ledger.h"
#include "traces/record/record.h"

namespace kvsim::sim {

[[nodiscard]] model::LedgerItem item_of(const trace::Alloc& alloc, Bytes page);

/// `held` and the items. Sizes may come from a trace: a sum that does not fit is the largest number instead.
[[nodiscard]] Bytes total_of(const std::vector<model::LedgerItem>& items, Bytes held);

}  // namespace kvsim::sim
