// SPDX-License-Identifier: Apache-2.0
// The two ways to compute attention.
#pragma once

namespace kvsim::trace {

/// tiled: scores stay in the tile, softmax is online. naive: an operator each for QK^T, softmax and PV, which
/// hand the whole score matrix over through memory.
enum class AttentionMethod { tiled, naive };

}  // namespace kvsim::trace
