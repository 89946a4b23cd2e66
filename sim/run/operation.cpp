// SPDX-License-Identifier: Apache-2.0
#include "sim/run/operation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "models/cpu/cpu.h"

namespace kvsim::sim {

using trace::Extent;
using trace::Mark;

namespace {

constexpr std::int64_t kSmallExtent = 64 << 10;

Extent part_of(const Extent& e, double fraction, double at) {
  Extent part = e;
  if (e.rows == 1 || e.stride == e.row_bytes) {
    const std::int64_t bytes = total_bytes(e).count();
    const std::int64_t size = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(bytes))) &
                              ~(model::kLineBytes - 1);
    const std::int64_t start =
        static_cast<std::int64_t>(at * static_cast<double>(bytes - size)) & ~(model::kLineBytes - 1);
    part.address = e.address + static_cast<trace::Address>(start);
    part.row_bytes = part.stride = Bytes(std::max(size, model::kLineBytes));
    part.rows = 1;
    return part;
  }
  const double rows = std::max(1.0, std::round(fraction * e.rows));
  const auto first = static_cast<std::uint32_t>(at * (e.rows - rows));
  part.rows = static_cast<std::uint32_t>(rows);
  part.address = e.address + static_cast<trace::Address>(first * e.stride.count());
  return part;
}

}  // namespace

Bytes bytes_of(const model::ThreadWork& thread) {
  Bytes sum;
  for (const Extent& extent : thread.extents) {
    sum += total_bytes(extent);
  }
  return sum;
}

Bytes bytes_of(const Operation& operation) {
  Bytes sum;
  for (const model::ThreadWork& thread : operation.threads) {
    sum += bytes_of(thread);
  }
  return sum;
}

namespace {

/// An operator that goes over its tensors again and again does so in rounds of a few extents, large and small
/// ones: of that many some rounds stand for all.
constexpr std::size_t kManyExtents = 48;

bool alike(const Extent& a, const Extent& b) {
  return a.row_bytes == b.row_bytes && a.rows == b.rows && a.access == b.access && a.kind == b.kind;
}

/// Whole rounds, `fraction` of all, beginning at `at` of what that leaves out.
std::vector<Extent> some_rounds(const std::vector<Extent>& extents, double fraction, double at) {
  const auto again = std::find_if(extents.begin() + 1, extents.end(),
                                  [&](const Extent& extent) { return alike(extent, extents.front()); });
  const auto round = again - extents.begin();
  const auto rounds = static_cast<double>(std::ssize(extents) / round);
  const auto count = static_cast<std::ptrdiff_t>(std::max(1.0, std::round(rounds * fraction)));
  const auto first = static_cast<std::ptrdiff_t>((rounds - static_cast<double>(count)) * at);
  const auto begin = extents.begin() + first * round;
  return {begin, begin + count * round};
}

}  // namespace

Bytes model_bytes(const Operation& operation) {
  Bytes written;
  for (const model::ThreadWork& thread : operation.threads) {
    for (const trace::Extent& extent : thread.extents) {
      const bool counts = extent.kind == trace::Kind::weights || extent.kind == trace::Kind::kv;
      written += counts && extent.access == trace::Access::write ? total_bytes(extent) : Bytes();
    }
  }
  return model::bytes_read_once(operation.threads, {trace::Kind::weights, trace::Kind::kv}) + written;
}

Operation window_of(const Operation& operation, double fraction, double at) {
  Operation window{.mark = operation.mark, .threads = {}};
  for (const model::ThreadWork& thread : operation.threads) {
    model::ThreadWork& part = window.threads.emplace_back();
    if (thread.extents.size() >= kManyExtents) {
      part.extents = some_rounds(thread.extents, fraction, at);
    } else {
      for (const Extent& extent : thread.extents) {
        part.extents.push_back(total_bytes(extent).count() > kSmallExtent ? part_of(extent, fraction, at)
                                                                          : extent);
      }
    }
    const Bytes whole = bytes_of(thread);
    part.simd_operations =
        static_cast<std::uint64_t>(std::llround(static_cast<double>(thread.simd_operations) * fraction));
    if (whole > Bytes()) {
      part.simd_operations = static_cast<std::uint64_t>(
          std::llround(static_cast<double>(thread.simd_operations) * ratio(bytes_of(part), whole)));
    }
  }
  return window;
}

Operation with_extents(const Operation& operation,
                       const std::function<void(const trace::Extent&, std::vector<trace::Extent>&)>& place) {
  Operation result{.mark = operation.mark, .threads = {}};
  for (const model::ThreadWork& thread : operation.threads) {
    model::ThreadWork& to = result.threads.emplace_back(model::ThreadWork{{}, thread.simd_operations});
    to.extents.reserve(thread.extents.size());
    for (const trace::Extent& extent : thread.extents) {
      place(extent, to.extents);
    }
  }
  return result;
}

OperationReader::OperationReader(trace::AccessSource& source, const config::DeviceSpec& device)
    : source_(source), cores_(0), capacity_(static_cast<std::uint64_t>(dram_capacity(device).count())) {
  for (const config::ClusterSpec& cluster : device.clusters) {
    cores_ += static_cast<std::size_t>(cluster.count);
  }
}

bool OperationReader::refill() {
  at_ = 0;
  return source_.next(batch_);
}

void OperationReader::drain(const std::function<void(const trace::Record&)>& show) {
  while (at_ < batch_.size() || refill()) {
    show(batch_[at_++]);
  }
}

model::ThreadWork& OperationReader::thread(Stream stream) {
  if (stream.pos() >= cores_) {
    throw UserError(fmt::format(
        "the access stream uses thread {}, but the device has {} cores: choose a device with more "
        "cores, or record with fewer threads",
        stream.value(), cores_));
  }
  while (operation_.threads.size() <= stream.pos()) {
    if (spare_.empty()) {
      operation_.threads.emplace_back();
    } else {
      operation_.threads.push_back(std::move(spare_.back()));
      spare_.pop_back();
    }
  }
  return operation_.threads[stream.pos()];
}

void OperationReader::take(const Extent& extent) {
  const auto span = static_cast<std::uint64_t>(extent.stride.count()) * (extent.rows - 1) +
                    static_cast<std::uint64_t>(extent.row_bytes.count());
  if (extent.address >= capacity_ || span > capacity_ - extent.address) {
    throw UserError(
        fmt::format("the access stream touches {} bytes at address {:#x}, beyond the device's {} bytes of "
                    "memory: choose a device with more memory",
                    span, extent.address, capacity_));
  }
  thread(extent.stream).extents.push_back(extent);
}

void OperationReader::take(const trace::Compute& compute) {
  thread(compute.stream).simd_operations += compute.operations;
}

void OperationReader::check_step(const Mark& mark) {
  const bool begins = mark.what == Mark::What::step_begin;
  if (begins == in_step_) {
    throw UserError(
        "the access stream is not in order: a step begins within another, or an operator or the end of a "
        "step stands outside a step");
  }
}

/// In the room of the last one, which its user has done with.
void OperationReader::begin_operation(const Mark& mark) {
  if (auto* last = std::get_if<Operation>(&item_)) {
    std::swap(operation_.threads, last->threads);
  }
  operation_.mark = mark;
  for (model::ThreadWork& thread : operation_.threads) {
    thread.extents.clear();
    thread.simd_operations = 0;
    spare_.push_back(std::move(thread));
  }
  operation_.threads.clear();
}

const OperationReader::Item* OperationReader::next() {
  bool in_operator = false;
  while (at_ < batch_.size() || refill()) {
    const trace::Record& record = batch_[at_];
    const auto* mark = std::get_if<Mark>(&record);
    const bool access =
        std::holds_alternative<Extent>(record) || std::holds_alternative<trace::Compute>(record);
    if (in_operator && !access) {
      if (auto* last = std::get_if<Operation>(&item_)) {
        std::swap(*last, operation_);
      } else {
        item_ = std::move(operation_);
      }
      return &item_;
    }
    if (!in_operator && access) {
      throw UserError("the access stream is not in order: an access stands outside an operator");
    }
    ++at_;
    if (const auto* extent = std::get_if<Extent>(&record)) {
      take(*extent);
    } else if (const auto* compute = std::get_if<trace::Compute>(&record)) {
      take(*compute);
    } else if (const auto* alloc = std::get_if<trace::Alloc>(&record)) {
      item_ = *alloc;
      return &item_;
    } else if (const auto* free = std::get_if<trace::Free>(&record)) {
      item_ = *free;
      return &item_;
    } else {
      check_step(*mark);
      if (mark->what != Mark::What::operator_begin) {
        in_step_ = !in_step_;
        item_ = *mark;
        return &item_;
      }
      begin_operation(*mark);
      in_operator = true;
    }
  }
  if (in_operator || in_step_) {
    throw UserError("the access stream ends in the middle of a step");
  }
  return nullptr;
}

}  // namespace kvsim::sim
