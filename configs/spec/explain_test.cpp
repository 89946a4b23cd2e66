// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/explain.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "configs/error/test_support.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/schemas.h"

namespace kvsim::config {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Explain, OneKey) {
  EXPECT_EQ(explain("engine.ubatch"),
            "engine.ubatch: prompt tokens computed together (llama.cpp's n_ubatch)\n"
            "  type     a whole number\n"
            "  default  512\n"
            "  allowed  1 to 65536\n");
  EXPECT_EQ(explain("model.layers"),
            "model.layers: decoder layers (block_count)\n"
            "  type     a whole number\n"
            "  default  none; the key is required\n"
            "  allowed  1 to 1024\n");
}

TEST(Explain, AChoice) {
  EXPECT_THAT(explain("run.fidelity"), HasSubstr("type     one of exact, train, auto"));
  EXPECT_THAT(explain("engine.weights"),
              HasSubstr("type     an id of `kvsim list formats`, a file, or a map\n  default  Q4_K_M"));
}

TEST(Explain, AGroupListsItsKeysUpToCatalogueEntries) {
  const std::string text = explain("engine");
  EXPECT_THAT(text, HasSubstr("engine.barrier "));
  EXPECT_THAT(text, HasSubstr("(default 2 us)"));
  EXPECT_THAT(text, HasSubstr("engine.weights "));
  EXPECT_THAT(text, Not(HasSubstr("engine.weights.main")));
  EXPECT_THAT(explain("device.dram"), HasSubstr("device.dram.timing.tRCD"));
}

TEST(Explain, EverythingNamesEveryKeyOfEveryTable) {
  const std::string text = explain();
  for (const char* key :
       {"device.clusters.0.core.demand_misses", "device.controller.mapping.bank", "model.kv_heads",
        "engine.weights.types.0.fallback", "workload.threads", "memory.weights", "run.seed"}) {
    EXPECT_THAT(text, HasSubstr(std::string("  ") + key + " "));
  }
}

TEST(Explain, ElementsAreNamedWithOrWithoutIndex) {
  EXPECT_EQ(explain("device.clusters.0.count"), explain("device.clusters.count"));
}

TEST(Explain, AnEntryWithTheSourceOfEachValue) {
  const std::string text = explain("devices/rk3588_4gb");
  EXPECT_THAT(text, HasSubstr("device rk3588_4gb, with the source of each value:\nname: rk3588_4gb\n"));
  EXPECT_THAT(text, HasSubstr("  ranks: 1 "));
  EXPECT_THAT(text, HasSubstr("# derived: 4 GB = 4 channels x 8 Gb"));
  EXPECT_THAT(text, HasSubstr("# linux rk3588-base.dtsi l3-cache"));
  EXPECT_THAT(explain("dram/lpddr4-3200"), HasSubstr("tRCD: 29 tCK"));
  EXPECT_THAT(explain("formats/Q4_K_M"), HasSubstr("more_bits"));
}

TEST(Explain, ExtendsWhereItMayStand) {
  for (const char* path : {"extends", "device.extends", "device.clusters.0.core.extends"}) {
    EXPECT_THAT(explain(path), testing::StartsWith(std::string(path) + ": the file or catalogue entry"));
  }
  EXPECT_THAT(message_of([] { static_cast<void>(explain("workload.extends")); }), HasSubstr("no key"));
}

TEST(Explain, HelpsWithUnknownNames) {
  const auto error = [](const char* path) {
    return message_of([path] { static_cast<void>(explain(path)); });
  };
  EXPECT_EQ(error("engine.ubach"),
            "there is no key 'engine.ubach', did you mean 'engine.ubatch'?; `kvsim explain` lists all");
  EXPECT_THAT(error("ubatch"), HasSubstr("did you mean 'engine.ubatch'?"));
  EXPECT_THAT(error("colour"), HasSubstr("there is no key 'colour'; `kvsim explain` lists all"));
  EXPECT_THAT(error("0"), HasSubstr("there is no key '0'"));
  EXPECT_THAT(error("rk3588"), HasSubstr("did you mean 'devices/rk3588'?"));
  EXPECT_THAT(error("llama3_8b"), HasSubstr("did you mean 'llms/llama3_8b'?"));
  EXPECT_THAT(error("devices/rk3589"), HasSubstr("unknown device 'rk3589', did you mean 'rk3588'?"));
  EXPECT_THAT(error("device/rk3588"), HasSubstr("did you mean 'devices'?"));
}

TEST(JsonSchema, CompletesKeysAndIds) {
  const nlohmann::ordered_json schema_json = json_schema();
  EXPECT_EQ(schema_json["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema_json["additionalProperties"], false);
  EXPECT_EQ(schema_json["properties"]["device"]["anyOf"][0]["enum"].get<std::vector<std::string>>(),
            catalogue_ids("devices"));
  EXPECT_EQ(schema_json["properties"]["engine"]["properties"]["weights"]["anyOf"][0]["enum"]
                .get<std::vector<std::string>>(),
            catalogue_ids("formats"));
  EXPECT_EQ(schema_json["properties"]["run"]["properties"]["fidelity"]["enum"].dump(),
            R"(["exact","train","auto"])");
  EXPECT_EQ(schema_json["properties"]["workload"]["properties"]["prompt"]["minimum"], 1);
  EXPECT_TRUE(schema_json["properties"].contains("extends"));
  EXPECT_EQ(schema_json["anyOf"].dump(), R"([{"required":["extends"]},{"required":["device","model"]}])");
}

TEST(JsonSchema, DescribesEveryKey) {
  const nlohmann::ordered_json schema_json = json_schema();
  for (const FieldInfo& info : schema<RunSpec>().info().fields) {
    const nlohmann::ordered_json& property = schema_json["properties"][info.key];
    EXPECT_THAT(property["description"].get<std::string>(), HasSubstr(info.doc));
  }
}

}  // namespace
}  // namespace kvsim::config
