// SPDX-License-Identifier: Apache-2.0
// The only currency between software and hardware: plain records of what the software does to memory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "configs/units/index.h"
#include "configs/units/quantity.h"

namespace kvsim::trace {

/// Physical byte address. The workload lays its regions out from 0; the device has no holes.
using Address = std::uint64_t;

enum class Access : std::uint8_t { read, write };

/// What the bytes are for.
enum class Kind : std::uint8_t { weights, kv, scratch, other };
inline constexpr int kKinds = 4;

/// What stands behind an allocation.
enum class Backing : std::uint8_t { anonymous, file_mapped, device_contiguous };

/// A probe is a decode step at a depth that the run itself does not pass, after its last token: what a token
/// costs there.
enum class Phase : std::uint8_t { load, prefill, decode, probe };

enum class Operator : std::uint8_t {
  none,
  embedding,
  attn_norm,
  q_proj,
  k_proj,
  v_proj,
  qkv_proj,
  qk_norm,
  rope,
  kv_append,
  attention,
  attn_output,
  ffn_norm,
  ffn_gate,
  ffn_up,
  activation,
  ffn_down,
  output_norm,
  logits,
  sampling,  ///< choosing the next token
  // Not in the order of the forward pass, since a recording has the numbers.
  attn_post_norm,  ///< Gemma: of what attention adds,
  ffn_post_norm,   ///< and of what the feed-forward network adds
  q_latent,        ///< latent attention: down-projection of queries (attn_q_a),
  kv_latent,       ///< of keys and values (attn_kv_a_mqa),
  latent_norm,     ///< norms of both,
  q_absorb,        ///< queries times the up-projection of K (attn_k_b),
  v_absorb,        ///< attention's results times that of V (attn_v_b)
  router,          ///< mixture of experts: a number per expert (ffn_gate_inp),
  expert_choice,   ///< the largest of them, as shares,
  expert_gate,     ///< products with the experts chosen,
  expert_up,
  expert_activation,
  expert_down,
  expert_sum,  ///< of their results, by their shares
};
inline constexpr int kOperators = static_cast<int>(Operator::expert_sum) + 1;

/// Streams are numbered from 0 and fewer than this, so that a consumer can keep one state per stream.
inline constexpr std::uint32_t kMaxStreams = 1024;

/// Bytes touched by one thread: `rows` runs of `row_bytes`, `stride` apart. A 16 MiB weight matrix is one
/// extent.
struct Extent {
  Address address = 0;
  Bytes row_bytes{};
  std::uint32_t rows = 1;
  Bytes stride{};  ///< from the start of a row to the start of the next; at least row_bytes
  Access access = Access::read;
  Kind kind = Kind::other;
  Stream stream{};

  bool operator==(const Extent&) const = default;
};

/// Arithmetic of one thread in the current operator. It overlaps with the extents of that thread and
/// operator.
struct Compute {
  enum class Unit : std::uint8_t { simd };
  Unit unit = Unit::simd;
  std::uint64_t operations = 0;  ///< 128-bit SIMD operations
  Stream stream{};

  bool operator==(const Compute&) const = default;
};

using AllocName = std::array<char, 32>;  ///< printable ASCII, filled up with zeros, at least one

struct Alloc {
  Address address = 0;
  Bytes bytes{};
  Kind kind = Kind::other;
  Backing backing = Backing::anonymous;
  AllocName name{};  ///< "weights", "KV cache", ...

  bool operator==(const Alloc&) const = default;
};

struct Free {
  Address address = 0;
  Bytes bytes{};

  bool operator==(const Free&) const = default;
};

/// Structure of the stream. A step is one forward pass: the whole prompt's (prefill, per ubatch) or one
/// token's.
struct Mark {
  enum class What : std::uint8_t {
    step_begin,      ///< phase, tokens and depth hold for the step
    operator_begin,  ///< all threads meet, then the extents and computes up to the next mark run in parallel
    step_end,        ///< all threads meet; logits of the last token are there
  };
  What what = What::step_begin;
  Phase phase = Phase::load;
  Operator op = Operator::none;
  Layer layer{};
  std::uint32_t tokens = 0;  ///< computed in this step
  std::uint32_t depth =
      0;  ///< tokens of prompt and answer that earlier steps computed, in the KV cache if there is one
  std::uint32_t request = 0;

  bool operator==(const Mark&) const = default;
};

using Record = std::variant<Extent, Compute, Alloc, Free, Mark>;
static_assert(std::is_trivially_copyable_v<Record>, "records are copied in bulk");

[[nodiscard]] constexpr Bytes total_bytes(const Extent& e) {
  return e.row_bytes * static_cast<std::int64_t>(e.rows);
}

/// What every record promises its consumers: enumerators and stream in range; sizes positive, rows not
/// overlapping and the last byte within the address space; total_bytes() fits its type; the name of an Alloc
/// as above.
[[nodiscard]] bool well_formed(const Extent& e);
[[nodiscard]] bool well_formed(const Compute& c);
[[nodiscard]] bool well_formed(const Alloc& a);
[[nodiscard]] bool well_formed(const Free& f);
[[nodiscard]] bool well_formed(const Mark& m);
[[nodiscard]] bool well_formed(const Record& record);

/// `name` for an Alloc. Precondition: printable ASCII, shorter than AllocName.
[[nodiscard]] AllocName alloc_name(std::string_view name);
[[nodiscard]] std::string_view to_string(const AllocName& name);

[[nodiscard]] std::string_view to_string(Operator op);
[[nodiscard]] std::string_view to_string(Kind kind);
[[nodiscard]] std::string_view to_string(Phase phase);

}  // namespace kvsim::trace
