// SPDX-License-Identifier: Apache-2.0
#include "sim/capture/cache_fills.h"

#include <utility>

#include "models/stream/engine_stream.h"

namespace kvsim::sim {

using What = trace::LackeyEvent::What;

FillCounts& FillCounts::operator+=(const FillCounts& other) {
  hits += other.hits;
  fills += other.fills;
  write_backs += other.write_backs;
  return *this;
}

void CacheFills::take(std::span<const trace::LackeyEvent> events) {
  for (const trace::LackeyEvent& event : events) {
    if (is_access(event.what)) {
      access(event);
    } else if (event.what == What::token_start) {
      end_scope();
      in_token_ = true;
      cache_ = model::Cache(spec_);
    } else if (event.what == What::token_end) {
      end_scope();
    }
  }
}

void CacheFills::access(const trace::LackeyEvent& event) {
  constexpr auto kLine = static_cast<trace::Address>(model::kLineBytes);
  const trace::Address last = (event.value + event.bytes - 1) / kLine;
  for (trace::Address line = event.value / kLine; line <= last; ++line) {
    const model::CacheAccess result =
        cache_.access(line * kLine, writes(event.what) ? trace::Access::write : trace::Access::read,
                      model::Owner::other_data);
    ++(result.hit ? scope_.hits : scope_.fills);
    scope_.write_backs += result.evicted ? 1 : 0;
  }
}

void CacheFills::end_scope() {
  file_ += scope_;
  if (std::exchange(in_token_, false)) {
    tokens_.push_back(scope_);
  }
  scope_ = {};
}

}  // namespace kvsim::sim
