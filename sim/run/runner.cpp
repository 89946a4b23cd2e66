// SPDX-License-Identifier: Apache-2.0
#include "sim/run/runner.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <systemc>

#include "configs/error/error.h"
#include "models/os_memory/memory_ledger.h"
#include "sim/metrics/human.h"
#include "sim/run/budget.h"
#include "sim/run/in_memory.h"
#include "sim/run/operation.h"
#include "sim/run/run_storage.h"
#include "sim/run/sampler.h"
#include "sim/soc/soc.h"

namespace kvsim::sim {

using config::Fidelity;
using trace::Mark;

namespace {

/// Operators that move more than the first are measured by a window of theirs that takes at least the second:
/// long enough for threads, banks and refreshes to lose the order in which the operator started them.
constexpr Bytes kSmallestWindow{4 << 20};
constexpr Picoseconds kWindowTime{10'000'000'000};
/// Decode steps at which operators that grow with the context are measured; between them they are
/// interpolated.
constexpr std::int64_t kKnots = 5;
/// Simulated time between two looks at the stop flag: some 50,000 bursts at 34 GB/s.
constexpr Picoseconds kWatch{100'000'000};

std::set<std::int64_t> knots_of(std::int64_t steps) {
  std::set<std::int64_t> knots;
  for (std::int64_t i = 0; i < kKnots; ++i) {
    knots.insert(steps <= 1 ? 0 : i * (steps - 1) / (kKnots - 1));
  }
  return knots;
}

/// An operator whose time is filled in when every knot has been measured.
struct Pending {
  OperatorKind kind;
  trace::Operator op = trace::Operator::none;
  std::int64_t count = 0;
};

/// What the first window of a kind of operators tells.
struct Pilot {
  double picoseconds_per_byte = 0;
};

class Runner : public sc_core::sc_module {
 public:
  Runner(const sc_core::sc_module_name& name, const config::RunSpec& spec, trace::AccessSource& source,
         const RunHooks& hooks)
      : sc_module(name),
        spec_(spec),
        hooks_(hooks),
        reader_(source, spec.device),
        soc_("soc", spec.device,
             spec.run.fidelity == Fidelity::exact ? model::Granularity::burst : model::Granularity::train,
             static_cast<std::uint64_t>(spec.run.seed)),
        ledger_(Offload::os_of(spec), dram_capacity(spec.device)),
        storage_(spec),
        sampler_(spec.run.relative_error),
        knots_(knots_of(spec.workload.generate)) {
    SC_HAS_PROCESS(Runner);
    SC_THREAD(main);
    main_ = sc_core::sc_get_last_created_process_handle();
    SC_METHOD(watch);
  }

  /// After the simulation: what came of it, or what it threw.
  RunRecord take() {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    fill_in();
    for (const auto& master : soc_.masters().all()) {
      record_.masters.push_back({.spec = master->spec(), .figures = master->figures(), .time = played_});
    }
    record_.items = ledger_.items();
    record_.total = total_of(record_.refused, ledger_.total());
    record_.peak = record_.pages ? std::min(ledger_.peak(), ledger_.available()) : ledger_.peak();
    record_.available = ledger_.available();
    return std::move(record_);
  }

 private:
  /// Exceptions must not pass through SystemC's kernel.
  void main() {
    begun_ = true;
    try {
      play();
    } catch (...) {
      failure_ = std::current_exception();
    }
    done_ = true;
    played_ = model::now();
    soc_.stop();
  }

  /// One operator can take seconds to simulate: the user who asks to stop does not wait for its end.
  void watch() {
    if (begun_ && !done_ && stop_asked()) {
      main_.throw_it(Interrupted());
      sc_core::sc_pause();
    } else if (!done_) {
      next_trigger(model::to_sc_time(kWatch));
    }
  }

  [[nodiscard]] bool stop_asked() const { return hooks_.stop != nullptr && hooks_.stop->load(); }
  void check_stop() const {
    if (stop_asked()) {
      throw Interrupted();
    }
  }

  void play() {
    for (const trace::Alloc& buffer : soc_.masters().buffers()) {
      handle(buffer);
    }
    if (record_.broken) {
      read_rest();
      return;
    }
    while (const OperationReader::Item* item = reader_.next()) {
      check_stop();
      std::visit([this](const auto& it) { handle(it); }, *item);
      if (record_.broken) {
        read_rest();
        return;
      }
    }
  }

  /// After a limit broke: takes down what loading asks for besides, and lets recordings have the whole
  /// stream.
  void read_rest() {
    bool loads = !record_.refused.empty();
    reader_.drain([&](const trace::Record& record) {
      check_stop();
      loads = loads && !std::holds_alternative<Mark>(record);
      if (const auto* alloc = std::get_if<trace::Alloc>(&record); alloc != nullptr && loads) {
        record_.refused.push_back(item_of(*alloc, spec_.device.os.page));
      }
    });
  }

  void handle(const trace::Alloc& alloc) {
    for (const trace::Alloc& part : in_memory(spec_, alloc)) {
      take_memory(part);
    }
    if (!record_.broken) {
      storage_.note_whole(alloc);
      reader_.set_end(storage_.end());
      check_storage();
    }
  }

  void take_memory(const trace::Alloc& alloc) {
    const auto broken = ledger_.allocate(alloc);
    if (!broken) {
      storage_.note(alloc);
    } else {
      record_.broken = BrokenLimit{
          .limit = broken->limit,
          .message = fmt::format(
              "out of {} {}: {} for '{}' would bring {} to {}, but the system leaves {}", broken->limit,
              when(), human(alloc.bytes), broken->item,
              alloc.backing == trace::Backing::file_mapped ? "all memory in use" : "anonymous memory",
              human(broken->needed), human(broken->available)),
          .token = generated()};
      record_.refused.push_back(item_of(alloc, spec_.device.os.page));
    }
  }

  void handle(const trace::Free& free) { ledger_.free(free.address); }

  void handle(const Mark& mark) {
    if (mark.what == Mark::What::step_end) {
      end_step();
      return;
    }
    if (!begin_storage(mark)) {
      return;
    }
    phase_begins_ = record_.steps.empty() || record_.steps.back().mark.phase != mark.phase;
    if (phase_begins_) {
      sampler_.begin_phase();
    }
    step_bytes_ = Bytes();
    record_.steps.push_back({.mark = mark, .total = {}, .half_width = 0, .simulated = 0, .model_bytes = {}});
    pending_.emplace_back();
  }

  /// False, with what is broken, if what does not fit into memory cannot be elsewhere.
  bool begin_storage(const Mark& mark) {
    record_.broken = storage_.begin_step(mark, ledger_);
    if (record_.broken) {
      record_.broken->token = generated();
      return false;
    }
    record_.streams_layers = storage_.offload().streams_layers();
    record_.swaps = storage_.offload().swaps();
    record_.streams = storage_.offload().streams();
    reader_.set_end(storage_.end());
    if (mark.phase == trace::Phase::decode && decoded_ == 0) {
      before_decode_ = storage_.counters();
    }
    return true;
  }

  void pay(const RunStorage::Cost& cost, trace::Operator op) {
    StepResult& step = record_.steps.back();
    step.paging += cost.paging;
    step.experts += cost.experts;
    step.tiers += cost.tiers;
    step.total += cost.time;
    step.simulated += cost.time.picoseconds();
    book(step.mark, op, cost.time);
    check_storage();
  }

  /// What the device refuses ends the run.
  void check_storage() {
    const auto failure = storage_.failure();
    if (failure && !record_.broken) {
      record_.broken = BrokenLimit{.limit = "storage",
                                   .message = fmt::format("storage ends the run {}: KV cache on {}: {}",
                                                          when(), spec_.device.storage->name, *failure),
                                   .token = generated()};
    }
  }

  void end_step() {
    if (storage_.any()) {
      pay(storage_.end_step(), trace::Operator::kv_append);
    }
    record_.pages = storage_.offload().pages();
    const trace::Phase phase = record_.steps.back().mark.phase;
    if (phase == trace::Phase::decode) {
      record_.storage = storage_.counters() - before_decode_;
    }
    decoded_ += phase == trace::Phase::decode ? 1 : 0;
    hooks_.progress(
        std::min(1.0, static_cast<double>(decoded_ + 1) /
                          static_cast<double>(std::max<std::int64_t>(1, spec_.workload.generate) + 1)));
  }

  void handle(const Operation& operation) {
    if (storage_.any()) {
      play(storage_.placed(operation), operation);
    } else {
      play(operation, operation);
    }
  }

  /// `asked` is the operation at the addresses of the stream.
  void play(const Operation& operation, const Operation& asked) {
    StepResult& step = record_.steps.back();
    step.model_bytes += model_bytes(storage_.is_tiered() ? asked : operation);
    if (spec_.run.fidelity != Fidelity::automatic) {
      const Measurement m = measure(operation, model::bytes_read_once(operation.threads));
      step.total += m;
      step.simulated += m.picoseconds();
      book(step.mark, operation.mark.op, m);
      if (storage_.any()) {
        pay(storage_.wait(asked, m.picoseconds()), asked.mark.op);
      }
      return;
    }
    const OperatorKind kind =
        kind_of(storage_.is_tiered() ? operation : asked, before());  // however it lies in memory
    step_bytes_ += bytes_of(operation);
    if (sampler_.wants(kind, is_knot(step.mark))) {
      sample(operation, kind, step);
    } else {
      skip(operation);
    }
    sampler_.saw(kind);
    count_pending(kind, operation.mark.op);
    if (storage_.any()) {
      pay(storage_.wait(asked, sampler_.estimate(kind).mean.picoseconds()), asked.mark.op);
    }
  }

  [[nodiscard]] Before before() const {
    if (record_.steps.size() == 1 || step_bytes_ > spec_.device.llc.size) {
      return Before::this_step;
    }
    return phase_begins_ ? Before::another_phase : Before::another_step;
  }

  void skip(const Operation& operation) {
    soc_.cpu().skip(operation.threads, model::bytes_read_once(operation.threads));
  }

  void book(const Mark& step, trace::Operator op, const Measurement& m) {
    if (step.phase == trace::Phase::decode) {
      record_.decode_operators[static_cast<std::size_t>(op)] += m;
    }
  }

  [[nodiscard]] bool is_knot(const Mark& mark) const {
    return mark.phase != trace::Phase::decode || knots_.contains(decoded_);
  }

  void count_pending(const OperatorKind& kind, trace::Operator op) {
    std::vector<Pending>& pending = pending_.back();
    const auto same = std::find_if(pending.begin(), pending.end(), [&](const Pending& p) {
      return p.kind.shape == kind.shape && p.kind.size == kind.size && p.op == op;
    });
    if (same != pending.end()) {
      ++same->count;
    } else {
      pending.push_back({.kind = kind, .op = op, .count = 1});
    }
  }

  /// Measures the operator, or a window of it if it is large, scaled to the whole.
  void sample(const Operation& operation, const OperatorKind& kind, StepResult& step) {
    const Bytes bytes = bytes_of(operation);
    Bytes window = window_bytes(kind, bytes);
    Measurement m = measure_window(operation, kind, window, step);
    if (sampler_.count(kind) == 0) {  // a first one tells how long a window has to be
      pilots_[kind.shape] = Pilot{m.picoseconds() / bytes.as_double()};
      const Bytes wanted = window_bytes(kind, bytes);
      if (wanted > window) {
        window = wanted;
        m = measure_window(operation, kind, window, step);
      }
    }
    if (window < bytes) {
      skip(operation);
    }
    sampler_.add(kind, m);
  }

  [[nodiscard]] Bytes window_bytes(const OperatorKind& kind, Bytes whole) const {
    const auto pilot = pilots_.find(kind.shape);
    const double wanted =
        pilot == pilots_.end() ? 0 : kWindowTime.as_double() / pilot->second.picoseconds_per_byte;
    return std::min(whole, std::max(kSmallestWindow, Bytes(static_cast<std::int64_t>(wanted))));
  }

  [[nodiscard]] Measurement measure_window(const Operation& operation, const OperatorKind& kind, Bytes size,
                                           StepResult& step) {
    const Bytes bytes = bytes_of(operation);
    if (size == bytes) {
      const Measurement whole = measure(operation, model::bytes_read_once(operation.threads));
      step.simulated += whole.picoseconds();
      return whole;
    }
    // Windows of one kind begin at ever other places: multiples of the golden ratio fill the range evenly.
    const double at = std::fmod(0.6180339887498949 * static_cast<double>(sampler_.count(kind)), 1.0);
    const Operation window = window_of(operation, ratio(size, bytes), at);
    const Measurement part = measure(window, model::bytes_read_once(operation.threads));
    step.simulated += part.picoseconds();
    return (part + barrier() * -1.0) * ratio(bytes, bytes_of(window)) + barrier();
  }

  [[nodiscard]] Measurement barrier() const {
    model::TimeAccount account;
    account.add(model::Owner::barrier, spec_.engine.barrier);
    return {account, {}, {}};
  }

  [[nodiscard]] Measurement measure(const Operation& operation, Bytes read_once) {
    model::MemoryPath& memory = soc_.memory();
    if (model::StorageDma* dma = soc_.storage_dma()) {
      dma->set_rate(storage_.dma_rate(), 0, ledger_.available());
    }
    const model::MemoryCounters before = memory.counters();
    const model::DramActivity activity_before = memory.activity(model::now());
    model::TimeAccount account = soc_.cpu().run(operation.threads, read_once);
    account.add(model::Owner::barrier, spec_.engine.barrier);
    return {account, memory.counters() - before, memory.activity(model::now()) - activity_before};
  }

  /// Gives every step what its reused operators take.
  void fill_in() {
    for (std::size_t i = 0; i < record_.steps.size(); ++i) {
      StepResult& step = record_.steps[i];
      double variance = 0;
      for (const Pending& pending : pending_[i]) {
        const Estimate e = sampler_.estimate(pending.kind);
        const auto n = static_cast<double>(pending.count);
        step.total += e.mean * n;
        book(step.mark, pending.op, e.mean * n);
        variance += n * e.half_width * n *
                    e.half_width;  // one estimate serves them all: its error does not average out
      }
      step.half_width = std::sqrt(variance);
    }
  }

  [[nodiscard]] std::optional<std::int64_t> generated() const {
    return record_.steps.empty() ? std::nullopt : std::optional(decoded_);
  }
  [[nodiscard]] std::string when() const {
    return record_.steps.empty() ? "at load" : fmt::format("after {} generated tokens", decoded_);
  }

  const config::RunSpec& spec_;
  const RunHooks& hooks_;
  OperationReader reader_;
  Soc soc_;
  model::MemoryLedger ledger_;
  RunStorage storage_;
  model::StorageCounters before_decode_;
  Sampler sampler_;
  std::unordered_map<std::uint64_t, Pilot> pilots_;  ///< by shape
  std::set<std::int64_t> knots_;                     ///< decode steps
  std::int64_t decoded_ = 0;
  bool phase_begins_ = false;                  ///< with this step
  Bytes step_bytes_;                           ///< of its operators so far
  std::vector<std::vector<Pending>> pending_;  ///< by step
  RunRecord record_;
  sc_core::sc_process_handle main_;
  Picoseconds played_;  ///< simulated time
  bool begun_ = false;
  bool done_ = false;
  std::exception_ptr failure_;
};

}  // namespace

RunRecord run_stream(const config::RunSpec& spec, trace::AccessSource& source, const RunHooks& hooks) {
  Runner runner("runner", spec, source, hooks);
  sc_core::sc_start();
  return runner.take();
}

}  // namespace kvsim::sim
