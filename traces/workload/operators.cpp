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

/// Passes accesses on and adds operations up: a thread tells those of an operator once.
class ComputeSum final : public AccessSink {
 public:
  explicit ComputeSum(AccessSink& sink) : sink_(sink) {}

  void put(const Record& record) override {
    if (const auto* compute = std::get_if<Compute>(&record)) {
      operations_ += static_cast<double>(compute->operations);
    } else {
      sink_.put(record);
    }
  }
  [[nodiscard]] double operations() const { return operations_; }

 private:
  AccessSink& sink_;
  double operations_ = 0;
};

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
  rows_ = rows;
  layer_ = node.layer;
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
  std::int64_t width = work.k.width;
  thread.read(work.k, tokens, whole(work.k));
  if (work.v) {
    thread.read(*work.v, tokens, whole(*work.v));
    width += work.v->width;
  }
  caches_[work.kv.cache].append(
      {.layer = work.kv.layer,
       .first = Token(rows_.step_first.value() + static_cast<std::uint32_t>(tokens.first)),
       .tokens = static_cast<std::uint32_t>(tokens.count()),
       .stream = thread.stream()},
      thread.sink);
  thread.compute(static_cast<double>(tokens.count() * width) / 4 * kAppendOps);
}

/// Threads share the KV heads; or the query heads, where each goes over the cells itself, or where one KV
/// head serves them all.
void OperatorEmitter::emit(const Attend& work, const Thread& thread) {
  const KvShape& kv = caches_[work.kv.cache].shape();
  const std::int64_t group = settings_.heads / kv.kv_heads;
  const bool by_query = settings_.kv_walk == config::KvWalk::query_head || kv.kv_heads == 1;
  const std::int64_t unit = by_query ? 1 : group;
  const Share units = leading_share(settings_.heads / unit, settings_.threads, thread.index);
  if (units.count() == 0) {
    return;
  }
  const Share heads{.first = units.first * unit, .last = units.last * unit};
  const Share tokens{.first = rows_.first, .last = std::int64_t{rows_.first} + rows_.count};
  const auto of_heads = [&](const Activation& a) {
    const std::int64_t width = a.width / settings_.heads;
    return Share{.first = heads.first * width, .last = heads.last * width};
  };
  thread.read(work.q, tokens, of_heads(work.q));
  ComputeSum sum(thread.sink);
  for (const Walk& walk : walks(heads, group)) {
    attend_walk(work, walk, thread.stream(), sum);
    read_padding(work.kv, walk.kv_heads, thread.stream(), sum);
  }
  thread.compute(sum.operations());
  thread.write(work.out, tokens, of_heads(work.out));
}

void OperatorEmitter::emit(const Choose& work, const Thread& thread) {
  if (thread.index == 0) {
    groups_ = router_.route(layer_, rows_.step_first, rows_.first, rows_.count);
  }
  const Share tokens = token_share(rows_, settings_.threads, thread.index);
  if (tokens.count() == 0) {
    return;
  }
  thread.read(work.scores, tokens, whole(work.scores));
  thread.write(work.scores, tokens, whole(work.scores));
  thread.compute(static_cast<double>(tokens.count() * work.scores.width) / 4 * work.ops_per_4);
}

/// As ggml-cpu's mul_mat_id: one expert after the other, its rows shared by the threads.
void OperatorEmitter::emit(const ExpertProduct& work, const Thread& thread) {
  const Share results = even_share(work.rows, settings_.threads, thread.index);
  if (results.count() == 0) {
    return;
  }
  std::size_t members = 0;
  for (const ExpertGroup& group : groups_) {
    const std::span<const ExpertGroup::Member> all(group.members);
    const auto step = static_cast<std::size_t>(settings_.columns);
    for (std::size_t first = 0; first < all.size(); first += step) {
      pass(work, group.expert, all.subspan(first, std::min(step, all.size() - first)), thread);
    }
    members += all.size();
  }
  thread.compute(static_cast<double>(results.count() * work.matrix.columns) / 32 *
                 work.matrix.simd_ops_per_32 * static_cast<double>(members));
}

void OperatorEmitter::pass(const ExpertProduct& work, std::int64_t expert,
                           std::span<const ExpertGroup::Member> members, const Thread& thread) const {
  const Matrix& m = work.matrix;
  const Share results = even_share(work.rows, settings_.threads, thread.index);
  const auto row = [](const ExpertGroup::Member& member) {
    return Share{.first = member.row, .last = std::int64_t{member.row} + 1};
  };
  for (const ExpertGroup::Member& member : members) {
    const std::int64_t first = work.in_by_expert ? member.slot * m.columns : 0;
    thread.read(work.in, row(member), {.first = first, .last = first + m.columns});
  }
  thread.read_weights(
      m.address + static_cast<Address>((expert * work.rows + results.first) * m.row_bytes.count()),
      m.row_bytes * results.count());
  for (const ExpertGroup::Member& member : members) {
    const std::int64_t first = member.slot * work.rows;
    thread.write(work.out, row(member), {.first = first + results.first, .last = first + results.last});
  }
}

std::vector<OperatorEmitter::Walk> OperatorEmitter::walks(Share query_heads, std::int64_t group) const {
  const auto head = [group](std::int64_t query) { return Head(static_cast<std::uint32_t>(query / group)); };
  const auto next = [](Head h) { return Head(h.value() + 1); };
  if (query_heads.first % group == 0 && query_heads.count() % group == 0 &&
      settings_.kv_walk == config::KvWalk::kv_head) {
    return {{.kv_heads = {.first = head(query_heads.first), .last = next(head(query_heads.last - 1))},
             .query_heads = group}};
  }
  std::vector<Walk> walks;
  for (std::int64_t at = query_heads.first; at < query_heads.last;) {
    const std::int64_t end = settings_.kv_walk == config::KvWalk::query_head
                                 ? at + 1
                                 : std::min(query_heads.last, (at / group + 1) * group);
    walks.push_back({.kv_heads = {.first = head(at), .last = next(head(at))}, .query_heads = end - at});
    at = end;
  }
  return walks;
}

void OperatorEmitter::attend_walk(const Attend& work, const Walk& walk, Stream stream, AccessSink& sink) {
  KvCache& cache = caches_[work.kv.cache];
  attend({.heads = walk.query_heads * cache.shape().kv_heads, .kv_tile = settings_.kv_tile}, cache,
         {.layer = work.kv.layer,
          .first = Token(rows_.step_first.value() + rows_.first),
          .queries = rows_.count,
          .kv_heads = walk.kv_heads,
          .stream = stream},
         {.pages = &pages_}, sink);
}

/// Cells behind those in use, up to a multiple of the padding: what a kernel reads that masks them
/// afterwards.
void OperatorEmitter::read_padding(const KvLayer& kv, const HeadRange& heads, Stream stream,
                                   AccessSink& sink) const {
  const KvCache& cache = caches_[kv.cache];
  for (Head head = heads.first; head < heads.last; ++head) {
    const std::int64_t used = cache.lane(kv.layer, head).end(KvPoolKind::main);
    const std::int64_t end =
        std::min(main_cells(cache.shape()), padded_context(used, settings_.kv_read_padding));
    if (end <= used) {
      continue;
    }
    const CellRun rest{.first = static_cast<std::uint32_t>(used),
                       .count = static_cast<std::uint32_t>(end - used)};
    for (const KvSide side : {KvSide::k, KvSide::v}) {
      cache.pool(KvPoolKind::main)
          .access_head({.layer = kv.layer, .side = side, .head = head}, rest, Access::read, stream, sink);
    }
  }
}

}  // namespace kvsim::trace
