// SPDX-License-Identifier: Apache-2.0
// What to let go of when memory is short.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "traces/kv_cache/kv_sessions.h"

namespace kvsim::trace {

class KvPressure {
 public:
  KvPressure() = default;
  KvPressure(const KvPressure&) = delete;
  KvPressure& operator=(const KvPressure&) = delete;
  virtual ~KvPressure() = default;

  /// `batch` was refused. Lets tokens go and returns true, or returns false if there are none to let go.
  [[nodiscard]] virtual bool relieve(KvSessions& sessions, std::span<const KvDemand> batch,
                                     const KvBatchRefusal& refusal, AccessSink& sink) const = 0;
};

/// The session that came first and is not in the batch. Does not help one that has reached its limit.
[[nodiscard]] std::unique_ptr<const KvPressure> drop_oldest();

/// Every session that has more keeps its last `tokens`; if paged, as many of them as whole blocks leave over.
/// In sessions cut so, positions count anew. Precondition: `tokens` > 0.
[[nodiscard]] std::unique_ptr<const KvPressure> keep_last(std::uint32_t tokens);

struct KvPressureRule {
  const KvPressure& pressure;
  Bytes watermark;  ///< relief is asked for before more than this is allocated
};

/// Plans and applies; as long as the batch does not fit or would pass the watermark, asks for relief. A batch
/// that only passes the watermark is applied when nothing is left to let go; one that does not fit is counted
/// and refused.
[[nodiscard]] std::variant<KvBatchPlan, KvBatchRefusal> admit(KvSessions& sessions,
                                                              std::span<const KvDemand> batch,
                                                              const KvPressureRule& rule, AccessSink& sink);

}  // namespace kvsim::trace
