// SPDX-License-Identifier: Apache-2.0
#include "configs/schema/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configs/error/test_support.h"
#include "configs/schema/yaml.h"

namespace kvsim::config {
namespace {

enum class Colour { red, green };

struct Wheel {
  std::int64_t spokes = 0;
  Bytes load;

  bool operator==(const Wheel&) const = default;
};

struct Cart {
  std::string name;
  Picoseconds age;
  Colour colour = Colour::green;
  bool is_new = true;
  double weight = 1.5;
  Celsius warmth;
  Wheel spare;
  std::vector<Wheel> wheels;

  bool operator==(const Cart&) const = default;
};

}  // namespace
}  // namespace kvsim::config

namespace kvsim {

template <>
struct EnumNames<config::Colour> {
  static constexpr std::array kAll{EnumName{config::Colour::red, "red"},
                                   EnumName{config::Colour::green, "green"}};
};

}  // namespace kvsim

namespace kvsim::config {

using namespace kvsim::literals;

template <>
const Schema<Wheel>& schema<Wheel>() {
  static const Schema<Wheel> kSchema{"a wheel",
                                     {field("spokes", &Wheel::spokes, "spokes").between(1, 64).power_of_two(),
                                      field("load", &Wheel::load, "load").at_least(1_KiB).by_default(2_KiB)}};
  return kSchema;
}

template <>
const Schema<Cart>& schema<Cart>() {
  static const Schema<Cart> kSchema{
      "a cart",
      {field("name", &Cart::name, "its name"),
       field("age", &Cart::age, "its age").between(1_ns, 1_ms).by_default(5_ns),
       field("colour", &Cart::colour, "its colour").optional(),
       field("is_new", &Cart::is_new, "new or not").optional(),
       field("weight", &Cart::weight, "its weight").between(0, 10).optional(),
       field("warmth", &Cart::warmth, "how warm").by_default(Celsius(-2)),
       field("spare", &Cart::spare, "spare wheel"), field("wheels", &Cart::wheels, "wheels").by_default({})},
      [](const Cart& cart, const Place& place) {
        if (cart.wheels.size() > 2) {
          place.error("wheels", "has too many wheels");
        }
        if (cart.spare.spokes == 64) {
          place.error("spare.spokes", "has too many spokes");
        }
      }};
  return kSchema;
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Cart read(const std::string& text) {
  Diagnostics errors;
  const Value value = parse_yaml({.name = "x.yaml", .text = text}, errors);
  Cart cart = schema<Cart>().read({value, "cart", errors});
  errors.throw_if_any();
  return cart;
}

std::string error_of(const std::string& text) {
  return message_of([&] { static_cast<void>(read(text)); });
}

TEST(Schema, ReadsEveryKindOfMember) {
  const Cart cart = read(
      "name: 010\nage: 7 us\ncolour: red\nis_new: false\nweight: 2.25\nwarmth: -3.5 C\n"
      "spare: {spokes: 8, load: 4 KiB}\nwheels: [{spokes: 1}, {spokes: 2, load: 1 MB}]\n");
  const Cart expected{.name = "010",
                      .age = 7_us,
                      .colour = Colour::red,
                      .is_new = false,
                      .weight = 2.25,
                      .warmth = Celsius(-3.5),
                      .spare = {8, 4_KiB},
                      .wheels = {{1, 2_KiB}, {2, Bytes(1'000'000)}}};
  EXPECT_EQ(cart, expected);
}

TEST(Schema, FillsInDefaults) {
  const Cart cart = read("name: x\nspare: {spokes: 4}\n");
  EXPECT_EQ(cart.age, 5_ns);
  EXPECT_EQ(cart.colour, Colour::green);
  EXPECT_TRUE(cart.is_new);
  EXPECT_EQ(cart.weight, 1.5);
  EXPECT_EQ(cart.warmth, Celsius(-2));
  EXPECT_EQ(cart.spare.load, 2_KiB);
  EXPECT_TRUE(cart.wheels.empty());
}

struct Refusal {
  std::string text;
  std::string message;
};

TEST(Schema, RefusesWithPlacePathAndWords) {
  const std::string spare = "name: x\nspare: {spokes: 4}\n";
  const Refusal refusals[] = {
      {"spare: {spokes: 4}\n", "x.yaml:1:1: cart.name: is missing; add it: its name (a text)"},
      {"name: x\nspare: {load: 2 KiB}\n",
       "x.yaml:2:8: cart.spare.spokes: is missing; add it: spokes (a whole number)"},
      {spare + "colour: blue\n", "x.yaml:3:9: cart.colour: 'blue' is not one of red, green"},
      {spare + "colour: gren\n",
       "x.yaml:3:9: cart.colour: 'gren' is not one of red, green; did you mean 'green'?"},
      {spare + "is_new: yes\n",
       "x.yaml:3:9: cart.is_new: 'yes' is neither 'true' nor 'false', the only two ways to write it"},
      {spare + "is_new: 'true'\n",
       "x.yaml:3:9: cart.is_new: 'true' stands in quotes; write true or false without them"},
      {spare + "weight: 11\n", "x.yaml:3:9: cart.weight: '11' is out of range; allowed is 0 to 10"},
      {spare + "age: 0.5 ns\n", "x.yaml:3:6: cart.age: '0.5 ns' is out of range; allowed is 1 ns to 1 ms"},
      {spare + "age: 3\n", "x.yaml:3:6: cart.age: '3' has no unit; write it as 3 ns, 3 us, ... (a time)"},
      {spare + "age: [1 ns]\n", "x.yaml:3:6: cart.age: expects a time, found a list"},
      {spare + "age:\n", "x.yaml:4:1: cart.age: expects a time, found nothing"},
      {"name: x\nspare: {spokes: 6}\n", "x.yaml:2:17: cart.spare.spokes: '6' is not a power of two"},
      {"name: x\nspare: {spokes: 4, load: 1 KB}\n",
       "x.yaml:2:26: cart.spare.load: '1 KB' is out of range; allowed is at least 1 KiB"},
      {"name: x\nspare: 3\n",
       "x.yaml:2:8: cart.spare: expects a map with the keys spokes, load, found the text '3'"},
      {spare + "wheels: {spokes: 1}\n", "x.yaml:3:9: cart.wheels: expects a list, found a map"},
      {spare + "wheels: [{spokes: 1}, {spoke: 2}]\n",
       "x.yaml:3:23: cart.wheels.1.spokes: is missing; add it: spokes (a whole number)\n"
       "x.yaml:3:24: cart.wheels.1.spoke: unknown key, did you mean 'spokes'?; known here: spokes, load"},
      {spare + "wheels: [{spokes: 1}, {spokes: 1}, {spokes: 1}]\n",
       "x.yaml:3:9: cart.wheels: has too many wheels"},
      {"name: x\nspare: {spokes: 64}\n", "x.yaml:2:17: cart.spare.spokes: has too many spokes"},
      {"[1, 2]\n",
       "x.yaml:1:1: cart: expects a map with the keys name, age, colour, is_new, weight, warmth, spare, "
       "wheels, found "
       "a list"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_EQ(error_of(refusal.text), refusal.message) << refusal.text;
  }
}

TEST(Schema, TellsAllMistakesAtOnce) {
  EXPECT_EQ(error_of("nam: x\nage: 3\ncolour: blue\nspare: {spokes: 0}\nspare: {spokes: 1}\n"),
            "x.yaml:1:1: cart.nam: unknown key, did you mean 'name'?; known here: name, age, colour, is_new, "
            "weight, "
            "warmth, spare, wheels\n"
            "x.yaml:1:1: cart.name: is missing; add it: its name (a text)\n"
            "x.yaml:2:6: cart.age: '3' has no unit; write it as 3 ns, 3 us, ... (a time)\n"
            "x.yaml:3:9: cart.colour: 'blue' is not one of red, green\n"
            "x.yaml:4:17: cart.spare.spokes: '0' is out of range; allowed is 1 to 64\n"
            "x.yaml:5:1: spare: the key is given twice; the first is in line 4");
}

TEST(Schema, ChecksBetweenMembersOnlyWhenEachIsRight) {
  EXPECT_THAT(error_of("name: x\nage: 3\nspare: {spokes: 64}\n"), testing::Not(HasSubstr("too many")));
}

TEST(Schema, PassesOverWhatWasReportedBefore) {
  Diagnostics errors;
  Value value = parse_yaml({.name = "x.yaml", .text = "{name: x, spare: {spokes: 64}}"}, errors);
  value.find("name")->kind = Value::Kind::invalid;
  static_cast<void>(schema<Cart>().read({value, "cart", errors}));
  EXPECT_TRUE(errors.empty());  // neither the name nor the check that would need it
}

Cart random_cart(Random& random) {
  const auto wheel = [&random] {
    return Wheel{std::int64_t{1} << random.below(7), Bytes(1024 + random.magnitude() / 2)};
  };
  Cart cart{.name = "cart " + std::to_string(random.below(100)) + ": \"#'\\",
            .age = Picoseconds(1000 + static_cast<std::int64_t>(random.below(999'999'000))),
            .colour = random.below(2) == 0 ? Colour::red : Colour::green,
            .is_new = random.below(2) == 0,
            .weight = static_cast<double>(random.next() >> 11) * 0x1p-53 * 10,
            .warmth = Celsius(static_cast<double>(random.magnitude()) / 7 - 1000),
            .spare = wheel(),
            .wheels = {}};
  cart.spare.spokes = 32;
  for (std::uint64_t n = random.below(3); n > 0; --n) {
    cart.wheels.push_back(wheel());
  }
  return cart;
}

TEST(Schema, WhatItWritesItReadsBack) {
  Random random(7);
  for (int i = 0; i < 2'000; ++i) {
    const Cart cart = random_cart(random);
    const nlohmann::ordered_json json = schema<Cart>().write(cart);
    EXPECT_EQ(read(json.dump()), cart) << json.dump();
    EXPECT_EQ(read(json.dump(2)), cart) << json.dump(2);
  }
}

TEST(Schema, WritesInTheOrderOfTheTable) {
  const nlohmann::ordered_json json = schema<Cart>().write(read("name: x\nspare: {spokes: 4}\nage: 7 ns\n"));
  EXPECT_EQ(json.dump(),
            R"({"name":"x","age":"7 ns","colour":"green","is_new":true,"weight":1.5,"warmth":"-2 C",)"
            R"("spare":{"spokes":4,"load":"2 KiB"},"wheels":[]})");
}

TEST(Schema, DescribesItself) {
  const SchemaInfo& info = schema<Cart>().info();
  EXPECT_THAT(info.keys(),
              ElementsAre("name", "age", "colour", "is_new", "weight", "warmth", "spare", "wheels"));
  EXPECT_EQ(info.find("age")->allowed, "1 ns to 1 ms");
  EXPECT_EQ(info.find("age")->fallback, "5 ns");
  EXPECT_EQ(info.find("name")->fallback, std::nullopt);
  EXPECT_EQ(info.find("colour")->type, "one of red, green");
  EXPECT_EQ(info.find("spare")->nested->find("spokes")->allowed, "1 to 64, a power of two");
  EXPECT_TRUE(info.find("wheels")->is_list);
  EXPECT_EQ(info.find("nothing"), nullptr);
}

TEST(Schema, GivesAJsonSchema) {
  const auto ids = [](std::string_view) { return std::vector<std::string>(); };
  const nlohmann::ordered_json json = to_json_schema(schema<Cart>().info(), ids);
  EXPECT_EQ(json["additionalProperties"], false);
  EXPECT_EQ(json["properties"]["colour"]["enum"].dump(), R"(["red","green"])");
  EXPECT_EQ(json["properties"]["is_new"]["type"], "boolean");
  EXPECT_EQ(json["properties"]["weight"]["maximum"], 10);
  EXPECT_EQ(json["properties"]["spare"]["properties"]["spokes"]["minimum"], 1);
  EXPECT_EQ(json["properties"]["age"]["description"], "its age; 1 ns to 1 ms; default 5 ns");
  EXPECT_THAT(json["properties"]["age"]["pattern"].get<std::string>(), HasSubstr("ps|ns|us"));
}

TEST(Schema, DefaultsNeedNoRequiredMember) {
  EXPECT_THROW(static_cast<void>(schema<Cart>().defaults()), InternalError);
}

}  // namespace
}  // namespace kvsim::config
