// SPDX-License-Identifier: Apache-2.0
// The live workload: a language model that loads, reads a prompt, and generates.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "traces/record/source.h"
#include "traces/workload/memory_layout.h"

namespace kvsim::trace {

/// First an Alloc for everything that is allocated. Then the steps: prefill of the prompt, one step per
/// ubatch, `generate` decode steps of one token each, and, if anything was generated, probe steps at the
/// depths of 0, 512, 1024, 2048, ... tokens that lie within the prompt. A step is its step_begin mark, the
/// operators in llama.cpp's order, each begun by its mark, and step_end. A batch never reaches beyond a
/// step's end.
class LlmWorkload final : public AccessSource {
 public:
  /// Throws UserError if `run` does not make sense. Precondition: its numbers are in the ranges of the
  /// schemas.
  explicit LlmWorkload(const LlmRun& run);
  ~LlmWorkload() override;

  [[nodiscard]] bool next(std::vector<Record>& batch) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvsim::trace
