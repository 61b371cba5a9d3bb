#include "sweep/space/expression.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::map<std::string, Value, std::less<>> kValues = {
    {"lr", 0.1}, {"width", std::int64_t{64}}, {"train.kind", std::string("sgd")}, {"nesterov", true}};

Result<std::optional<bool>> result_of(std::string_view text) {
  STOKER_ASSIGN_OR_RETURN(expression, Expression::parse(text));
  return expression.holds([](std::string_view name) -> std::optional<Value> {
    const auto found = kValues.find(name);
    return found == kValues.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Expression, precedence_is_pythons) {
  for (const char* text : {
           "1 + 2 * 3 == 7",
           "(1 + 2) * 3 == 9",
           "2 ** 3 ** 2 == 512",
           "-2 ** 2 == -4",
           "7 // 2 == 3",
           "-7 // 2 == -4",
           "-7 % 3 == 2",
           "1 < 2 < 3",
           "not 1 > 2",
           "true or false and false",
           "not (false and true)",
           "1e3 == 1000",
           "2 - 1 - 1 == 0",
           "8 / 4 / 2 == 1",
           "not not true",
           "1 == 1.0",
           "'a' < 'b'",
           "+3 == 3",
       }) {
    const auto result = result_of(text);
    ASSERT_TRUE(result.ok()) << text << ": " << result.status().to_string();
    EXPECT_EQ(*result, true) << text;
  }
  EXPECT_EQ(*result_of("3 > 2 > 1"), true);
  EXPECT_EQ(*result_of("3 > 1 > 2"), false);
}

TEST(Expression, names_have_their_values) {
  EXPECT_EQ(*result_of("width * 2 <= 128 and train.kind == 'sgd'"), true);
  EXPECT_EQ(*result_of("train.kind in ('adam', 'lamb')"), false);
  EXPECT_EQ(*result_of("width in [32, 64]"), true);
  EXPECT_EQ(*result_of("nesterov"), true);
  EXPECT_EQ(*result_of("'1' == 1"), false);
  EXPECT_THAT(Expression::parse("b * a > a")->names(), ElementsAre("a", "b"));
  EXPECT_THAT(Expression::parse("weight-decay - x > 1")->names(), ElementsAre("weight-decay", "x"));
}

TEST(Expression, an_unknown_value_decides_only_where_it_matters) {
  EXPECT_EQ(*result_of("absent > 1"), std::nullopt);
  EXPECT_EQ(*result_of("absent > 1 and lr > 1"), false);
  EXPECT_EQ(*result_of("absent > 1 or lr < 1"), true);
  EXPECT_EQ(*result_of("not absent > 1"), std::nullopt);
}

TEST(Expression, faults_name_the_column) {
  const std::map<std::string, std::string> faults = {
      {"", "expected a value at column 1"},
      {"lr <", "expected a value at column 5"},
      {"(lr < 1", "expected ')' at column 8"},
      {"lr < 1 lr", "unexpected text at column 8"},
      {"lr = 1", "unexpected text at column 4"},
      {"'a", "text without its closing quote at column 1"},
      {"lr < 1x", "expected a number at column 6"},
      {"lr in 3", "expected '(' after 'in' at column 7"},
      {"lr in (1", "expected the end of the list at column 9"},
      {"and lr", "expected a value before this at column 4"},
  };
  for (const auto& [text, fault] : faults) {
    const auto parsed = Expression::parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().message(), "constraint '" + text + "': " + fault);
  }
}

TEST(Expression, hostile_texts_are_refused) {
  EXPECT_THAT(std::string(Expression::parse(std::string(3000, '1')).status().message()),
              HasSubstr("at most 2000"));
  for (const std::string& nested : {std::string(1900, '('), std::string(1900, '-'), std::string(1900, '+')})
    EXPECT_THAT(std::string(Expression::parse(nested).status().message()), HasSubstr("nested too deep"));
}

TEST(Expression, a_value_of_the_wrong_kind_is_invalid) {
  EXPECT_EQ(result_of("train.kind + 1 > 2").status().message(),
            "constraint 'train.kind + 1 > 2': 'sgd' is text, where a number is expected");
  EXPECT_EQ(result_of("lr").status().message(),
            "constraint 'lr': '0.1' is a value, where a condition is expected");
  EXPECT_EQ(result_of("1 / (lr - lr) > 1").status().message(),
            "constraint '1 / (lr - lr) > 1': division by 0");
}

TEST(Value, is_written_in_its_shortest_form) {
  EXPECT_EQ(to_text(Value(0.1)), "0.1");
  EXPECT_EQ(to_text(Value(1e-5)), "1e-05");
  EXPECT_EQ(to_text(Value(true)), "true");
  EXPECT_EQ(to_text(Value(std::int64_t{-3})), "-3");
  EXPECT_TRUE(is_same_value(Value(1.0), Value(std::int64_t{1})));
  EXPECT_FALSE(is_same_value(Value(true), Value(std::int64_t{1})));
  EXPECT_FALSE(is_same_value(Value(std::string("1")), Value(std::int64_t{1})));
}

}  // namespace
}  // namespace stoker::sweep
