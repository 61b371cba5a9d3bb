#include "job/json_schema.h"

#include <string>

#include <gtest/gtest.h>

#include "base/json/json.h"
#include "job/settings.h"

namespace stoker::job {
namespace {

using Json = nlohmann::ordered_json;

// The schema at a key such as "data.*.source"; a discarded value if it has no such key.
Json key_schema(const std::string& key) {
  Json at = parse_json<Json>(json_schema());
  for (const std::string_view part : split(key, '.')) {
    if (at.contains("anyOf") && at["anyOf"].back().contains("properties")) at = at["anyOf"].back();
    const Json& keys = part == "*" ? at["additionalProperties"] : at["properties"][std::string(part)];
    at = Json(keys);
  }
  return at;
}

TEST(JsonSchema, every_setting_has_a_description_and_its_default) {
  for (const config::Setting& setting : schema().settings()) {
    const std::string key(setting.key);
    Json found = key_schema(key);
    if (key == "run" || key == "record.metrics_from") found = found["anyOf"][0];
    ASSERT_TRUE(found.is_object()) << key;
    EXPECT_EQ(found["description"].get<std::string>().rfind(setting.help, 0), 0u) << key;
    EXPECT_EQ(found.contains("default"), !setting.fallback.empty()) << key;
  }
}

TEST(JsonSchema, groups_refuse_unknown_keys_and_user_defined_names_have_a_pattern) {
  const Json all = parse_json<Json>(json_schema());
  EXPECT_EQ(all["additionalProperties"], false);
  EXPECT_EQ(all["properties"]["resources"]["additionalProperties"], false);
  EXPECT_EQ(all["properties"]["data"]["propertyNames"]["pattern"], "^[A-Za-z_][A-Za-z0-9_-]{0,63}$");
  EXPECT_EQ(all["properties"]["data"]["additionalProperties"]["additionalProperties"], false);
}

TEST(JsonSchema, types_ranges_and_choices_follow_the_declarations) {
  EXPECT_EQ(key_schema("resources.nodes")["anyOf"][0],
            parse_json<Json>(R"({"type": "integer", "minimum": 1, "maximum": 10000})"));
  EXPECT_EQ(key_schema("resources.nodes")["default"], 1);
  EXPECT_EQ(key_schema("train.optimizer.lr")["default"], 0.1);
  EXPECT_EQ(key_schema("train.drop_last")["default"], false);
  EXPECT_EQ(key_schema("stage.timeout")["default"], "30m");
  EXPECT_EQ(key_schema("train.shuffle")["anyOf"][0],
            parse_json<Json>(R"({"enum": ["every_epoch", "full", "by_shard", "by_chunk", "none"]})"));
  EXPECT_EQ(key_schema("checkpoint.every")["anyOf"][0],
            parse_json<Json>(R"({"type": "string", "pattern": "^(never|auto|[0-9]+ *(steps?|epochs?))$"})"));
}

}  // namespace
}  // namespace stoker::job
