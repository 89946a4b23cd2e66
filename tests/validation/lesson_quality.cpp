// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/lesson_quality.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/gguf/gguf_file.h"

namespace kvsim::testing {
namespace {

using Specs = std::vector<std::string>;
using trace::KvQuality;

const std::string kTiny = std::string(KVSIM_SOURCE_DIR) + "/tests/data/tiny/";

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string recalled(const KvQuality& q) {
  return fmt::format("{} of {}", q.recall.recalled, q.recall.asked);
}

std::string figures(const std::string& name, const KvQuality& q, const KvQuality& reference) {
  return fmt::format("| {} | {} | {} | {:.4f} | {:+.3f} % | {} | {:.2g} | {:.2g} | {:.6f} |", name,
                     q.bytes_per_token.count(), q.peak_bytes.count(), q.perplexity,
                     100 * (q.perplexity / reference.perplexity - 1), recalled(q), q.attention_error.mean,
                     q.attention_error.p95, q.attention_error.cosine);
}

/// One row per specification, the first being what the others are compared with.
std::vector<KvQuality> table(const std::string& title, const QualityCase& on, const Specs& specs) {
  say(fmt::format("\n## {}\n", title));
  say("| KV | B/token | peak B | perplexity | change | recalled | attention error, mean | p95 | cosine |\n"
      "|---|---|---|---|---|---|---|---|---|");
  std::vector<KvQuality> found;
  for (const std::string& spec : specs) {
    found.push_back(measure_specs(on, {spec}).front());
    say(figures(spec, found.back(), found.front()));
  }
  return found;
}

void error_by_layer(const Specs& specs, const std::vector<KvQuality>& found) {
  say("\n| KV | layer 0 | 1 | 2 | 3 |\n|---|---|---|---|---|");
  for (std::size_t i = 1; i < specs.size(); ++i) {
    std::string line = fmt::format("| {} |", specs[i]);
    for (const trace::AttentionError& error : found[i].error_by_layer) {
      line += fmt::format(" {:.2g} |", error.mean);
    }
    say(line);
  }
}

constexpr std::uint32_t kSpan = 256;  // of positions and distances in the tables
constexpr std::uint32_t kContext = 2048;

std::string span_head(const std::string& first) {
  std::string head = "\n| " + first + " |";
  std::string rule = "|---|";
  for (std::uint32_t at = 0; at < kContext; at += kSpan) {
    head += fmt::format(" {}-{} |", at, at + kSpan - 1);
    rule += "---|";
  }
  return head + "\n" + rule;
}

/// The mean over a span's bins of 128, which hold about as many tokens each.
double error_between(const KvQuality& q, std::uint32_t from, std::uint32_t to) {
  double sum = 0;
  int bins = 0;
  for (const auto& [at, error] : q.error_by_position) {
    if (at >= from && at < to) {
      sum += error.mean;
      ++bins;
    }
  }
  return bins == 0 ? 0 : sum / bins;
}

void error_by_position(const Specs& specs, const std::vector<KvQuality>& found) {
  say(span_head("attention error at position"));
  for (std::size_t i = 1; i < specs.size(); ++i) {
    std::string line = fmt::format("| {} |", specs[i]);
    for (std::uint32_t at = 0; at < kContext; at += kSpan) {
      line += fmt::format(" {:.3g} |", error_between(found[i], at, at + kSpan));
    }
    say(line);
  }
}

void recall_by_distance(const Specs& specs, const std::vector<KvQuality>& found) {
  say(span_head("recalled, fact this far back"));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    std::string line = fmt::format("| {} |", specs[i]);
    for (std::uint32_t at = 0; at < kContext; at += kSpan) {
      line += fmt::format(" {:.0f} % |", 100 * recall_between(found[i], at, at + kSpan));
    }
    say(line);
  }
}

/// Documents of at least `tokens`.
QualityCase long_documents(std::size_t tokens) {
  QualityCase on = tiny_case();
  std::erase_if(on.documents, [&](const trace::TokenSequence& d) { return d.tokens.size() < tokens; });
  return on;
}

}  // namespace

QualityCase tiny_case() {
  const std::string sequences = kTiny + "sequences.jsonl";
  return {.weights = trace::llama_weights(config::GgufFile::open(kTiny + "tiny-f32.gguf")),
          .documents = trace::parse_sequences(sequences, trace::read_text(sequences))};
}

void map_heads(trace::LlamaWeights& weights, const std::vector<std::size_t>& kv_head_of) {
  check(kv_head_of.size() == weights.heads, "every query head reads a KV head");
  const std::size_t share = weights.heads / weights.kv_heads;
  std::vector<std::size_t> head_at;  // [place]: whose queries stand there
  for (std::size_t kv = 0; kv < weights.kv_heads; ++kv) {
    for (std::size_t head = 0; head < weights.heads; ++head) {
      if (kv_head_of[head] == kv) {
        head_at.push_back(head);
      }
    }
    check(head_at.size() == (kv + 1) * share, "each KV head is read by as many query heads");
  }
  for (trace::LlamaLayer& layer : weights.layers) {
    const trace::Linear q = layer.q;
    const trace::Linear out = layer.attn_output;
    for (std::size_t place = 0; place < weights.heads; ++place) {
      const std::size_t to = place * weights.head_dim;
      const std::size_t from = head_at[place] * weights.head_dim;
      std::copy_n(q.row(from).begin(), weights.head_dim * q.columns,
                  layer.q.numbers.begin() + static_cast<std::ptrdiff_t>(to * q.columns));
      for (std::size_t row = 0; row < out.numbers.size() / out.columns; ++row) {
        std::copy_n(out.row(row).begin() + static_cast<std::ptrdiff_t>(from), weights.head_dim,
                    layer.attn_output.numbers.begin() + static_cast<std::ptrdiff_t>(row * out.columns + to));
      }
    }
  }
}

std::vector<KvQuality> measure_specs(const QualityCase& on, const Specs& specs) {
  const trace::QualityOptions options{.threads = std::max(1U, std::thread::hardware_concurrency()),
                                      .profile = true};
  std::vector<KvQuality> found;
  for (const std::string& spec : specs) {
    found.push_back(*trace::measure_quality(on.weights, config::parse_kv_spec(spec), on.documents, options));
  }
  return found;
}

double recall_between(const KvQuality& quality, std::uint32_t from, std::uint32_t to) {
  trace::Recall sum;
  for (const auto& [distance, recall] : quality.recall_by_distance) {
    if (distance >= from && distance < to) {
      sum.recalled += recall.recalled;
      sum.asked += recall.asked;
    }
  }
  return sum.asked == 0 ? 0 : static_cast<double>(sum.recalled) / static_cast<double>(sum.asked);
}

void f1() {
  const Specs specs = {
      "f32",      "f16",      "int8:g32",     "int8:g64",      "int8:channel",  "k=int8:channel,v=int8:g32",
      "int4:g32", "int4:g64", "int4:channel", "int4:g32:asym", "int4:g64:asym", "k=int4:channel,v=int4:g32",
      "q8_0",     "q4_0"};
  error_by_layer(specs, table("F1: formats, all 48 documents", tiny_case(), specs));
}

void f2() {
  const Specs specs = {"f32", "int8:g32", "int8:g32+first=5%", "int4:g32", "int4:g32+first=5%"};
  error_by_position(specs, table("F2: documents of about 2048 tokens", long_documents(1500), specs));
}

void f3() {
  Specs specs = {"f32"};
  for (const int limit : {2, 4, 8, 16}) {
    specs.push_back(fmt::format("int4:range={}", limit));
  }
  specs.insert(specs.end(), {"k=int4:range=8,v=int4:range=2", "int8:range=16", "int4:head", "int4:g32"});
  table("F3: one range for all, or per head, all 48 documents", tiny_case(), specs);
}

void f4() {
  for (const auto& [budget, tokens] : {std::pair{320, 400}, std::pair{1024, 1500}}) {
    QualityCase on = long_documents(static_cast<std::size_t>(tokens));
    std::erase_if(on.documents, [&, most = tokens + tokens / 2](const trace::TokenSequence& d) {
      return d.tokens.size() > static_cast<std::size_t>(most);
    });
    const Specs specs = {"f32",
                         fmt::format("f16+window={}", budget),
                         fmt::format("f16+window={}+sinks=4", budget - 4),
                         fmt::format("f16+h2o={}", budget),
                         fmt::format("f16+entropy={}", budget),
                         fmt::format("f16+topk={}", budget),
                         fmt::format("int8:g32+window={}", budget)};
    recall_by_distance(
        specs,
        table(fmt::format("F4: {} documents, {} tokens stay", on.documents.size(), budget), on, specs));
  }
}

void f5() {
  const Specs specs = {"f32",         "f16+window=512",  "f16+window=508+sinks=4",
                       "f16+h2o=512", "f16+entropy=512", "f16+topk=512"};
  recall_by_distance(specs, table("F5: documents of about 1024 and 2048 tokens, 512 stay or are read",
                                  long_documents(900), specs));
}

void f6() {
  say("\n## F6: which KV head each of the four query heads reads, all 48 documents\n");
  say("| mapping | perplexity | recalled |\n|---|---|---|");
  const auto row = [](const std::string& name, const std::vector<std::size_t>& mapping) {
    QualityCase on = tiny_case();
    map_heads(on.weights, mapping);
    const KvQuality q = measure_specs(on, {"f32"}).front();
    say(fmt::format("| {} | {:.3f} | {} |", name, q.perplexity, recalled(q)));
  };
  row("0 0 1 1 (h / 2, right)", {0, 0, 1, 1});
  row("1 1 0 0 (reversed)", {1, 1, 0, 0});
  row("0 1 0 1 (h % 2)", {0, 1, 0, 1});
  row("1 0 1 0", {1, 0, 1, 0});
}

void f8() {
  const KvQuality q = measure_specs(tiny_case(), {"f32"}).front();
  say(fmt::format(
      "\n## F8: share of attention by distance, all 48 documents; {:.1f} % on the first four tokens\n",
      100 * q.profile->first_four));
  say("| distance | share | per token |\n|---|---|---|");
  std::uint32_t first = 0;
  for (std::size_t bin = 0; bin < q.profile->by_distance.size(); ++bin) {
    const std::uint32_t last = trace::profile_bin_end(bin);
    const double share = 100 * q.profile->by_distance[bin];
    say(fmt::format("| {} to {} | {:.2f} % | {:.4f} % |", first, last, share, share / (last - first + 1)));
    first = last + 1;
  }
}

}  // namespace kvsim::testing
