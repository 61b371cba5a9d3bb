#include "sweep/space/space.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::sweep {
namespace {

using testing::HasSubstr;

Choices texts(std::initializer_list<const char*> values) {
  Choices choices;
  for (const char* value : values) choices.values.emplace_back(std::string(value));
  return choices;
}

std::string error_of(std::vector<Parameter> parameters, std::vector<Expression> constraints = {}) {
  const auto space = Space::create(std::move(parameters), std::move(constraints));
  return space.ok() ? "" : std::string(space.error().message());
}

// Momentum belongs to sgd, nesterov to momentum.
Space optimizer_space() {
  return *Space::create({
      {"nesterov", Choices{{true, false}}, Activation{"momentum", {Value(0.9)}}},
      {"momentum", NumberRange{.low = 0, .high = 0.9, .step = 0.45},
       Activation{"kind", {Value(std::string("sgd"))}}},
      {"kind", texts({"sgd", "adam"}), {}},
      {"lr", NumberRange{.low = 1e-4, .high = 1, .is_log = true}, {}},
  });
}

TEST(Space, faults_name_the_parameter) {
  EXPECT_EQ(error_of({{"a", NumberRange{.low = 2, .high = 1}, {}}}), "parameter a: min 2 is above max 1");
  EXPECT_EQ(error_of({{"a", NumberRange{.low = 0, .high = 1, .is_log = true}, {}}}),
            "parameter a: a logarithmic range needs a min above 0 (0)");
  EXPECT_EQ(error_of({{"a", NumberRange{.low = 0.5, .high = 2, .is_integer = true}, {}}}),
            "parameter a: whole numbers from 0.5 to 2");
  EXPECT_EQ(error_of({{"a", NumberRange{.low = 0, .high = INFINITY}, {}}}),
            "parameter a: its range is not finite");
  EXPECT_EQ(error_of({{"a", Choices{}, {}}}), "parameter a: no values");
  EXPECT_EQ(error_of({{"a", Choices{{1.0, std::int64_t{1}}}, {}}}), "parameter a: value 1 is there twice");
  EXPECT_EQ(error_of({{"a", texts({"x"}), {}}, {"a", texts({"x"}), {}}}), "parameter a: is there twice");
  EXPECT_EQ(error_of({{"a", texts({"x"}), Activation{"b", {}}}}), "parameter a: when: b is no parameter");
  EXPECT_EQ(
      error_of({{"a", texts({"x"}), Activation{"b", {Value(std::string("z"))}}}, {"b", texts({"y"}), {}}}),
      "parameter a: when: parameter b: z is none of its values");
  EXPECT_EQ(error_of({{"a", texts({"x"}), Activation{"b", {}}}, {"b", texts({"y"}), Activation{"a", {}}}}),
            "parameter a: its condition depends on itself (when: b)");
  EXPECT_EQ(error_of({{"a", texts({"x"}), {}}}, {*Expression::parse("b > 1")}),
            "constraint 'b > 1': b is no parameter");
  EXPECT_EQ(error_of({{"a", texts({"x"}), {}}}, {*Expression::parse("a > 1")}),
            "constraint 'a > 1': 'x' is text, where a number is expected");
}

TEST(Space, a_parameter_is_active_where_its_condition_holds) {
  const Space space = optimizer_space();
  const auto values = [&](Coordinates point) {
    return to_text(space.decode(space.normalized(std::move(point))));
  };
  EXPECT_EQ(values({0, 0.9, 0, 0.1}), "nesterov=true momentum=0.9 kind=sgd lr=0.1");
  EXPECT_EQ(values({0, 0.45, 0, 0.1}), "momentum=0.45 kind=sgd lr=0.1");
  EXPECT_EQ(values({0, 0.9, 1, 0.1}), "kind=adam lr=0.1");
}

TEST(Space, coordinates_and_values_convert_both_ways) {
  const Space space = optimizer_space();
  const Assignment values = {
      {"kind", std::string("sgd")}, {"momentum", 0.9}, {"nesterov", false}, {"lr", 0.01}};
  const auto point = space.encode(values);
  ASSERT_TRUE(point.ok()) << point.status().to_string();
  EXPECT_EQ(to_text(space.decode(*point)), "nesterov=false momentum=0.9 kind=sgd lr=0.01");
  EXPECT_EQ(space.encode({{"kind", std::string("sgd")}, {"lr", 2.0}}).status().message(),
            "parameter lr: 2 is outside its range");
  EXPECT_EQ(space.encode({{"momentum", 0.3}}).status().message(),
            "parameter momentum: 0.3 is outside its range");
  EXPECT_EQ(space.encode({{"lr", std::string("fast")}}).status().message(),
            "parameter lr: fast is no number");
  EXPECT_EQ(space.encode({{"depth", 1.0}}).status().message(), "depth is no parameter of the space");
}

TEST(Space, numbers_are_within_the_range) {
  const NumberRange whole{.low = 1, .high = 8, .is_integer = true};
  EXPECT_EQ(number_at(whole, 0.6), 1);
  EXPECT_EQ(number_at(whole, 8.4), 8);
  EXPECT_EQ(number_at(whole, 99), 8);
  const NumberRange odd{.low = 0.1, .high = 1, .step = 0.2};
  EXPECT_DOUBLE_EQ(number_at(odd, 0.95), 0.9);
  EXPECT_DOUBLE_EQ(number_at(odd, 5), 0.9);
  EXPECT_EQ(value_count({"odd", odd, {}}), 5);
  const NumberRange log{.low = 1e-4, .high = 1, .is_log = true};
  EXPECT_DOUBLE_EQ(number_at(log, position_of(log, 0.02)), 0.02);
  const NumberRange log_whole{.low = 1, .high = 1024, .is_integer = true, .is_log = true};
  EXPECT_EQ(number_at(log_whole, position_of(log_whole, 37.2)), 37);
  EXPECT_EQ(value_count({"log", log, {}}), std::nullopt);
}

TEST(Space, constraints_about_inactive_parameters_hold) {
  const auto space =
      Space::create({{"kind", texts({"sgd", "adam"}), {}},
                     {"momentum", NumberRange{}, Activation{"kind", {Value(std::string("sgd"))}}}},
                    {*Expression::parse("momentum > 0.5")});
  ASSERT_TRUE(space.ok());
  EXPECT_TRUE(space->is_feasible({0, 0.6}));
  EXPECT_FALSE(space->is_feasible({0, 0.4}));
  EXPECT_TRUE(space->is_feasible({1, kInactive}));
}

TEST(Space, counts_its_points) {
  EXPECT_EQ(Space().count(), 1);
  EXPECT_EQ(Space::create({{"a", texts({"x", "y"}), {}},
                           {"b", NumberRange{.low = 1, .high = 3, .is_integer = true}, {}}})
                ->count(),
            6);
  EXPECT_EQ(optimizer_space().count(), std::nullopt);
}

}  // namespace
}  // namespace stoker::sweep
