// SPDX-License-Identifier: Apache-2.0
#include "traces/llama/quality.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "traces/llama/decoder.h"

namespace kvsim::trace {
namespace {

/// One token in one layer.
struct ErrorSample {
  std::uint32_t layer = 0;
  std::uint32_t position = 0;
  float relative = 0;
  float cosine = 1;
};

ErrorSample compare(std::span<const float> out, std::span<const float> exact) {
  double difference = 0, length = 0, out_length = 0, product = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double a = out[i], b = exact[i];
    difference += (a - b) * (a - b);
    length += b * b;
    out_length += a * a;
    product += a * b;
  }
  if (length == 0 || out_length == 0) {
    return {.relative = length == out_length ? 0.0F : 1.0F, .cosine = length == out_length ? 1.0F : 0.0F};
  }
  return {.relative = static_cast<float>(std::sqrt(difference / length)),
          .cosine = static_cast<float>(product / std::sqrt(length * out_length))};
}

std::size_t profile_bin(std::uint32_t distance) {
  return distance == 0 ? 0 : static_cast<std::size_t>(std::bit_width(distance - 1)) + 1;
}

/// What one sequence gave.
struct Findings {
  double nll = 0;
  std::uint64_t predicted = 0;
  std::vector<std::pair<std::uint32_t, bool>> answers;  // distance, recalled
  std::vector<ErrorSample> errors;
  std::vector<double> mass;
  double mass_on_first = 0;
  std::uint64_t mass_queries = 0;
  Bytes peak;
};

class Observer final : public DecoderObserver, public MassSink {
 public:
  Observer(Findings& findings, const LlamaWeights& weights, bool profile)
      : findings_(findings), width_(weights.heads * weights.head_dim), profile_(profile) {}

  void attention(const AttentionOutputs& outputs) override {
    for (std::size_t t = 0; t * width_ < outputs.out.size(); ++t) {
      ErrorSample sample =
          compare(outputs.out.subspan(t * width_, width_), outputs.exact.subspan(t * width_, width_));
      sample.layer = outputs.layer.value();
      sample.position = outputs.first.value() + static_cast<std::uint32_t>(t);
      findings_.errors.push_back(sample);
    }
  }

  MassSink* mass() override { return profile_ ? this : nullptr; }

  void put(const MassQuery& of, std::span<const Token> tokens, std::span<const float> mass) override {
    const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::size_t bin = profile_bin(of.query.value() - tokens[i].value());
      findings_.mass.resize(std::max(findings_.mass.size(), bin + 1));
      findings_.mass[bin] += double{mass[i]} / total;
      findings_.mass_on_first += tokens[i].value() < 4 ? double{mass[i]} / total : 0.0;
    }
    ++findings_.mass_queries;
  }

 private:
  Findings& findings_;
  std::size_t width_;
  bool profile_;
};

/// Natural logarithm of the probability that the logits give to `token`.
double log_likelihood(std::span<const float> logits, std::uint32_t token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(double{logit} - largest);
  }
  return double{logits[token]} - largest - std::log(sum);
}

class SequenceRun {
 public:
  SequenceRun(const LlamaWeights& weights, const TokenSequence& sequence)
      : weights_(weights), sequence_(sequence) {}

  /// False if it was stopped.
  bool run(LlamaDecoder& decoder, Findings& findings) {
    if (!decoder.feed(sequence_.tokens, logits_)) {
      return false;
    }
    for (std::size_t i = 1; i < sequence_.tokens.size(); ++i) {
      findings.nll -= log_likelihood(predicting(i), sequence_.tokens[i]);
    }
    findings.predicted = sequence_.tokens.size() - 1;
    for (const Answer& answer : sequence_.answers) {
      findings.answers.emplace_back(answer.distance, recalled(answer));
    }
    findings.peak = decoder.peak_bytes();
    return true;
  }

 private:
  /// Logits for the token at `index`.
  [[nodiscard]] std::span<const float> predicting(std::size_t index) const {
    return std::span(logits_).subspan((index - 1) * weights_.vocabulary, weights_.vocabulary);
  }

  [[nodiscard]] bool recalled(const Answer& answer) const {
    for (std::size_t i = answer.first; i < answer.first + kAnswerTokens; ++i) {
      const auto logits = predicting(i);
      if (std::max_element(logits.begin(), logits.end()) - logits.begin() != sequence_.tokens[i]) {
        return false;
      }
    }
    return true;
  }

  const LlamaWeights& weights_;
  const TokenSequence& sequence_;
  std::vector<float> logits_;
};

AttentionError summary(std::vector<ErrorSample> samples) {
  if (samples.empty()) {
    return {};
  }
  AttentionError error{.cosine = 0};
  for (const ErrorSample& sample : samples) {
    error.mean += double{sample.relative};
    error.cosine += double{sample.cosine};
  }
  const auto count = static_cast<double>(samples.size());
  error.mean /= count;
  error.cosine /= count;
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>((samples.size() - 1) * 95 / 100);
  std::nth_element(samples.begin(), at, samples.end(),
                   [](const ErrorSample& a, const ErrorSample& b) { return a.relative < b.relative; });
  error.p95 = double{at->relative};
  return error;
}

void summarise_errors(const std::vector<Findings>& all, KvQuality& quality) {
  std::vector<ErrorSample> every;
  std::map<std::uint32_t, std::vector<ErrorSample>> by_layer, by_position;
  for (const Findings& findings : all) {
    every.insert(every.end(), findings.errors.begin(), findings.errors.end());
    for (const ErrorSample& sample : findings.errors) {
      by_layer[sample.layer].push_back(sample);
      by_position[sample.position / kQualityBin * kQualityBin].push_back(sample);
    }
  }
  quality.attention_error = summary(std::move(every));
  for (auto& [layer, samples] : by_layer) {
    quality.error_by_layer.push_back(summary(std::move(samples)));
  }
  for (auto& [position, samples] : by_position) {
    quality.error_by_position.emplace(position, summary(std::move(samples)));
  }
}

MassProfile profile_of(const std::vector<Findings>& all) {
  MassProfile profile;
  double queries = 0;
  for (const Findings& findings : all) {
    profile.by_distance.resize(std::max(profile.by_distance.size(), findings.mass.size()));
    std::transform(findings.mass.begin(), findings.mass.end(), profile.by_distance.begin(),
                   profile.by_distance.begin(), std::plus<>());
    profile.first_four += findings.mass_on_first;
    queries += static_cast<double>(findings.mass_queries);
  }
  for (double& share : profile.by_distance) {
    share /= queries;
  }
  profile.first_four /= queries;
  return profile;
}

KvQuality summarise(const std::vector<Findings>& all, KvQuality quality) {
  for (const Findings& findings : all) {
    quality.nll_sum += findings.nll;
    quality.predicted += findings.predicted;
    quality.peak_bytes = std::max(quality.peak_bytes, findings.peak);
    for (const auto& [distance, recalled] : findings.answers) {
      for (Recall* recall :
           {&quality.recall, &quality.recall_by_distance[distance / kQualityBin * kQualityBin]}) {
        recall->recalled += recalled ? 1 : 0;
        ++recall->asked;
      }
    }
  }
  quality.perplexity = std::exp(quality.nll_sum / static_cast<double>(quality.predicted));
  summarise_errors(all, quality);
  return quality;
}

/// Hands out the sequences, the longest first, so that the threads end together.
class Work {
 public:
  Work(const LlamaWeights& weights, const config::KvSpec& spec, const std::vector<TokenSequence>& sequences,
       const QualityOptions& options)
      : weights_(weights), spec_(spec), sequences_(sequences), options_(options), order_(sequences.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return sequences_[a].tokens.size() > sequences_[b].tokens.size();
    });
    findings_.resize(sequences.size());
  }

  bool run() {
    const auto count = std::clamp<std::size_t>(options_.threads, 1, sequences_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < count; ++i) {
      threads.emplace_back([this] { work(); });
    }
    work();
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    return !stopped_;
  }

  [[nodiscard]] const std::vector<Findings>& findings() const { return findings_; }

 private:
  void work() {
    try {
      for (std::size_t i = next_++; i < order_.size() && !stopped_; i = next_++) {
        run_one(order_[i]);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      stopped_ = true;
    }
  }

  void run_one(std::size_t index) {
    Findings& findings = findings_[index];
    Observer observer(findings, weights_, options_.profile);
    LlamaDecoder decoder(weights_, {.kv = spec_,
                                    .layout = options_.layout,
                                    .capacity = static_cast<std::int64_t>(sequences_[index].tokens.size()),
                                    .observer = &observer,
                                    .stop = options_.stop});
    SequenceRun run(weights_, sequences_[index]);
    stopped_ = stopped_ || !run.run(decoder, findings);
  }

  const LlamaWeights& weights_;
  const config::KvSpec& spec_;
  const std::vector<TokenSequence>& sequences_;
  const QualityOptions& options_;
  std::vector<std::size_t> order_;
  std::vector<Findings> findings_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

void check_sequences(const LlamaWeights& weights, const std::vector<TokenSequence>& sequences) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto& tokens = sequences[i].tokens;
    const std::uint32_t largest = *std::max_element(tokens.begin(), tokens.end());
    if (tokens.size() > weights.context || largest >= weights.vocabulary) {
      throw UserError(
          fmt::format("sequence {}: {} tokens up to number {} do not fit a model with a context of {} and a "
                      "vocabulary of {}",
                      i + 1, tokens.size(), largest, weights.context, weights.vocabulary));
    }
  }
}

}  // namespace

std::uint32_t profile_bin_end(std::size_t bin) {
  return bin == 0 ? 0 : 1U << (bin - 1);
}

void check_spec(const LlamaWeights& weights, const config::KvSpec& spec) {
  const KvCache tried({.layers = 1,
                       .kv_heads = static_cast<std::int64_t>(weights.kv_heads),
                       .head_dim = static_cast<std::int64_t>(weights.head_dim),
                       .capacity = static_cast<std::int64_t>(weights.context),
                       .spec = spec,
                       .layout = config::KvLayout::head_major},
                      0, KvPayload::none);
  static_cast<void>(tried);
}

std::optional<KvQuality> measure_quality(const LlamaWeights& weights, const config::KvSpec& spec,
                                         const std::vector<TokenSequence>& sequences,
                                         const QualityOptions& options) {
  check_sequences(weights, sequences);
  const KvShape shape{.layers = static_cast<std::int64_t>(weights.layers.size()),
                      .kv_heads = static_cast<std::int64_t>(weights.kv_heads),
                      .head_dim = static_cast<std::int64_t>(weights.head_dim),
                      .capacity = static_cast<std::int64_t>(weights.context),
                      .spec = spec,
                      .layout = options.layout};
  Work work(weights, spec, sequences, options);
  if (!work.run()) {
    return {};
  }
  KvQuality quality;
  quality.spec = spec;
  quality.bytes_per_token = bytes_per_token(shape);
  quality = summarise(work.findings(), std::move(quality));
  if (options.profile) {
    quality.profile = profile_of(work.findings());
  }
  return quality;
}

}  // namespace kvsim::trace
