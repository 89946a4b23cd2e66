// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_pressure.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

class DropOldest final : public KvPressure {
 public:
  [[nodiscard]] bool relieve(KvSessions& sessions, std::span<const KvDemand> batch,
                             const KvBatchRefusal& refusal, AccessSink& sink) const override {
    std::optional<std::pair<std::uint64_t, SessionId>> oldest;
    for (SessionId id(0); id.value() < sessions.sessions(); ++id) {
      const auto age = sessions.age(id);
      const bool named = std::any_of(batch.begin(), batch.end(),
                                     [&](const KvDemand& demand) { return demand.session == id; });
      if (age && !named && (!oldest || std::pair(*age, id) < *oldest)) {
        oldest.emplace(*age, id);
      }
    }
    if (!oldest || refusal.why == KvBatchRefusal::Why::length) {
      return false;
    }
    sessions.evict(oldest->second, sink);
    return true;
  }
};

class KeepLast final : public KvPressure {
 public:
  explicit KeepLast(std::uint32_t tokens) : tokens_(tokens) {}

  [[nodiscard]] bool relieve(KvSessions& sessions, std::span<const KvDemand> /*batch*/,
                             const KvBatchRefusal& /*refusal*/, AccessSink& sink) const override {
    bool relieved = false;
    for (SessionId id(0); id.value() < sessions.sessions(); ++id) {
      const std::uint32_t depth = sessions.depth(id);
      const std::uint32_t first = leaving(sessions, depth);
      if (first > 0 && first < depth) {
        sessions.keep(id, {.first = first, .count = depth - first}, sink);
        relieved = true;
      }
    }
    return relieved;
  }

 private:
  /// Rounded up to whole blocks, but not so far that none stays.
  [[nodiscard]] std::uint32_t leaving(const KvSessions& sessions, std::uint32_t depth) const {
    const std::uint32_t surplus = depth - std::min(depth, tokens_);
    if (sessions.config().growth != KvGrowth::paged) {
      return surplus;
    }
    const auto block = static_cast<std::uint32_t>(sessions.config().shape.block);
    return std::min((surplus + block - 1) / block, (depth - std::min(depth, 1U)) / block) * block;
  }

  std::uint32_t tokens_;
};

}  // namespace

std::unique_ptr<const KvPressure> drop_oldest() {
  return std::make_unique<DropOldest>();
}

std::unique_ptr<const KvPressure> keep_last(std::uint32_t tokens) {
  check(tokens > 0, "something stays");
  return std::make_unique<KeepLast>(tokens);
}

std::variant<KvBatchPlan, KvBatchRefusal> admit(KvSessions& sessions, std::span<const KvDemand> batch,
                                                const KvPressureRule& rule, AccessSink& sink) {
  for (;;) {
    const auto answer = sessions.plan(batch);
    const auto* plan = std::get_if<KvBatchPlan>(&answer);
    if (plan != nullptr && plan->occupied <= rule.watermark) {
      sessions.apply(*plan, sink);
      return *plan;
    }
    KvBatchRefusal refusal{.why = KvBatchRefusal::Why::watermark};
    if (plan == nullptr) {
      refusal = std::get<KvBatchRefusal>(answer);
    } else {
      refusal.session = batch.front().session;
      refusal.asked = plan->occupied;
      refusal.left = rule.watermark;
    }
    if (rule.pressure.relieve(sessions, batch, refusal, sink)) {
      continue;
    }
    if (plan == nullptr) {
      sessions.refuse(refusal);
      return refusal;
    }
    sessions.apply(*plan, sink);
    return *plan;
  }
}

}  // namespace kvsim::trace
