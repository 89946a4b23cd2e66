// SPDX-License-Identifier: Apache-2.0
#include "traces/record/record.h"

#include <algorithm>
#include <limits>

#include "configs/error/error.h"

namespace kvsim::trace {
namespace {

bool printable(char c) {
  return c >= ' ' && c <= '~';
}

template <class Enum>
bool in_range(Enum value, Enum last) {
  return static_cast<unsigned>(value) <= static_cast<unsigned>(last);
}

/// A run of `bytes` from `address` on is not empty and ends within the address space.
bool range_fits(Address address, std::uint64_t bytes) {
  return bytes > 0 && address <= std::numeric_limits<Address>::max() - (bytes - 1);
}

}  // namespace

bool well_formed(const Extent& e) {
  if (!in_range(e.access, Access::write) || !in_range(e.kind, Kind::other) ||
      e.stream.value() >= kMaxStreams || e.rows == 0 || e.row_bytes <= Bytes(0) || e.stride < e.row_bytes) {
    return false;
  }
  std::int64_t moved = 0;
  std::uint64_t span = 0;  // from the first byte to one past the last
  return !__builtin_mul_overflow(e.row_bytes.count(), e.rows, &moved) &&
         !__builtin_mul_overflow(static_cast<std::uint64_t>(e.stride.count()), e.rows - 1U, &span) &&
         !__builtin_add_overflow(span, static_cast<std::uint64_t>(e.row_bytes.count()), &span) &&
         range_fits(e.address, span);
}

bool well_formed(const Compute& c) {
  return in_range(c.unit, Compute::Unit::simd) && c.stream.value() < kMaxStreams;
}

bool well_formed(const Alloc& a) {
  const std::string_view text = to_string(a.name);
  return in_range(a.kind, Kind::other) && in_range(a.backing, Backing::device_contiguous) &&
         a.bytes > Bytes(0) && range_fits(a.address, static_cast<std::uint64_t>(a.bytes.count())) &&
         text.size() < a.name.size() && std::all_of(text.begin(), text.end(), printable) &&
         std::all_of(a.name.begin() + text.size(), a.name.end(), [](char c) { return c == 0; });
}

bool well_formed(const Free& f) {
  return f.bytes > Bytes(0) && range_fits(f.address, static_cast<std::uint64_t>(f.bytes.count()));
}

bool well_formed(const Mark& m) {
  return in_range(m.what, Mark::What::step_end) && in_range(m.phase, Phase::probe) &&
         in_range(m.op, static_cast<Operator>(kOperators - 1));
}

bool well_formed(const Record& record) {
  return std::visit([](const auto& r) { return well_formed(r); }, record);
}

AllocName alloc_name(std::string_view name) {
  AllocName result{};
  check(name.size() < result.size() && std::all_of(name.begin(), name.end(), printable),
        "an allocation's name is short printable ASCII");
  std::copy(name.begin(), name.end(), result.begin());
  return result;
}

std::string_view to_string(const AllocName& name) {
  return {name.data(), static_cast<std::size_t>(std::find(name.begin(), name.end(), '\0') - name.begin())};
}

std::string_view to_string(Operator op) {
  static constexpr std::array<std::string_view, kOperators> kNames = {
      "none",        "embedding",         "attn_norm",      "q_proj",        "k_proj",        "v_proj",
      "qkv_proj",    "qk_norm",           "rope",           "kv_append",     "attention",     "attn_output",
      "ffn_norm",    "ffn_gate",          "ffn_up",         "activation",    "ffn_down",      "output_norm",
      "logits",      "sampling",          "attn_post_norm", "ffn_post_norm", "q_latent",      "kv_latent",
      "latent_norm", "q_absorb",          "v_absorb",       "router",        "expert_choice", "expert_gate",
      "expert_up",   "expert_activation", "expert_down",    "expert_sum"};
  return kNames.at(static_cast<std::size_t>(op));
}

std::string_view to_string(Kind kind) {
  static constexpr std::array<std::string_view, kKinds> kNames = {"weights", "kv", "scratch", "other"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(Phase phase) {
  static constexpr std::array<std::string_view, 4> kNames = {"load", "prefill", "decode", "probe"};
  return kNames.at(static_cast<std::size_t>(phase));
}

}  // namespace kvsim::trace
