// SPDX-License-Identifier: Apache-2.0
#include "models/storage/fio_job.h"

#include <algorithm>
#include <cmath>

#include "traces/record/spread.h"

namespace kvsim::model {

namespace {

constexpr int kBatch = 16'384;  // completions

bool is_random(FioPattern pattern) {
  return pattern == FioPattern::randread || pattern == FioPattern::randwrite;
}

bool is_write(FioPattern pattern) {
  return pattern == FioPattern::write || pattern == FioPattern::randwrite;
}

}  // namespace

void FioLatency::add(Picoseconds time) {
  const std::int64_t ns = (time.count() + 500) / 1000;
  least = histogram.count() == 0 ? ns : std::min(least, ns);
  histogram.add(ns);
  const auto value = static_cast<double>(ns);
  sum += value;
  squares += value * value;
}

double FioLatency::mean() const {
  return histogram.count() == 0 ? 0 : sum / static_cast<double>(histogram.count());
}

double FioLatency::deviation() const {
  if (histogram.count() == 0) {
    return 0;
  }
  return std::sqrt(std::max(0.0, squares / static_cast<double>(histogram.count()) - mean() * mean()));
}

FioJob::FioJob(StorageDevice& device, const FioSpec& spec)
    : device_(device),
      spec_(spec),
      blocks_(std::max<std::int64_t>(spec.size.count() / spec.block.count(), 1)),
      random_(trace::spread(spec.seed)),
      left_(blocks_) {
  for (std::int64_t job = 0; job < spec.jobs; ++job) {
    position_.push_back(job * blocks_ / spec.jobs);  // as fio's offset_increment
  }
  for (std::int64_t i = 0; i < spec.depth; ++i) {
    for (std::size_t job = 0; job < position_.size() && left_ > 0; ++job) {
      submit(job, Picoseconds());
    }
  }
}

Bytes FioJob::next_offset(std::size_t job) {
  if (is_random(spec_.pattern)) {
    return spec_.block * static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(blocks_)));
  }
  const std::int64_t block = position_[job];
  position_[job] = (block + 1) % blocks_;
  return spec_.block * block;
}

void FioJob::submit(std::size_t job, Picoseconds when) {
  --left_;
  device_.submit({.op = is_write(spec_.pattern) ? StorageOp::write : StorageOp::read,
                  .offset = next_offset(job),
                  .bytes = spec_.block,
                  .when = when,
                  .lane = static_cast<std::int64_t>(job)});
}

void FioJob::count(const StorageCompletion& done) {
  if (done.status != StorageStatus::ok) {
    if (result_.status == StorageStatus::ok) {
      result_.status = done.status;
      result_.place = done.place;
    }
    left_ = 0;
    return;
  }
  if (done.done <= spec_.ramp) {
    return;
  }
  const Picoseconds begin = done.request.when;
  ++result_.ios;
  result_.moved += done.request.bytes;
  result_.elapsed = done.done - spec_.ramp;
  result_.whole.add(done.done - begin);
  if (spec_.depth > 1) {
    result_.submission.add(done.issued - begin);
    result_.completion.add(done.done - done.issued);
  } else {
    result_.completion.add(done.done - begin);
  }
}

bool FioJob::take_batch() {
  for (int i = 0; i < kBatch; ++i) {
    const std::optional<StorageCompletion> done = device_.next();
    if (!done) {
      return false;
    }
    count(*done);
    if (left_ > 0 && done->done < spec_.runtime + spec_.ramp) {
      submit(static_cast<std::size_t>(done->request.lane), done->done);
    }
  }
  return true;
}

}  // namespace kvsim::model
