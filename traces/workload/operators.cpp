// SPDX-License-Identifier: Apache-2.0
#include "traces/workload/operators.h"

#include <algorithm>

#include "traces/record/checked.h"
#include "traces/record/spread.h"

namespace kvsim::trace {
namespace {

constexpr double kAppendOps = 1;  // per four elements: one conversion to FP16

/// A token's id, for want of a text: which embedding row is read has no influence but on its address.
/// SplitMix64 of the position, so that a token gets the same id however the prompt is cut into ubatches.
std::int64_t token_id(std::uint64_t position, std::int64_t vocabulary) {
  const std::uint64_t id = spread((position + 1) * 0x9e3779b97f4a7c15ULL);
  return static_cast<std::int64_t>(id % static_cast<std::uint64_t>(vocabulary));
}

/// Elements [first, last) of each row of an activation.
Share whole(const Activation& a) {
  return {.first = 0, .last = a.width};
}

}  // namespace

Share even_share(std::int64_t items, std::int64_t threads, std::int64_t thread) {
  return {.first = items * thread / threads, .last = items * (thread + 1) / threads};
}

Share leading_share(std::int64_t items, std::int64_t threads, std::int64_t thread) {
  const std::int64_t size = (items + threads - 1) / threads;
  return {.first = std::min(items, size * thread), .last = std::min(items, size * (thread + 1))};
}

/// The hand of one thread: puts its records into the sink.
struct OperatorEmitter::Thread {
  std::int64_t index;
  AccessSink& sink;

  [[nodiscard]] Stream stream() const { return Stream(static_cast<std::uint32_t>(index)); }

  void run(Access access, Kind kind, Address address, Bytes bytes) const {
    sink.put(Extent{.address = address,
                    .row_bytes = bytes,
                    .rows = 1,
                    .stride = bytes,
                    .access = access,
                    .kind = kind,
                    .stream = stream()});
  }
  void read_weights(Address address, Bytes bytes) const { run(Access::read, Kind::weights, address, bytes); }

  /// `columns` of `count` rows of an activation from row `first` on.
  void touch(Access access, const Activation& a, Share rows, Share columns) const {
    const Address address = a.address + static_cast<Address>(rows.first * a.stride.count()) +
                            static_cast<Address>(columns.first * kActivationBytes);
    const Bytes bytes(columns.count() * kActivationBytes);
    if (rows.count() == 1 || bytes == a.stride) {  // no gaps: one run
      run(access, Kind::scratch, address, bytes * rows.count());
    } else {
      sink.put(Extent{.address = address,
                      .row_bytes = bytes,
                      .rows = static_cast<std::uint32_t>(rows.count()),
                      .stride = a.stride,
                      .access = access,
                      .kind = Kind::scratch,
                      .stream = stream()});
    }
  }
  void read(const Activation& a, Share rows, Share columns) const { touch(Access::read, a, rows, columns); }
  void write(const Activation& a, Share rows, Share columns) const { touch(Access::write, a, rows, columns); }

  void compute(double operations) const {
    sink.put(Compute{.operations = checked_operations(operations), .stream = stream()});
  }
};

void OperatorEmitter::emit(const Node& node, const StepRows& rows, std::int64_t thread, AccessSink& sink) {
  layer_ = node.layer;
  rows_ = rows;
  const Thread hand{.index = thread, .sink = sink};
  std::visit([&](const auto& work) { emit(work, hand); }, node.work);
}

namespace {

/// The share of a step's rows that a thread works on, as rows of the activations.
Share token_share(const StepRows& rows, std::int64_t threads, std::int64_t thread) {
  const Share share = leading_share(rows.count, threads, thread);
  return {.first = rows.first + share.first, .last = rows.first + share.last};
}

}  // namespace

void OperatorEmitter::emit(const Gather& work, const Thread& thread) {
  const Share tokens = token_share(rows_, settings_.threads, thread.index);
  if (tokens.count() == 0) {
    return;
  }
  for (std::int64_t row = tokens.first; row < tokens.last; ++row) {
    const std::uint64_t position = rows_.step_first.value() + static_cast<std::uint64_t>(row);
    const std::int64_t id = token_id(position, work.table.rows);
    thread.read_weights(work.table.address + static_cast<Address>(id * work.table.row_bytes.count()),
                        work.table.row_bytes);
  }
  thread.write(work.out, tokens, whole(work.out));
  thread.compute(static_cast<double>(work.table.columns * tokens.count()) / 32 * work.table.simd_ops_per_32);
}

void OperatorEmitter::emit(const Product& work, const Thread& thread) {
  const Matrix& m = work.matrix;
  const Share results = even_share(m.rows, settings_.threads, thread.index);
  if (results.count() == 0) {
    return;
  }
  if (work.bias) {
    thread.read_weights(work.bias->address + static_cast<Address>(results.first * kActivationBytes),
                        Bytes(results.count() * kActivationBytes));
  }
  const std::int64_t end = std::int64_t{rows_.first} + rows_.count;
  const std::int64_t step = std::min<std::int64_t>(settings_.columns, rows_.count);
  for (std::int64_t first = rows_.first; first < end; first += step) {
    const Share tokens{.first = first, .last = std::min(first + step, end)};
    thread.read(work.in, tokens, whole(work.in));
    thread.read_weights(m.address + static_cast<Address>(results.first * m.row_bytes.count()),
                        m.row_bytes * results.count());
    if (work.accumulate) {
      thread.read(work.out, tokens, results);
    }
    thread.write(work.out, tokens, results);
  }
  thread.compute(static_cast<double>(results.count() * m.columns) / 32 * m.simd_ops_per_32 *
                 static_cast<double>(rows_.count));
}

void OperatorEmitter::emit(const RowWise& work, const Thread& thread) {
  const Share tokens = token_share(rows_, settings_.threads, thread.index);
  if (tokens.count() == 0) {
    return;
  }
  if (work.weights && thread.index == 0) {  // the others find them in the shared cache
    thread.read_weights(work.weights->address, work.weights->bytes);
  }
  for (const Activation& in : work.in) {
    thread.read(in, tokens, whole(in));
  }
  thread.write(work.out, tokens, whole(work.out));
  thread.compute(static_cast<double>(tokens.count() * work.out.width) / 4 * work.ops_per_4);
}

void OperatorEmitter::emit(const HeadWise& work, const Thread& thread) {
  const Share tokens{.first = rows_.first, .last = std::int64_t{rows_.first} + rows_.count};
  std::int64_t elements = 0;
  for (const HeadWise::Part& part : work.parts) {
    const Share heads = leading_share(part.heads, settings_.threads, thread.index);
    if (heads.count() == 0) {
      continue;
    }
    if (part.weights && thread.index == 0) {  // the others find them in the shared cache
      thread.read_weights(part.weights->address, part.weights->bytes);
    }
    const std::int64_t head_dim = part.values.width / part.heads;
    const Share columns{.first = heads.first * head_dim, .last = heads.last * head_dim};
    thread.read(part.values, tokens, columns);
    thread.write(part.values, tokens, columns);
    elements += columns.count() * tokens.count();
  }
  if (elements > 0) {
    thread.compute(static_cast<double>(elements) / 4 * work.ops_per_4);
  }
}

void OperatorEmitter::emit(const Append& work, const Thread& thread) {
  const Share tokens = token_share(rows_, settings_.threads, thread.index);
  if (tokens.count() == 0) {
    return;
  }
  thread.read(work.k, tokens, whole(work.k));
  thread.read(work.v, tokens, whole(work.v));
  cache_.append({.layer = layer_,
                 .first = Token(rows_.step_first.value() + static_cast<std::uint32_t>(tokens.first)),
                 .tokens = static_cast<std::uint32_t>(tokens.count()),
                 .stream = thread.stream()},
                thread.sink);
  thread.compute(static_cast<double>(tokens.count() * (work.k.width + work.v.width)) / 4 * kAppendOps);
}

void OperatorEmitter::emit(const Attend& work, const Thread& thread) {
  const KvShape& kv = cache_.shape();
  const Share heads = leading_share(kv.kv_heads, settings_.threads, thread.index);
  if (heads.count() == 0) {
    return;
  }
  const Share tokens{.first = rows_.first, .last = std::int64_t{rows_.first} + rows_.count};
  const std::int64_t group = work.q.width / kv.kv_heads;  // numbers of the query heads that share a KV head
  const Share columns{.first = heads.first * group, .last = heads.last * group};
  thread.read(work.q, tokens, columns);
  attend(settings_.attention, cache_,
         {.layer = layer_,
          .first = Token(rows_.step_first.value() + rows_.first),
          .queries = rows_.count,
          .kv_heads = {.first = Head(static_cast<std::uint32_t>(heads.first)),
                       .last = Head(static_cast<std::uint32_t>(heads.last))},
          .stream = thread.stream()},
         {}, thread.sink);
  thread.write(work.out, tokens, columns);
}

}  // namespace kvsim::trace
