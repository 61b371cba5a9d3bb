#include "archive/safetensors.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::archive {
namespace {

using testing::ElementsAre;
using testing::Field;

std::string le64(std::uint64_t n) { return std::string(reinterpret_cast<const char*>(&n), sizeof n); }

std::string file_of(std::string_view json, std::size_t data_bytes) {
  return le64(json.size()) + std::string(json) + std::string(data_bytes, 'x');
}

Result<SafetensorsHeader> parse(const std::string& file) {
  return parse_safetensors_header("f", std::as_bytes(std::span(file)), file.size());
}

Result<SafetensorsHeader> parse(std::string_view json, std::size_t data_bytes) {
  return parse(file_of(json, data_bytes));
}

// One tensor 'a' whose fields are given.
std::string problem_of(std::string_view fields, std::size_t data_bytes = 8) {
  const auto header = parse(format("{{\"a\":{{{}}}}}", fields), data_bytes);
  if (header.ok()) return "ok";
  EXPECT_EQ(header.error().code(), Code::corrupt);
  return header.error().to_string();
}

constexpr std::string_view kGood = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";

TEST(Safetensors, reads_entries_in_the_order_of_their_bytes) {
  const auto header = parse(R"({"__metadata__":{"format":"pt"},
      "b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},
      "a":{"data_offsets":[0,8],"shape":[],"dtype":"F64"},
      "empty":{"dtype":"U8","shape":[3,0],"data_offsets":[8,8]}}   )",
                            16);
  ASSERT_TRUE(header.ok()) << header.error().to_string();
  EXPECT_THAT(header->entries, ElementsAre(SafetensorsEntry{"a", DType::f64, {}, 0, 8},
                                           SafetensorsEntry{"empty", DType::u8, {3, 0}, 8, 8},
                                           SafetensorsEntry{"b", DType::f32, {2}, 8, 16}));
  EXPECT_EQ(header->metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(header->file_bytes, header->data_begin + 16);
}

TEST(Safetensors, a_file_without_tensors_is_good) {
  ASSERT_TRUE(parse("{}", 0).ok());
  EXPECT_EQ(parse("{}", 1).error().to_string(), "f: is 11 bytes long, its header accounts for 10");
}

TEST(Safetensors, length_of_the_header_is_bounded_before_it_is_read) {
  EXPECT_EQ(parse("1234567").error().to_string(), "f: is 7 bytes long, too short for a safetensors file");
  EXPECT_EQ(parse(le64(100'000'001) + "{}").error().to_string(),
            "f: header is 100000001 bytes long (at most 100000000)");
  EXPECT_EQ(parse(le64(~0ull) + "{}").error().to_string(),
            "f: header is 18446744073709551615 bytes long (at most 100000000)");
  EXPECT_EQ(parse(le64(3) + "{}").error().to_string(), "f: is 10 bytes long, its header alone needs 11");
  const std::string file = le64(3) + "{}";
  EXPECT_EQ(parse_safetensors_header("f", std::as_bytes(std::span(file)), 11).error().to_string(),
            "f: header is cut off at byte 10");
}

TEST(Safetensors, header_must_be_an_object_of_json) {
  EXPECT_EQ(parse("", 0).error().to_string(), "f: header does not begin with '{'");
  EXPECT_EQ(parse(" {}", 0).error().to_string(), "f: header does not begin with '{'");
  EXPECT_EQ(parse("[]", 0).error().to_string(), "f: header does not begin with '{'");
  EXPECT_EQ(parse("{\"a\"", 0).error().to_string(), "f: header is not JSON (byte 5 of it)");
  EXPECT_EQ(parse("{}x", 0).error().to_string(), "f: header is not JSON (byte 3 of it)");
  EXPECT_EQ(parse("{\"\xff\":1}", 0).error().to_string(), "f: header is not JSON (byte 3 of it)");
}

TEST(Safetensors, names_are_unique_and_not_empty) {
  const std::string entry = format("{{{}}}", kGood);
  EXPECT_EQ(parse(format("{{\"a\":{},\"a\":{}}}", entry, entry), 8).error().to_string(),
            "f: tensor 'a': appears twice");
  EXPECT_EQ(parse(format("{{\"\":{}}}", entry), 8).error().to_string(), "f: a name is empty");
  EXPECT_EQ(parse(R"({"a":1})", 0).error().to_string(), "f: tensor 'a': is a number, not an object");
  EXPECT_EQ(parse(R"({"a":[]})", 0).error().to_string(), "f: tensor 'a': is a list, not an object");
}

TEST(Safetensors, metadata_holds_text_only_and_no_key_twice) {
  EXPECT_EQ(parse(R"({"__metadata__":{"k":1}})", 0).error().to_string(),
            "f: tensor '__metadata__': key 'k' is a number");
  EXPECT_EQ(parse(R"({"__metadata__":{"k":{}}})", 0).error().to_string(),
            "f: tensor '__metadata__': key 'k' is an object");
  EXPECT_EQ(parse(R"({"__metadata__":{"k":"1","k":"2"}})", 0).error().to_string(),
            "f: tensor '__metadata__': key 'k' appears twice");
}

TEST(Safetensors, every_field_is_needed_once_and_no_other_is_known) {
  EXPECT_EQ(problem_of(kGood), "ok");
  EXPECT_EQ(problem_of(R"("shape":[2],"data_offsets":[0,8])"), "f: tensor 'a': key 'dtype' is missing");
  EXPECT_EQ(problem_of(R"("dtype":"F32","data_offsets":[0,8])"), "f: tensor 'a': key 'shape' is missing");
  EXPECT_EQ(problem_of(R"("dtype":"F32","shape":[2])"), "f: tensor 'a': key 'data_offsets' is missing");
  EXPECT_EQ(problem_of(R"("dtype":"F32","dtype":"F32")"), "f: tensor 'a': key 'dtype' appears twice");
  EXPECT_EQ(problem_of(R"("stride":[1])"), "f: tensor 'a': key 'stride' is not known");
}

TEST(Safetensors, dtype_is_a_known_name) {
  EXPECT_EQ(problem_of(R"("dtype":"F99")"), "f: tensor 'a': dtype 'F99' is not supported");
  EXPECT_EQ(problem_of(R"("dtype":4)"), "f: tensor 'a': key 'dtype' is a number");
  EXPECT_EQ(problem_of(R"("dtype":["F32"])"), "f: tensor 'a': key 'dtype' is a list");
}

TEST(Safetensors, shape_holds_sizes_that_fit) {
  EXPECT_EQ(problem_of(R"("shape":[-1])"), "f: tensor 'a': shape holds a negative number");
  EXPECT_EQ(problem_of(R"("shape":[1.5])"),
            "f: tensor 'a': shape holds a number that is not an integer of 64 bits");
  EXPECT_EQ(problem_of(R"("shape":[99999999999999999999])"),
            "f: tensor 'a': shape holds a number that is not an integer of 64 bits");
  EXPECT_EQ(problem_of(R"("shape":[9223372036854775808])"),
            "f: tensor 'a': size 9223372036854775808 is too large");
  EXPECT_EQ(problem_of(R"("shape":[[1]])"), "f: tensor 'a': shape holds a list");
  EXPECT_EQ(problem_of(R"("shape":2)"), "f: tensor 'a': key 'shape' is a number");
  EXPECT_EQ(problem_of(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8])"),
            "f: tensor 'a': shape is too large");
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_EQ(problem_of(format("\"shape\":[{}]", many)), "f: tensor 'a': has more than 64 dimensions");
}

TEST(Safetensors, offsets_are_two_and_span_what_the_shape_needs) {
  EXPECT_EQ(problem_of(R"("data_offsets":[0])"), "f: tensor 'a': data_offsets has fewer than two numbers");
  EXPECT_EQ(problem_of(R"("data_offsets":[0,8,9])"), "f: tensor 'a': data_offsets has more than two numbers");
  EXPECT_EQ(problem_of(R"("data_offsets":[-1,8])"), "f: tensor 'a': data_offsets holds a negative number");
  EXPECT_EQ(problem_of(R"("data_offsets":null)"), "f: tensor 'a': key 'data_offsets' is null");
  EXPECT_EQ(problem_of(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"),
            "f: tensor 'a': data_offsets end before they begin");
  EXPECT_EQ(problem_of(R"("dtype":"F32","shape":[2],"data_offsets":[0,7])"),
            "f: tensor 'a': data_offsets span 7 bytes, shape and dtype need 8");
}

TEST(Safetensors, data_is_covered_once_and_to_its_end) {
  EXPECT_EQ(problem_of(kGood, 9).substr(0, 4), "f: i");
  EXPECT_EQ(parse(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3).error().to_string(),
            "f: tensor 'a': begins at byte 1 of the data, 0 belongs to no tensor");
  EXPECT_EQ(parse(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                      "b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                  3)
                .error()
                .to_string(),
            "f: tensor 'b': overlaps the tensor before it");
  EXPECT_EQ(parse(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3).error().to_string(),
            "f: is 64 bytes long, its header needs 65");
  EXPECT_EQ(parse(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3).error().to_string(),
            "f: is 64 bytes long, its header accounts for 63");
}

TEST(Safetensors, deep_nesting_ends_at_the_first_bracket) {
  const std::string brackets(1'000'000, '[');
  EXPECT_EQ(parse("{\"a\":" + brackets, 0).error().to_string(), "f: tensor 'a': is a list, not an object");
}

TEST(Safetensors, what_is_planned_reads_back_and_begins_on_a_page) {
  auto plan = plan_safetensors({{"z", DType::f32, {3}, 0, 0},
                                {"byte", DType::u8, {5}, 0, 0},
                                {"scalar", DType::f64, {}, 0, 0},
                                {"nothing", DType::f32, {0, 7}, 0, 0},
                                {"a \"quoted\" é", DType::f32, {1}, 0, 0}},
                               {{"format", "pt"}});
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  EXPECT_EQ(plan->bytes.size() % kSafetensorsAlignment, 0u);
  EXPECT_THAT(
      plan->header.entries,
      ElementsAre(Field(&SafetensorsEntry::name, "scalar"), Field(&SafetensorsEntry::name, "a \"quoted\" é"),
                  Field(&SafetensorsEntry::name, "nothing"), Field(&SafetensorsEntry::name, "z"),
                  Field(&SafetensorsEntry::name, "byte")));
  const auto back = parse(plan->bytes + std::string(plan->header.file_bytes - plan->bytes.size(), 'x'));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(*back, plan->header);
}

TEST(Safetensors, a_header_with_nothing_in_it_can_be_planned) {
  const auto plan = plan_safetensors({}, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->bytes.size(), kSafetensorsAlignment);
  EXPECT_TRUE(parse(plan->bytes).ok());
}

TEST(Safetensors, a_header_with_another_text_is_as_if_it_were_planned_with_it) {
  const std::vector<SafetensorsEntry> entries = {{"a", DType::f32, {2, 3}, 0, 0},
                                                 {"b \"", DType::u8, {}, 0, 0}};
  // A text that looks like the member, and one that is longer than a page.
  const auto metadata = [](std::string text) {
    return std::map<std::string, std::string>{{"info", "{\"save\":\"x\"}"}, {"save", std::move(text)}};
  };
  const auto plan = plan_safetensors(entries, metadata("x"));
  ASSERT_TRUE(plan.ok());
  for (const std::size_t length : {0, 1, 7, 3800, 3900, 4000, 4100, 9000}) {
    for (const std::string& text : {std::string(length, 'y'), std::string(length, '"')}) {
      const auto wanted = plan_safetensors(entries, metadata(text));
      EXPECT_EQ(*header_with_metadata(*plan, "save", text), wanted->bytes) << length;
      EXPECT_EQ(*header_with_metadata(*wanted, "save", "x"), plan->bytes) << length;
    }
  }
  EXPECT_EQ(header_with_metadata(*plan, "save", "\xff").error().to_string(),
            "safetensors: metadata 'save' is not plain text");
}

TEST(Safetensors, refuses_to_plan_what_could_not_be_read) {
  const auto problem = [](std::vector<SafetensorsEntry> entries) {
    const auto plan = plan_safetensors(std::move(entries), {});
    return plan.ok() ? "ok" : plan.error().to_string();
  };
  EXPECT_EQ(problem({{"", DType::u8, {}, 0, 0}}), "safetensors: a tensor has no name");
  EXPECT_EQ(problem({{"a\n", DType::u8, {}, 0, 0}}), "safetensors: tensor 'a\\x0a': name is not plain text");
  EXPECT_EQ(problem({{"__metadata__", DType::u8, {}, 0, 0}}),
            "safetensors: a tensor must not be named '__metadata__'");
  EXPECT_EQ(problem({{"a", DType::u8, {}, 0, 0}, {"a", DType::u8, {}, 0, 0}}),
            "safetensors: tensor 'a' appears twice");
  EXPECT_EQ(problem({{"a", DType::u8, {-1}, 0, 0}}),
            "safetensors: tensor 'a': shape is negative or too large");
  EXPECT_EQ(problem({{"a", DType::u8, Shape(65, 1), 0, 0}}),
            "safetensors: tensor 'a': has more than 64 dimensions");
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(problem({{"a", DType::u8, {huge}, 0, 0}, {"b", DType::u8, {huge}, 0, 0}}),
            "safetensors: tensor 'b': the file becomes too large");
  EXPECT_EQ(plan_safetensors({}, {{"k", "\xff"}}).error().to_string(),
            "safetensors: metadata 'k' is not plain text");
}

TEST(Safetensors, reads_a_file_whose_length_is_exact) {
  const TempDirectory folder;
  const auto path = folder / "t.safetensors";
  const std::string good = file_of(format("{{\"a\":{{{}}}}}", kGood), 8);
  ASSERT_TRUE(write_file(path, good).ok());
  EXPECT_TRUE(read_safetensors_header(path).ok());
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    ASSERT_TRUE(write_file(path, good.substr(0, cut)).ok());
    const auto header = read_safetensors_header(path);
    ASSERT_FALSE(header.ok()) << "cut to " << cut;
    EXPECT_EQ(header.error().code(), Code::corrupt);
  }
  ASSERT_TRUE(write_file(path, good + "x").ok());
  EXPECT_EQ(read_safetensors_header(path).error().to_string(),
            format("{}: is {} bytes long, its header accounts for {}", path.string(), good.size() + 1,
                   good.size()));
  EXPECT_EQ(read_safetensors_header(folder / "none").error().code(), Code::not_found);
}

}  // namespace
}  // namespace stoker::archive
