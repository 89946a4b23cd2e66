// SPDX-License-Identifier: Apache-2.0
// Text grammar of the values that only specifications have: timings, address bits, and the names of choices.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/member.h"
#include "configs/spec/dram_spec.h"
#include "configs/spec/master_spec.h"
#include "configs/spec/model_spec.h"
#include "configs/spec/run_spec.h"
#include "configs/spec/storage_spec.h"
#include "configs/units/text.h"

namespace kvsim {

/// "f16", "k=q8_0,v=q4_0+window=512+sinks=4".
template <>
struct Grammar<config::KvSpec> {
  static std::string kind() { return "a KV specification"; }
  static std::string pattern() { return "^[A-Za-z0-9_:=,+%.]+$"; }
  static Parsed<config::KvSpec> parse(std::string_view text);
  static std::string to_text(const config::KvSpec& value);
};

/// "q4_0", "int8:g64".
template <>
struct Grammar<config::KvFormat> {
  static std::string kind() { return "a number format of K and V"; }
  static std::string pattern() { return "^[A-Za-z0-9_:=.]+$"; }
  static Parsed<config::KvFormat> parse(std::string_view text);
  static std::string to_text(const config::KvFormat& value) { return name(value); }
};

/// "18 ns", "8 tCK", "10 ns min 4 tCK" (the larger of both).
template <>
struct Grammar<config::ClockedTime> {
  static std::string kind() { return "a timing"; }
  static std::string pattern();
  static Parsed<config::ClockedTime> parse(std::string_view text);
  static std::string to_text(const config::ClockedTime& value);
};

/// "4266 MT/s".
template <>
struct Grammar<config::DataRate> {
  static std::string kind();
  static std::string pattern();
  static Parsed<config::DataRate> parse(std::string_view text);
  static std::string to_text(const config::DataRate& value);
};

template <>
struct EnumNames<config::DramStandard> {
  static constexpr std::array kAll{
      EnumName{config::DramStandard::lpddr3, "lpddr3"},   EnumName{config::DramStandard::lpddr4, "lpddr4"},
      EnumName{config::DramStandard::lpddr4x, "lpddr4x"}, EnumName{config::DramStandard::lpddr5, "lpddr5"},
      EnumName{config::DramStandard::lpddr5x, "lpddr5x"}, EnumName{config::DramStandard::ddr4, "ddr4"},
      EnumName{config::DramStandard::ddr5, "ddr5"},       EnumName{config::DramStandard::psram, "psram"}};
};

template <>
struct EnumNames<config::RefreshMode> {
  static constexpr std::array kAll{EnumName{config::RefreshMode::none, "none"},
                                   EnumName{config::RefreshMode::all_bank, "all_bank"},
                                   EnumName{config::RefreshMode::per_bank, "per_bank"}};
};

template <>
struct EnumNames<config::PagePolicy> {
  static constexpr std::array kAll{EnumName{config::PagePolicy::open, "open"},
                                   EnumName{config::PagePolicy::closed, "closed"},
                                   EnumName{config::PagePolicy::adaptive, "adaptive"}};
};

template <>
struct EnumNames<config::MapOrder> {
  static constexpr std::array kAll{
      EnumName{config::MapOrder::masks, "masks"},
      EnumName{config::MapOrder::row_bank_column, "row-bank-column"},
      EnumName{config::MapOrder::bank_row_column, "bank-row-column"},
      EnumName{config::MapOrder::row_bank_column_group, "row-bank-column-group"}};
  static std::string_view hint(std::string_view text);
};

template <>
struct EnumNames<config::QueueKind> {
  static constexpr std::array kAll{EnumName{config::QueueKind::shared, "shared"},
                                   EnumName{config::QueueKind::bank, "bank"}};
};

template <>
struct EnumNames<config::StorageInterface> {
  static constexpr std::array kAll{
      EnumName{config::StorageInterface::emmc, "emmc"}, EnumName{config::StorageInterface::sd, "sd"},
      EnumName{config::StorageInterface::ufs, "ufs"}, EnumName{config::StorageInterface::nvme, "nvme"},
      EnumName{config::StorageInterface::spi, "spi"}};
};

template <>
struct EnumNames<config::MasterAccess> {
  static constexpr std::array kAll{EnumName{config::MasterAccess::read, "read"},
                                   EnumName{config::MasterAccess::write, "write"}};
};

template <>
struct EnumNames<config::QosMode> {
  static constexpr std::array kAll{EnumName{config::QosMode::fixed, "fixed"},
                                   EnumName{config::QosMode::limiter, "limiter"},
                                   EnumName{config::QosMode::regulator, "regulator"}};
};

template <>
struct EnumNames<config::TensorRole> {
  static constexpr std::array kAll{EnumName{config::TensorRole::token_embedding, "token_embedding"},
                                   EnumName{config::TensorRole::output, "output"},
                                   EnumName{config::TensorRole::attn_q, "attn_q"},
                                   EnumName{config::TensorRole::attn_k, "attn_k"},
                                   EnumName{config::TensorRole::attn_v, "attn_v"},
                                   EnumName{config::TensorRole::attn_qkv, "attn_qkv"},
                                   EnumName{config::TensorRole::attn_latent, "attn_latent"},
                                   EnumName{config::TensorRole::attn_output, "attn_output"},
                                   EnumName{config::TensorRole::ffn_gate, "ffn_gate"},
                                   EnumName{config::TensorRole::ffn_up, "ffn_up"},
                                   EnumName{config::TensorRole::ffn_down, "ffn_down"}};
};

template <>
struct EnumNames<config::LayerRange> {
  static constexpr std::array kAll{EnumName{config::LayerRange::all, "all"},
                                   EnumName{config::LayerRange::more_bits, "more_bits"},
                                   EnumName{config::LayerRange::first_eighth, "first_eighth"},
                                   EnumName{config::LayerRange::first_sixteenth, "first_sixteenth"},
                                   EnumName{config::LayerRange::first_two, "first_two"}};
};

template <>
struct EnumNames<config::KvLayout> {
  static constexpr std::array kAll{EnumName{config::KvLayout::token_major, "token_major"},
                                   EnumName{config::KvLayout::head_major, "head_major"},
                                   EnumName{config::KvLayout::paged, "paged"}};
};

template <>
struct EnumNames<config::KvBlockOrder> {
  static constexpr std::array kAll{EnumName{config::KvBlockOrder::in_order, "in_order"},
                                   EnumName{config::KvBlockOrder::shuffled, "shuffled"}};
};

template <>
struct EnumNames<config::KvCacheUse> {
  static constexpr std::array kAll{EnumName{config::KvCacheUse::kept, "kept"},
                                   EnumName{config::KvCacheUse::recomputed, "recomputed"}};
};

template <>
struct EnumNames<config::KvWalk> {
  static constexpr std::array kAll{EnumName{config::KvWalk::kv_head, "kv_head"},
                                   EnumName{config::KvWalk::query_head, "query_head"}};
};

template <>
struct EnumNames<config::ExpertPlace> {
  static constexpr std::array kAll{EnumName{config::ExpertPlace::mapped, "mapped"},
                                   EnumName{config::ExpertPlace::streamed, "streamed"}};
};

template <>
struct EnumNames<config::ExpertPolicy> {
  static constexpr std::array kAll{EnumName{config::ExpertPolicy::lru, "lru"},
                                   EnumName{config::ExpertPolicy::lfu, "lfu"},
                                   EnumName{config::ExpertPolicy::pinned, "pinned"}};
};

template <>
struct EnumNames<config::KvFile> {
  static constexpr std::array kAll{EnumName{config::KvFile::in_place, "in_place"},
                                   EnumName{config::KvFile::log, "log"}};
};

template <>
struct EnumNames<config::KvPlacement> {
  static constexpr std::array kAll{EnumName{config::KvPlacement::age, "age"},
                                   EnumName{config::KvPlacement::score, "score"}};
};

template <>
struct EnumNames<config::KvThrough> {
  static constexpr std::array kAll{EnumName{config::KvThrough::direct, "direct"},
                                   EnumName{config::KvThrough::mapped, "mapped"}};
};

template <>
struct EnumNames<config::WeightBacking> {
  static constexpr std::array kAll{EnumName{config::WeightBacking::mapped, "mapped"},
                                   EnumName{config::WeightBacking::anonymous, "anonymous"},
                                   EnumName{config::WeightBacking::streamed, "streamed"}};
};

template <>
struct EnumNames<config::FileOrder> {
  static constexpr std::array kAll{EnumName{config::FileOrder::sequential, "sequential"},
                                   EnumName{config::FileOrder::random, "random"}};
};

template <>
struct EnumNames<config::MapLoad> {
  static constexpr std::array kAll{EnumName{config::MapLoad::populated, "populated"},
                                   EnumName{config::MapLoad::on_demand, "on_demand"}};
};

template <>
struct EnumNames<config::Fidelity> {
  static constexpr std::array kAll{EnumName{config::Fidelity::exact, "exact"},
                                   EnumName{config::Fidelity::train, "train"},
                                   EnumName{config::Fidelity::automatic, "auto"}};
};

}  // namespace kvsim

namespace kvsim::config {

/// Bits of a coordinate, least significant first: "7" (one address bit), "0-6" (a run of them), "13^11" (an
/// XOR).
template <>
struct ListGrammar<std::vector<AddressBit>> {
  static std::string kind() { return "address bits, such as 7, 0-6 or 13^11"; }
  static std::string pattern() { return R"(^[0-9]+(-[0-9]+|(\^[0-9]+)+)?$)"; }
  static Parsed<std::vector<AddressBit>> parse_item(std::string_view text);
  static std::vector<std::string> to_items(const std::vector<AddressBit>& bits);
};

}  // namespace kvsim::config
