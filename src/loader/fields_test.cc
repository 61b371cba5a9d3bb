#include "stoker/fields.h"

#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

Result<std::vector<FieldValue>> read(const std::string& file, const std::vector<ComponentField>& fields) {
  return read_fields(std::as_bytes(std::span(file)), fields);
}
std::string refusal(const std::string& file, const ComponentField& field) {
  return read(file, {field}).status().to_string();
}

TEST(Fields, are_read_from_json_by_dotted_name) {
  const std::string json = R"({"age": 31, "name": "Zoë", "box": {"x": [1], "score": 0.5}, "ok": true})";
  const auto values = read(json, {{.name = "age", .kind = FieldKind::integer},
                                  {.name = "age"},
                                  {.name = "box.score"},
                                  {.name = "name", .kind = FieldKind::text},
                                  {.name = "ok", .kind = FieldKind::integer}})
                          .value();
  EXPECT_EQ(values,
            (std::vector<FieldValue>{std::int64_t{31}, 31.0, 0.5, std::string("Zoë"), std::int64_t{1}}));
}

TEST(Fields, are_read_from_one_line_of_csv) {
  const std::string csv = "id,score,what\r\n-7,2.5e3,\"a, b\"\r\n";
  const auto values = read(csv, {{.component = "csv", .name = "score"},
                                 {.component = "csv", .name = "id", .kind = FieldKind::integer},
                                 {.component = "csv", .name = "what", .kind = FieldKind::text}})
                          .value();
  EXPECT_EQ(values, (std::vector<FieldValue>{2500.0, std::int64_t{-7}, std::string("a, b")}));
  EXPECT_EQ(read("a\tb\n1\t2\n", {{.component = "meta.tsv", .name = "b"}}).value()[0], FieldValue(2.0));
}

TEST(Fields, without_a_name_are_the_whole_text) {
  const ComponentField text{.component = "txt", .kind = FieldKind::text};
  EXPECT_EQ(read("héllo 🜂\n", {text}).value()[0], FieldValue(std::string("héllo 🜂\n")));
  EXPECT_EQ(read("", {text}).value()[0], FieldValue(std::string()));
  for (const char* bad : {"\xFF", "a\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE0\x80\xAF"})
    EXPECT_EQ(refusal(bad, text), "txt: not UTF-8");
}

TEST(Fields, reject_missing_fields_and_wrong_kinds) {
  EXPECT_EQ(refusal("{", {.name = "a"}), "json: not valid JSON");
  EXPECT_EQ(refusal("[1]", {.name = "a"}), "json: no field 'a'");
  EXPECT_EQ(refusal(R"({"a": {"b": 1}})", {.name = "a.c"}), "json: no field 'a.c'");
  EXPECT_EQ(refusal(R"({"a": "1"})", {.name = "a"}), "json: field 'a' is not a number");
  EXPECT_EQ(refusal(R"({"a": 1.5})", {.name = "a", .kind = FieldKind::integer}),
            "json: field 'a' is not a whole number");
  EXPECT_EQ(refusal(R"({"a": 18446744073709551615})", {.name = "a", .kind = FieldKind::integer}),
            "json: field 'a' is not a whole number");
  EXPECT_EQ(refusal(R"({"a": null})", {.name = "a", .kind = FieldKind::text}),
            "json: field 'a' is not a text");
  const auto csv = [](const char* name) { return ComponentField{.component = "csv", .name = name}; };
  EXPECT_EQ(refusal("a,b\n", csv("a")), "csv: expected a header and one line of values");
  EXPECT_EQ(refusal("a,b\n1,2\n3,4\n", csv("a")), "csv: more than a header and one line of values");
  EXPECT_EQ(refusal("a,b\n1,x\n", csv("c")), "csv: no field 'c'");
  EXPECT_EQ(refusal("a,b\n1,x\n", csv("b")), "csv: field 'b' is not a number");
  EXPECT_EQ(refusal("a,b\n1,nan\n", csv("b")), "csv: field 'b' is not a number");
  EXPECT_EQ(refusal(std::string((16u << 20) + 1, ' '), {.name = "a"}), "json: over 16 MiB");
}

TEST(Fields, in_deeply_nested_json_are_refused_without_a_crash) {
  EXPECT_EQ(refusal(std::string(1000000, '['), {.name = "a"}), "json: not valid JSON");
}

}  // namespace
}  // namespace stoker::loader
