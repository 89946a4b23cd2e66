// SPDX-License-Identifier: Apache-2.0
#include "traces/kv_cache/kv_lane.h"

#include <algorithm>
#include <functional>

#include "configs/error/error.h"

namespace kvsim::trace {

KvCell KvLane::place(KvPoolKind pool, Token token, float score) {
  Cells& of = cells(pool);
  KvCell cell{.pool = pool, .index = end(pool)};
  if (of.free.empty()) {
    of.residents.emplace_back();
  } else {
    std::pop_heap(of.free.begin(), of.free.end(), std::greater<>());
    cell.index = of.free.back();
    of.free.pop_back();
  }
  of.runs.reset();
  of.residents[cell.index] = Resident{.token = token, .score = score};
  ++size_;
  in_order_ = in_order_ && pool == KvPoolKind::main && cell.index == token.value();
  return cell;
}

void KvLane::release(KvCell cell) {
  Cells& of = cells(cell.pool);
  check(cell.index < of.residents.size() && of.residents[cell.index].has_value(),
        "a cell that is given back is taken");
  of.runs.reset();
  of.residents[cell.index].reset();
  of.free.push_back(cell.index);
  std::push_heap(of.free.begin(), of.free.end(), std::greater<>());
  --size_;
  in_order_ = false;
}

void KvLane::clear() {
  *this = KvLane();
}

void KvLane::truncate(std::uint32_t tokens) {
  check(in_order_ && tokens <= size_, "only tokens that are there, in order, can be kept");
  cells(KvPoolKind::main).residents.resize(tokens);
  cells(KvPoolKind::main).runs.reset();
  size_ = tokens;
}

const std::vector<CellRun>& KvLane::runs(KvPoolKind pool) const {
  const Cells& of = cells(pool);
  if (!of.runs) {
    std::vector<CellRun>& runs = of.runs.emplace();
    for (std::uint32_t cell = 0; cell < of.residents.size(); ++cell) {
      if (!of.residents[cell]) {
        continue;
      }
      if (!runs.empty() && runs.back().first + runs.back().count == cell) {
        ++runs.back().count;
      } else {
        runs.push_back({.first = cell, .count = 1});
      }
    }
  }
  return *of.runs;
}

}  // namespace kvsim::trace
