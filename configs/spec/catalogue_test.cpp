// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/spec/explain.h"
#include "configs/spec/resolve.h"

namespace kvsim::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

TEST(Catalogue, HasWhatIsShipped) {
  EXPECT_THAT(catalogue_ids("devices"),
              IsSupersetOf({"rk3588", "rk3588_4gb", "rk3588_16gb", "rk3588_lpddr5"}));
  EXPECT_THAT(catalogue_ids("dram"),
              IsSupersetOf({"lpddr4-3200", "lpddr4x_4224_8gb", "lpddr4x_4224_16gb", "lpddr5_4800_16gb"}));
  EXPECT_THAT(catalogue_ids("llms"), IsSupersetOf({"llama3_8b", "llama3_2_1b", "llama2_7b", "tinyllama_1_1b",
                                                   "qwen2_5_0_5b", "qwen3_0_6b", "qwen3_1_7b", "phi3_mini",
                                                   "qwen3_30b_a3b", "deepseek_v2_lite", "mixtral_8x7b"}));
  EXPECT_THAT(catalogue_ids("formats"),
              ElementsAre("BF16", "F16", "F32", "IQ4_XS", "Q2_K", "Q3_K_M", "Q4_0", "Q4_K_M", "Q8_0"));
  EXPECT_THAT(catalogue_ids("cores"), ElementsAre("cortex_a53", "cortex_a55", "cortex_a76"));
}

TEST(Catalogue, EveryFileBelongsToAKind) {
  std::size_t listed = 0;
  for (const CatalogueKind& kind : catalogue_kinds()) {
    listed += catalogue_ids(kind.folder).size();
  }
  EXPECT_EQ(listed, catalogue_files().size());
}

TEST(Catalogue, KnowsWhatItDoesNotHave) {
  EXPECT_EQ(find_entry("devices", "rk3589"), nullptr);
  EXPECT_EQ(find_entry("devices", "../cores/cortex_a76"), nullptr);
  EXPECT_EQ(find_kind("device"), nullptr);
  EXPECT_EQ(
      message_of([] { static_cast<void>(catalogue_ids("device")); }),
      "the catalogue has no 'device', did you mean 'devices'?; it has devices, dram, llms, formats, cores, "
      "tensor_types, storage, masters");
}

void for_each_scalar(const Value& value, const auto& action) {
  if (value.is_scalar()) {
    action(value);
  }
  for (const Value& item : value.items) {
    for_each_scalar(item, action);
  }
  for (const MapEntry& entry : value.entries) {
    for_each_scalar(entry.value, action);
  }
}

/// A value without a source is a rumour.
TEST(Catalogue, EveryValueHasItsSource) {
  for (const CatalogueFile& file : catalogue_files()) {
    Diagnostics errors;
    const Value root = parse_yaml({std::string(file.path), std::string(file.text)}, errors);
    EXPECT_TRUE(errors.empty()) << file.path;
    for_each_scalar(root, [](const Value& scalar) {
      EXPECT_GT(scalar.note.size(), 3U)
          << to_string(scalar.where) << ": '" << scalar.text << "' has no '# source'";
      if (scalar.note.starts_with("assumed") || scalar.note.starts_with("derived")) {
        EXPECT_GT(scalar.note.size(), 12U) << to_string(scalar.where) << ": say why it is " << scalar.note;
      }
    });
  }
}

TEST(Catalogue, EveryFileCarriesItsLicence) {
  for (const CatalogueFile& file : catalogue_files()) {
    EXPECT_THAT(std::string(file.text), testing::StartsWith("# SPDX-License-Identifier: Apache-2.0\n"))
        << file.path;
  }
}

TEST(Catalogue, EveryPartAndCoreIsSound) {
  for (const std::string& id : catalogue_ids("dram")) {
    EXPECT_EQ(load_dram_part(id).name, id);
  }
  for (const std::string& id : catalogue_ids("storage")) {
    EXPECT_EQ(load_storage_part(id).name, id);
  }
  for (const std::string& id : catalogue_ids("cores")) {
    EXPECT_EQ(load_core(id).name, id);
  }
  for (const std::string& id : catalogue_ids("llms")) {
    EXPECT_EQ(load_llm(id).name, id);
  }
  for (const std::string& id : catalogue_ids("formats")) {
    EXPECT_EQ(load_weight_format(id).name, id);
  }
}

TEST(Catalogue, EveryEntryCanBeShown) {
  for (const CatalogueKind& kind : catalogue_kinds()) {
    for (const std::string& id : catalogue_ids(kind.folder)) {
      const std::string path = std::string(kind.folder) + "/" + id;
      EXPECT_THAT(explain(path), HasSubstr(id)) << path;
    }
  }
}

TEST(Catalogue, EveryDeviceRunsEveryModelInEveryFormat) {
  for (const std::string& device : catalogue_ids("devices")) {
    for (const std::string& model : catalogue_ids("llms")) {
      for (const std::string& format : catalogue_ids("formats")) {
        const std::string json = "{device: " + device + ", model: " + model +
                                 ", engine: {weights: " + format + "}, workload: {threads: 1}}";
        EXPECT_EQ(message_of([&] { static_cast<void>(run_spec_from_json(json)); }), "no error") << json;
      }
    }
  }
}

}  // namespace
}  // namespace kvsim::config
