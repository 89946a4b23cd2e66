// SPDX-License-Identifier: Apache-2.0
// Members that may be left out because there may be none, or because they follow from others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/schema/schema.h"
#include "configs/schema/yaml.h"

namespace kvsim::config {

using namespace kvsim::literals;

namespace {

struct Lock {
  std::int64_t pins = 0;

  bool operator==(const Lock&) const = default;
};

struct Door {
  std::int64_t width = 1;
  std::int64_t height = 1;
  std::int64_t area = 0;
  std::optional<Picoseconds> closes;
  std::optional<Lock> lock;

  bool operator==(const Door&) const = default;
};

}  // namespace

template <>
const Schema<Lock>& schema<Lock>() {
  static const Schema<Lock> kSchema{"a lock", {field("pins", &Lock::pins, "pins").between(1, 9)}};
  return kSchema;
}

template <>
const Schema<Door>& schema<Door>() {
  static const Schema<Door> kSchema{
      "a door",
      {field("width", &Door::width, "its width"),
       field("height", &Door::height, "its height").same_as("width", &Door::width),
       field("area", &Door::area, "its area").by_rule("width times height"),
       field("closes", &Door::closes, "closes after").between(1_ns, 1_ms).optional(),
       field("lock", &Door::lock, "its lock").optional()},
      [](const Door& door, const Place& place) {
        if (door.area > 100) {
          place.error("area", "is too large");
        }
      },
      [](Door& door, const Place& place) {
        if (place.value().find("area") == nullptr) {
          door.area = door.width * door.height;
        }
      }};
  return kSchema;
}

namespace {

using testing::HasSubstr;

Door read(const std::string& text) {
  Diagnostics errors;
  const Value value = parse_yaml({.name = "x.yaml", .text = text}, errors);
  Door door = schema<Door>().read({value, "door", errors});
  errors.throw_if_any();
  return door;
}

std::string error_of(const std::string& text) {
  return message_of([&] { static_cast<void>(read(text)); });
}

TEST(OptionalMember, IsThereOrNot) {
  EXPECT_EQ(read("width: 2\n").closes, std::nullopt);
  EXPECT_EQ(read("width: 2\n").lock, std::nullopt);
  EXPECT_EQ(read("{width: 2, closes: none, lock: none}").closes, std::nullopt);
  EXPECT_EQ(read("{width: 2, closes: none, lock: none}").lock, std::nullopt);
  EXPECT_EQ(read("{width: 2, closes: 3 us}").closes, 3_us);
  EXPECT_EQ(read("{width: 2, lock: {pins: 5}}").lock, Lock{5});
}

TEST(OptionalMember, IsCheckedAsAnyOther) {
  EXPECT_EQ(error_of("{width: 2, closes: 2 ms}"),
            "x.yaml:1:20: door.closes: '2 ms' is out of range; allowed is 1 ns to 1 ms");
  EXPECT_THAT(error_of("{width: 2, closes: never}"), HasSubstr("door.closes: 'never' is not a number"));
  EXPECT_EQ(error_of("{width: 2, lock: {pins: 10}}"),
            "x.yaml:1:25: door.lock.pins: '10' is out of range; allowed is 1 to 9");
  EXPECT_EQ(error_of("{width: 2, lock: nine}"),
            "x.yaml:1:18: door.lock: expects a map with the keys pins, found the text 'nine'");
}

TEST(OptionalMember, IsWrittenSoThatItIsReadBack) {
  for (const char* text : {"{width: 2}", "{width: 2, closes: 3 us}", "{width: 2, lock: {pins: 5}}"}) {
    EXPECT_EQ(read(schema<Door>().write(read(text)).dump()), read(text)) << text;
  }
  EXPECT_EQ(schema<Door>().write(read("{width: 2, lock: {pins: 5}}")).dump(),
            R"({"width":2,"height":2,"area":4,"closes":"none","lock":{"pins":5}})");
}

TEST(OptionalMember, IsDescribed) {
  const SchemaInfo& info = schema<Door>().info();
  EXPECT_EQ(info.find("closes")->type, "a time, or none");
  EXPECT_EQ(info.find("closes")->fallback, "none");
  EXPECT_EQ(info.find("closes")->allowed, "1 ns to 1 ms");
  EXPECT_EQ(info.find("lock")->type, "a map, or none");
  EXPECT_TRUE(info.find("lock")->may_be_none);
  EXPECT_FALSE(info.find("width")->may_be_none);
  const auto ids = [](std::string_view) { return std::vector<std::string>(); };
  const nlohmann::ordered_json json = to_json_schema(info, ids)["properties"];
  EXPECT_EQ(json["lock"]["anyOf"][0]["properties"]["pins"]["maximum"], 9);
  EXPECT_EQ(json["lock"]["anyOf"][1].dump(), R"({"const":"none"})");
  EXPECT_EQ(json["closes"]["anyOf"][0]["type"], "string");
}

TEST(DerivedMember, FollowsTheOtherUnlessItIsGiven) {
  EXPECT_EQ(read("width: 3\n").height, 3);
  EXPECT_EQ(read("{width: 3, height: 4}").height, 4);
  EXPECT_EQ(read("width: 3\n").area, 9);
  EXPECT_EQ(read("{width: 3, height: 4}").area, 12);
  EXPECT_EQ(read("{width: 3, height: 4, area: 11}").area, 11);
  EXPECT_EQ(schema<Door>().info().find("height")->fallback, "width");
  EXPECT_EQ(schema<Door>().info().find("area")->fallback, "width times height");
}

TEST(DerivedMember, IsWorkedOutBeforeTheCheck) {
  EXPECT_THAT(error_of("width: 11\n"), HasSubstr("door.area: is too large"));
  EXPECT_EQ(error_of("width: 10\n"), "no error");
}

}  // namespace
}  // namespace kvsim::config
