// SPDX-License-Identifier: Apache-2.0
// A channel's queues: what arrived, and what of it the scheduler chooses from.
#include <algorithm>

#include "configs/error/error.h"
#include "models/dram/channel.h"

namespace kvsim::model {

void ChannelController::add(const RowRun& run) {
  check(run.priority < kPriorities, "priorities are 0 to 3");
  const std::size_t list = list_of(run.access) + std::size_t{2} * run.priority;
  if (list >= waiting_lists_) {
    waiting_lists_ = (list | 1) + 1;
    stale_ = pending_banks_;
    planned_ = false;
  }
  if (waiting_[list].empty() && run.arrival <= next_time_ && next_time_ != kNever && has_room(run)) {
    enqueue(run);
    wake_at(run.arrival);
    return;
  }
  waiting_[list].insert(run, [](const RowRun& a, const RowRun& b) { return a.arrival < b.arrival; });
  wake_for_arrivals();
}

/// The next decision is made anew when a run arrives, because that run could go first.
void ChannelController::wake_for_arrivals() {
  for (std::size_t i = 0; i < waiting_lists_; ++i) {
    const Fifo<RowRun>& waiting = waiting_[i];
    if (!waiting.empty() && has_room(waiting.front())) {
      wake_at(waiting.front().arrival);
    }
  }
}

/// Nothing can put data on the bus before it is free; and what waited before a full queue comes in when there
/// is room, which is now.
void ChannelController::wake_at(Cycle arrival) {
  next_time_ = std::min(next_time_, std::max({arrival, bus_decision_, command_bus_free_}));
}

void ChannelController::ingest() {
  for (std::size_t i = waiting_lists_; i-- > 0;) {
    Fifo<RowRun>& waiting = waiting_[i];
    while (!waiting.empty() && waiting.front().arrival <= next_time_ && has_room(waiting.front())) {
      enqueue(waiting.front());
      waiting.pop();
    }
  }
}

void ChannelController::enqueue(const RowRun& run) {
  planned_ = false;
  queued_[list_of(run.access)] += run.pieces;
  urgent_[list_of(run.access)][run.priority] += run.pieces;
  banks_[run.bank].queued += run.pieces;
  if (joins_ && join(run)) {
    return;
  }
  if (free_.empty()) {  // runs of several pieces do not fill the queue at once
    free_.push_back(static_cast<std::uint16_t>(entries_.size()));
    entries_.emplace_back();
  }
  const std::uint16_t index = free_.back();
  free_.pop_back();
  entries_[index] = {.run = run,
                     .number = accepted_,
                     .last_number = accepted_,
                     .piece_bursts = static_cast<std::uint16_t>(run.bursts / run.pieces),
                     .last_arrival = run.arrival};
  ++accepted_;
  link(index);
}

/// Puts an entry at the end of its bank's list.
void ChannelController::link(std::uint16_t index) {
  Entry& entry = entries_[index];
  const RowRun& run = entry.run;
  const unsigned list = list_of(run.access);
  const std::uint64_t bit = std::uint64_t{1} << run.bank;
  BankState& bank = banks_[run.bank];
  entry.previous = bank.tail[list];
  if (bank.tail[list] == kNone) {
    bank.head[list] = index;
  } else {
    entries_[bank.tail[list]].next = index;
  }
  bank.tail[list] = index;
  if (bank.search[list] == kNone) {
    bank.search[list] = index;
  }
  // A younger run changes what the bank does next only if it is its first, or its first hit.
  const Kind kind = next_[list][run.bank].kind;
  const bool has_hit = kind != Kind::activate && kind != Kind::precharge;
  if ((pending_banks_[list] & bit) == 0 || (!has_hit && run.row == bank.open_row) || prefers()) {
    stale_[list] |= bit;
  }
  pending_banks_[list] |= bit;
}

bool ChannelController::join(const RowRun& run) {
  const BankState& bank = banks_[run.bank];
  for (std::uint16_t i = bank.tail[list_of(run.access)]; i != kNone; i = entries_[i].previous) {
    RowRun& queued = entries_[i].run;
    if (queued.row == run.row && queued.access == run.access && queued.masked == run.masked &&
        entries_[i].piece_bursts * run.pieces == run.bursts) {
      queued.bursts = static_cast<std::uint16_t>(queued.bursts + run.bursts);
      queued.pieces = static_cast<std::uint16_t>(queued.pieces + run.pieces);
      entries_[i].last_arrival = run.arrival;
      entries_[i].last_number = accepted_++;
      return true;
    }
  }
  return false;
}

/// Unlinks a served entry.
void ChannelController::remove(std::uint16_t index) {
  const Entry& entry = entries_[index];
  const unsigned list = list_of(entry.run.access);
  BankState& bank = banks_[entry.run.bank];
  (entry.previous == kNone ? bank.head[list] : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? bank.tail[list] : entries_[entry.next].previous) = entry.previous;
  if (bank.search[list] == index) {
    bank.search[list] = entry.next;
  }
  if (bank.head[list] == kNone) {
    pending_banks_[list] &= ~(std::uint64_t{1} << entry.run.bank);
  }
  free_.push_back(index);
}

/// The bank's state changed: its next commands must be worked out anew, and any run may hit.
void ChannelController::touch(std::uint16_t bank_index) {
  BankState& bank = banks_[bank_index];
  bank.search = bank.head;
  stale_[0] |= std::uint64_t{1} << bank_index;
  stale_[1] |= std::uint64_t{1} << bank_index;
}

}  // namespace kvsim::model
