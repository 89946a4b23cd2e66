// SPDX-License-Identifier: Apache-2.0
// Attention as three operators with the score matrix in memory between them.
#pragma once

#include "traces/attention/attention.h"

namespace kvsim::trace {

/// For each query head: S = QK^T of all queries and cells, query tile by query tile; P = softmax(S) row by
/// row; PV. Masked scores are computed, written and read too. Precondition: `task.memory` says where.
void attend_naively(const AttentionShape& shape, const KvCache& cache, const AttentionTask& task,
                    const AttentionValues& values, AccessSink& sink);

}  // namespace kvsim::trace
