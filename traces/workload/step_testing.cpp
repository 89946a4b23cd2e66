// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/step_testing.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>

namespace kvsim::trace {

bool Intervals::add(Address begin, Address end) {
  const bool fresh = !meets(begin, end);
  auto next = end_of_.upper_bound(begin);
  if (next != end_of_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != end_of_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = end_of_.erase(next);
  }
  end_of_[begin] = end;
  return fresh;
}

bool Intervals::covers(Address begin, Address end) const {
  const auto next = end_of_.upper_bound(begin);
  return next != end_of_.begin() && std::prev(next)->second >= end;
}

bool Intervals::meets(Address begin, Address end) const {
  const auto next = end_of_.lower_bound(begin);
  return (next != end_of_.end() && next->first < end) ||
         (next != end_of_.begin() && std::prev(next)->second > begin);
}

std::vector<Record> records_of(const LlmRun& run) {
  LlmWorkload workload(run);
  std::vector<Record> records;
  for (std::vector<Record> batch; workload.next(batch);) {
    records.insert(records.end(), batch.begin(), batch.end());
  }
  return records;
}

namespace {

/// Sorts records into steps and operators.
class Parser {
 public:
  void take(const Mark& mark) {
    switch (mark.what) {
      case Mark::What::step_begin:
        EXPECT_FALSE(open_);
        steps_.push_back({.mark = mark, .operations = {}});
        open_ = true;
        break;
      case Mark::What::operator_begin:
        EXPECT_TRUE(open_);
        steps_.back().operations.push_back({.mark = mark, .extents = {}, .computes = {}});
        break;
      case Mark::What::step_end:
        EXPECT_TRUE(open_);
        open_ = false;
        break;
    }
    EXPECT_EQ(mark.tokens, steps_.back().mark.tokens);
    EXPECT_EQ(mark.depth, steps_.back().mark.depth);
    EXPECT_EQ(mark.phase, steps_.back().mark.phase);
  }
  void take(const Extent& e) {
    if (!operation().extents.empty()) {
      EXPECT_LE(operation().extents.back().stream, e.stream) << "threads one after the other";
    }
    operation().extents.push_back(e);
  }
  void take(const Compute& c) {
    if (!operation().computes.empty()) {
      EXPECT_LT(operation().computes.back().stream, c.stream) << "one per thread";
    }
    EXPECT_GT(c.operations, 0U);
    operation().computes.push_back(c);
  }
  void take(const Alloc& /*alloc*/) {
    EXPECT_TRUE(steps_.empty()) << "all is allocated before the first step";
  }
  void take(const Free& /*free*/) { ADD_FAILURE() << "nothing is freed"; }

  std::vector<Step> finish() {
    EXPECT_FALSE(open_);
    return std::move(steps_);
  }

 private:
  Operation& operation() { return steps_.back().operations.back(); }

  std::vector<Step> steps_;
  bool open_ = false;
};

void add(const Extent& e, Traffic& traffic) {
  (e.access == Access::read ? traffic.read : traffic.written)[e.kind] += total_bytes(e);
}

/// Calls `visit` with begin and end of each row.
void for_rows(const Extent& e, const std::function<void(Address, Address)>& visit) {
  for (std::uint32_t row = 0; row < e.rows; ++row) {
    const Address begin = e.address + row * static_cast<Address>(e.stride.count());
    visit(begin, begin + static_cast<Address>(e.row_bytes.count()));
  }
}

void expect_threads_apart(const Operation& operation) {
  std::map<Stream, Intervals> written;
  for (const Extent& e : operation.extents) {
    if (e.access == Access::write) {
      for_rows(e, [&](Address begin, Address end) { written[e.stream].add(begin, end); });
    }
  }
  for (const Extent& e : operation.extents) {
    for (const auto& [stream, intervals] : written) {
      if (stream != e.stream) {
        for_rows(e, [&](Address begin, Address end) {
          ASSERT_FALSE(intervals.meets(begin, end)) << to_string(operation.mark.op);
        });
      }
    }
  }
}

}  // namespace

std::vector<Step> all_steps_of(const LlmRun& run) {
  Parser parser;
  for (const Record& record : records_of(run)) {
    std::visit([&](const auto& r) { parser.take(r); }, record);
  }
  return parser.finish();
}

std::vector<Step> steps_of(const LlmRun& run) {
  std::vector<Step> steps = all_steps_of(run);
  std::erase_if(steps, [](const Step& step) { return step.mark.phase == Phase::probe; });
  return steps;
}

Traffic traffic_of(const Operation& operation) {
  Traffic traffic;
  for (const Extent& e : operation.extents) {
    add(e, traffic);
  }
  return traffic;
}

Traffic traffic_of(const Step& step) {
  Traffic traffic;
  for (const Operation& operation : step.operations) {
    for (const Extent& e : operation.extents) {
      add(e, traffic);
    }
  }
  return traffic;
}

std::uint64_t operations_of(const Operation& operation) {
  std::uint64_t sum = 0;
  for (const Compute& c : operation.computes) {
    sum += c.operations;
  }
  return sum;
}

void expect_data_flow(const LlmRun& run) {
  const bool cells_serve_again =
      run.model.local.has_value() || run.engine.kv_cache == config::KvCacheUse::recomputed;
  Intervals kv;
  for (const Step& step : steps_of(run)) {
    Intervals scratch;
    for (const Operation& operation : step.operations) {
      ASSERT_NO_FATAL_FAILURE(expect_threads_apart(operation));
      for (const Extent& e : operation.extents) {
        if (e.kind == Kind::weights) {
          continue;
        }
        Intervals& memory = e.kind == Kind::kv ? kv : scratch;
        for_rows(e, [&](Address begin, Address end) {
          if (e.access == Access::write) {
            const bool fresh = memory.add(begin, end);
            EXPECT_TRUE(fresh || e.kind != Kind::kv || cells_serve_again) << "a KV cell is written once";
          } else {
            ASSERT_TRUE(memory.covers(begin, end)) << to_string(operation.mark.op);
          }
        });
      }
    }
  }
}

}  // namespace kvsim::trace
