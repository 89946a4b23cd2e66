// SPDX-License-Identifier: Apache-2.0
// What a KV cache's formats and policies cost in accuracy, measured by running the model.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "configs/spec/kv_spec.h"
#include "configs/spec/run_spec.h"
#include "configs/units/quantity.h"
#include "traces/llama/sequences.h"
#include "traces/llama/weights.h"

namespace kvsim::trace {

struct Recall {
  std::uint64_t recalled = 0;
  std::uint64_t asked = 0;
};

/// Of attention's output for a token in one layer against exact attention over the same queries, keys and
/// values: length of the difference over length of the exact one, and the cosine between the two.
struct AttentionError {
  double mean = 0;
  double p95 = 0;
  double cosine = 1;  ///< mean
};

/// Where attention looks: share of the softmax weights, mean over queries, heads and layers.
struct MassProfile {
  std::vector<double>
      by_distance;        ///< [bin]: distance 0, 1, 2, 3-4, 5-8, 9-16, ...: each up to a power of two
  double first_four = 0;  ///< on the first four tokens, whatever their distance
};

/// Upper end of a bin of MassProfile::by_distance.
[[nodiscard]] std::uint32_t profile_bin_end(std::size_t bin);

struct KvQuality {
  config::KvSpec spec;
  Bytes bytes_per_token;  ///< that one more token takes once it is in the cache's own format
  Bytes peak_bytes;       ///< the most that one sequence's tokens took
  double nll_sum = 0;     ///< natural logarithm, over all tokens but the first of each sequence
  std::uint64_t predicted = 0;
  double perplexity = 0;
  Recall recall;
  std::map<std::uint32_t, Recall> recall_by_distance;  ///< by the lower end of a bin of 128
  AttentionError attention_error;
  std::vector<AttentionError> error_by_layer;
  std::map<std::uint32_t, AttentionError> error_by_position;  ///< by the lower end of a bin of 128
  std::optional<MassProfile> profile;
};

inline constexpr std::uint32_t kQualityBin = 128;

struct QualityOptions {
  unsigned threads = 1;
  bool profile = false;
  config::KvLayout layout = config::KvLayout::head_major;
  const std::atomic<bool>* stop = nullptr;  ///< looked at between batches of tokens; true: give up
};

/// Throws UserError if the model's heads cannot be kept so.
void check_spec(const LlamaWeights& weights, const config::KvSpec& spec);

/// Runs every sequence with the true tokens fed. Each begins with an empty cache. The figures do not depend
/// on the number of threads. None if it was stopped. Throws UserError if a sequence does not fit the model.
[[nodiscard]] std::optional<KvQuality> measure_quality(const LlamaWeights& weights,
                                                       const config::KvSpec& spec,
                                                       const std::vector<TokenSequence>& sequences,
                                                       const QualityOptions& options);

}  // namespace kvsim::trace
