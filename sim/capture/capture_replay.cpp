// SPDX-License-Identifier: Apache-2.0
#include "sim/capture/capture_replay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "models/stream/engine_stream.h"

namespace kvsim::sim {

using trace::Access;
using trace::Address;
using trace::LackeyEvent;
using What = LackeyEvent::What;

namespace {

constexpr auto kLine = static_cast<Address>(model::kLineBytes);
constexpr std::size_t kMostTokens = 65'536;

void add(ReplayedScope& sum, const ReplayedScope& scope) {
  sum.accesses += scope.accesses;
  sum.instructions += scope.instructions;
  sum.elapsed += scope.elapsed;
  sum.account += scope.account;
  for (std::size_t i = 0; i < sum.levels.size(); ++i) {
    sum.levels[i].hits += scope.levels[i].hits;
    sum.levels[i].fills += scope.levels[i].fills;
    sum.levels[i].write_backs += scope.levels[i].write_backs;
  }
  for (std::size_t i = 0; i < sum.kinds.size(); ++i) {
    sum.kinds[i].read_bytes += scope.kinds[i].read_bytes;
    sum.kinds[i].write_bytes += scope.kinds[i].write_bytes;
    sum.kinds[i].fill_bytes += scope.kinds[i].fill_bytes;
    sum.kinds[i].write_back_bytes += scope.kinds[i].write_back_bytes;
  }
}

}  // namespace

CaptureReplay::CaptureReplay(const config::DeviceSpec& device, const trace::RegionMap& regions,
                             const IssueRule& issue)
    : regions_(regions), issue_(issue), player_(device), pages_(device.os.page, dram_capacity(device)) {
  std::transform(regions.kinds().begin(), regions.kinds().end(), std::back_inserter(uses_), trace::use_of);
  scope_.kinds.resize(uses_.size());
  result_.file.kinds.resize(uses_.size());
}

void CaptureReplay::take(std::span<const LackeyEvent> events) {
  for (const LackeyEvent& event : events) {
    take(event);
  }
}

void CaptureReplay::take(const LackeyEvent& event) {
  switch (event.what) {
    case What::instruction:
      instructions_seen_ = true;
      ++scope_.instructions;
      ++instructions_;
      work_ += issue_.per_instruction;
      break;
    case What::token_start:
      end_scope();
      scope_.token = event.value;
      break;
    case What::token_end:
      end_scope();
      break;
    default:
      access(event);
  }
}

void CaptureReplay::access(const LackeyEvent& event) {
  ++scope_.accesses;
  if (!instructions_seen_) {  // a trace without them, or one that begins in the middle of one
    ++instructions_;
    work_ += issue_.per_instruction;
  }
  const int times = event.what == What::modify ? 2 : 1;
  work_ += issue_.per_byte * event.bytes * times;
  const double whole = std::floor(work_);
  // How far loads reach counts only where the rule says how instructions go.
  player_.work(Picoseconds(static_cast<std::int64_t>(whole)), issue_.per_instruction > 0 ? instructions_ : 0);
  work_ -= whole;
  instructions_ = 0;
  const Address end = event.value + event.bytes;
  for (Address at = event.value; at < end;) {
    const Address line = at & ~(kLine - 1);
    const auto [kind, kind_end] = regions_.piece_at(at);
    const Address stop = std::min({line > ~kLine ? end : line + kLine, kind_end, end});
    scope_.kinds[kind].read_bytes += reads(event.what) ? stop - at : 0;
    scope_.kinds[kind].write_bytes += writes(event.what) ? stop - at : 0;
    if (at == event.value || at == line) {
      const Access access = writes(event.what) ? Access::write : Access::read;
      player_.access(pages_.physical(line), access, model::data_owner(uses_[kind], access));
    }
    at = stop;
  }
  count_moved();
}

void CaptureReplay::count_moved() {
  for (const model::AccessPlayer::Moved& moved : player_.moved()) {
    ReplayedKind& kind = scope_.kinds[regions_.piece_at(pages_.virtual_of(moved.address)).kind];
    (moved.access == Access::read ? kind.fill_bytes : kind.write_back_bytes) += kLine;
  }
  player_.moved().clear();
}

void CaptureReplay::end_scope() {
  const model::AccessPlayer::Played played = player_.drain();
  scope_.elapsed = played.now - std::exchange(begin_, played.now);
  scope_.account = played.account;
  for (std::size_t i = 0; i < scope_.levels.size(); ++i) {
    scope_.levels[i] = player_.levels()[i] - levels_[i];
  }
  levels_ = player_.levels();
  const model::MemoryCounters memory = player_.memory();
  scope_.memory = memory - std::exchange(memory_, memory);
  add(result_.file, scope_);
  if (scope_.token) {
    if (result_.tokens.size() == kMostTokens) {
      throw UserError(
          fmt::format("the trace has more than {} tokens; cut it into several files", kMostTokens));
    }
    result_.tokens.push_back(std::move(scope_));
  }
  scope_ = {};
  scope_.kinds.resize(uses_.size());
}

Replayed CaptureReplay::finish() {
  end_scope();
  result_.file.memory = player_.memory();
  return std::move(result_);
}

}  // namespace kvsim::sim
