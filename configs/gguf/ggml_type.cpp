// SPDX-License-Identifier: Apache-2.0
#include "configs/gguf/ggml_type.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kvsim::config {
namespace {

constexpr std::array kTypes{
    GgmlType{0, "F32", 1, Bytes(4)},         GgmlType{1, "F16", 1, Bytes(2)},
    GgmlType{2, "Q4_0", 32, Bytes(18)},      GgmlType{3, "Q4_1", 32, Bytes(20)},
    GgmlType{6, "Q5_0", 32, Bytes(22)},      GgmlType{7, "Q5_1", 32, Bytes(24)},
    GgmlType{8, "Q8_0", 32, Bytes(34)},      GgmlType{9, "Q8_1", 32, Bytes(36)},
    GgmlType{10, "Q2_K", 256, Bytes(84)},    GgmlType{11, "Q3_K", 256, Bytes(110)},
    GgmlType{12, "Q4_K", 256, Bytes(144)},   GgmlType{13, "Q5_K", 256, Bytes(176)},
    GgmlType{14, "Q6_K", 256, Bytes(210)},   GgmlType{15, "Q8_K", 256, Bytes(292)},
    GgmlType{16, "IQ2_XXS", 256, Bytes(66)}, GgmlType{17, "IQ2_XS", 256, Bytes(74)},
    GgmlType{18, "IQ3_XXS", 256, Bytes(98)}, GgmlType{19, "IQ1_S", 256, Bytes(50)},
    GgmlType{20, "IQ4_NL", 32, Bytes(18)},   GgmlType{21, "IQ3_S", 256, Bytes(110)},
    GgmlType{22, "IQ2_S", 256, Bytes(82)},   GgmlType{23, "IQ4_XS", 256, Bytes(136)},
    GgmlType{24, "I8", 1, Bytes(1)},         GgmlType{25, "I16", 1, Bytes(2)},
    GgmlType{26, "I32", 1, Bytes(4)},        GgmlType{27, "I64", 1, Bytes(8)},
    GgmlType{28, "F64", 1, Bytes(8)},        GgmlType{29, "IQ1_M", 256, Bytes(56)},
    GgmlType{30, "BF16", 1, Bytes(2)},       GgmlType{34, "TQ1_0", 256, Bytes(54)},
    GgmlType{35, "TQ2_0", 256, Bytes(66)},   GgmlType{39, "MXFP4", 32, Bytes(17)},
    GgmlType{40, "NVFP4", 64, Bytes(36)},    GgmlType{41, "Q1_0", 128, Bytes(18)},
    GgmlType{42, "Q2_0", 64, Bytes(18)},
};

// llama.h, llama_ftype.
constexpr std::array<std::pair<std::int64_t, std::string_view>, 33> kFileTypes{{
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},    {7, "Q8_0"},     {8, "Q5_0"},
    {9, "Q5_1"},    {10, "Q2_K"},   {11, "Q3_K_S"},  {12, "Q3_K_M"}, {13, "Q3_K_L"},  {14, "Q4_K_S"},
    {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"},  {18, "Q6_K"},   {19, "IQ2_XXS"}, {20, "IQ2_XS"},
    {21, "Q2_K_S"}, {22, "IQ3_XS"}, {23, "IQ3_XXS"}, {24, "IQ1_S"},  {25, "IQ4_NL"},  {26, "IQ3_S"},
    {27, "IQ3_M"},  {28, "IQ2_S"},  {29, "IQ2_M"},   {30, "IQ4_XS"}, {31, "IQ1_M"},   {32, "BF16"},
    {36, "TQ1_0"},  {37, "TQ2_0"},  {38, "MXFP4"},
}};

}  // namespace

const GgmlType* find_ggml_type(std::uint32_t id) {
  const auto* found = std::ranges::find(kTypes, id, &GgmlType::id);
  return found == kTypes.end() ? nullptr : found;
}

std::string_view file_type_name(std::int64_t file_type) {
  const auto* found =
      std::ranges::find(kFileTypes, file_type, &std::pair<std::int64_t, std::string_view>::first);
  return found == kFileTypes.end() ? std::string_view() : found->second;
}

}  // namespace kvsim::config
