#include "stoker/state_values.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace stoker::checkpoint {
namespace {

TEST(StateValues, every_type_of_value_survives_json) {
  StateValues state;
  state.set("truth", true);
  state.set("step", std::int64_t{7});
  state.set("below", std::int64_t{-7});
  state.set("seed", std::numeric_limits<std::uint64_t>::max());
  state.set("lr", 0.1);
  state.set("whole", 1.0);
  state.set("tiny", 5e-324);
  state.set("zero", -0.0);
  state.set("infinite", -std::numeric_limits<double>::infinity());
  state.set("name", std::string("a\"b\n\xc3\xa9"));
  state.set("broken", std::string("\xff\x00x", 3));
  state.set("generator", StateValues::Bytes{std::byte{0}, std::byte{255}});
  const auto back = StateValues::parse("s", state.to_json());
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(*back, state);
  EXPECT_TRUE(std::signbit(*back->number("zero")));
  EXPECT_EQ(back->to_json(), state.to_json());
}

TEST(StateValues, nan_is_preserved) {
  StateValues state;
  state.set("loss", std::nan(""));
  EXPECT_TRUE(std::isnan(*StateValues::parse("s", state.to_json())->number("loss")));
}

TEST(StateValues, getters_return_specific_errors) {
  StateValues state;
  state.set("name", std::string("x"));
  state.set("big", std::numeric_limits<std::uint64_t>::max());
  state.set("below", std::int64_t{-1});
  EXPECT_EQ(state.integer("epoch").error().to_string(), "state: no value 'epoch'");
  EXPECT_EQ(state.integer("epoch").error().code(), Code::not_found);
  EXPECT_EQ(state.integer("name").error().to_string(), "state: 'name' is text, not an integer");
  EXPECT_EQ(state.natural("name").error().to_string(), "state: 'name' is text, not an integer");
  EXPECT_EQ(state.number("name").error().to_string(), "state: 'name' is text, not a number");
  EXPECT_EQ(state.number("big").error().to_string(), "state: 'big' is an integer, not a number");
  EXPECT_EQ(state.boolean("name").error().to_string(), "state: 'name' is text, not a truth value");
  EXPECT_EQ(state.text("big").error().to_string(), "state: 'big' is an integer, not text");
  EXPECT_EQ(state.bytes("name").error().to_string(), "state: 'name' is text, not bytes");
  EXPECT_EQ(state.integer("big").error().to_string(),
            "state: 'big' is 18446744073709551615, too large for a signed integer");
  EXPECT_EQ(state.natural("below").error().to_string(), "state: 'below' is -1, which is negative");
  EXPECT_EQ(*state.number("below"), -1.0);
}

TEST(StateValues, invalid_text_is_rejected) {
  const auto problem = [](std::string_view json) {
    return StateValues::parse("s", json).error().to_string();
  };
  EXPECT_EQ(problem("[]"), "s: state is not an object");
  EXPECT_EQ(problem("{"), "s: state is not an object");
  EXPECT_EQ(problem(R"({"a":null})"), "s: state 'a' is not a supported value");
  EXPECT_EQ(problem(R"({"a":[1]})"), "s: state 'a' is not a supported value");
  EXPECT_EQ(problem(R"({"a":{}})"), "s: state 'a' is not a supported value");
  EXPECT_EQ(problem(R"({"a":{"bytes":"0"}})"), "s: state 'a' is not a supported value");
  EXPECT_EQ(problem(R"({"a":{"bytes":"0G"}})"), "s: state 'a' is not a supported value");
  EXPECT_EQ(problem(R"({"a":{"number":"1"}})"), "s: state 'a' is not a supported value");
  EXPECT_EQ(problem(R"({"a":{"other":"00"}})"), "s: state 'a' is not a supported value");
}

}  // namespace
}  // namespace stoker::checkpoint
