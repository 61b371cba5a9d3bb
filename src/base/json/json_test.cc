#include "base/json/json.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

TEST(Json, discards_invalid_json) {
  for (const char* text : {"", "{", "nul", "[1,]", "{\"a\" 1}", "\"\xff\"", "1 2"}) {
    EXPECT_TRUE(parse_json<json>(text).is_discarded()) << text;
    EXPECT_FALSE(parse_json<ordered_json>(text).is_object()) << text;
  }
}

TEST(Json, keeps_or_sorts_the_order) {
  EXPECT_EQ(json_text(parse_json<ordered_json>(R"({"b":1,"a":[2,"x"]})")), R"({"b":1,"a":[2,"x"]})");
  EXPECT_EQ(json_text(parse_json<json>(R"({"b":1,"a":[2,"x"]})")), R"({"a":[2,"x"],"b":1})");
  EXPECT_EQ(json_text(json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

TEST(Json, nests_at_most_512_deep) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json<json>(nested(512)).is_array());
  EXPECT_TRUE(parse_json<json>(nested(513)).is_discarded());
  EXPECT_TRUE(parse_json<json>(nested(1'000'000)).is_discarded());
  // Brackets in strings do not count.
  EXPECT_TRUE(
      parse_json<json>("[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"]").is_array());
}

TEST(Json, replaces_invalid_utf8_and_can_escape_to_ascii) {
  EXPECT_EQ(json_text(json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(json_ascii(json("\xc3\xa9")), "\"\\u00e9\"");
  EXPECT_EQ(json_ascii(ordered_json{{"a", "\xc3\xa9"}}), "{\"a\":\"\\u00e9\"}");
}

}  // namespace
}  // namespace stoker
