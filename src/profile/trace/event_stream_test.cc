#include "profile/trace/event_stream.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Seen {
  std::vector<std::string> names;
  std::vector<std::string> keys;
  std::uint64_t damaged = 0;
  bool is_cut_off = false;
  Status status;
};

Seen read_in_pieces(std::string_view text, std::size_t piece) {
  Seen seen;
  EventStream stream([&](const TraceEvent& event) { seen.names.emplace_back(event.name); },
                     [&](std::string_view key, std::string_view) { seen.keys.emplace_back(key); });
  for (std::size_t at = 0; at < text.size() && seen.status.ok(); at += piece)
    seen.status = stream.add(text.substr(at, piece));
  if (seen.status.ok()) seen.status = stream.finish();
  seen.damaged = stream.damaged();
  seen.is_cut_off = stream.is_cut_off();
  return seen;
}

TEST(EventStream, reads_both_forms_in_pieces_of_any_size) {
  const std::string object = R"({"schemaVersion": 1, "distributedInfo": {"rank": 3, "x": [1, {"a": "]}"}]},
 "traceEvents": [{"ph": "X", "name": "a", "ts": 1.5, "dur": 2}, {"ph":"X","name":"b \" ] } \\"},
 {"args": {"deep": [[{}]]}, "name": "c"}], "traceName": "t"})";
  const std::string array = "[\n{\"name\":\"a\"},\n{\"name\":\"b\"}\n]";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{10'000}}) {
    const Seen seen = read_in_pieces(object, piece);
    ASSERT_TRUE(seen.status.ok()) << seen.status.to_string();
    EXPECT_THAT(seen.names, ElementsAre("a", R"(b \" ] } \\)", "c"));
    EXPECT_THAT(seen.keys, ElementsAre("schemaVersion", "distributedInfo", "traceName"));
    EXPECT_EQ(seen.damaged, 0u);
    EXPECT_FALSE(seen.is_cut_off);
    EXPECT_THAT(read_in_pieces(array, piece).names, ElementsAre("a", "b"));
  }
}

TEST(EventStream, a_trace_that_ends_early_has_the_events_before) {
  const std::string text = R"({"traceEvents": [{"name": "a"}, {"name": "b", "args": {)";
  const Seen seen = read_in_pieces(text, 5);
  EXPECT_TRUE(seen.status.ok());
  EXPECT_THAT(seen.names, ElementsAre("a"));
  EXPECT_TRUE(seen.is_cut_off);
}

TEST(EventStream, other_texts_are_corrupt) {
  for (const char* text :
       {"", "{}", "hello", "{\"a\": 1}", "{1: 2}", "{\"traceEvents\": [}", "{\"a\":,}", "\x1f\x8b"}) {
    const Seen seen = read_in_pieces(text, 3);
    EXPECT_EQ(seen.status.code(), Code::corrupt) << text;
    EXPECT_THAT(std::string(seen.status.message()), HasSubstr("no Chrome trace")) << text;
  }
}

TEST(EventStream, damaged_events_are_skipped_and_counted) {
  const Seen seen = read_in_pieces(
      R"([{"name": "a"}, 7, "x", {"name" "b"}, {"name": "c", "ts": "soon"}, [1], {"name": "d"}])", 4);
  EXPECT_TRUE(seen.status.ok());
  EXPECT_THAT(seen.names, ElementsAre("a", "d"));
  EXPECT_EQ(seen.damaged, 5u);
}

TEST(EventStream, deep_and_huge_values_take_no_stack_and_no_memory) {
  const std::string deep(3'000'000, '[');
  EXPECT_TRUE(read_in_pieces("[{\"args\": " + deep, 1 << 20).is_cut_off);
  const std::string huge = R"([{"name": "a", "args": {"x": ")" +
                           std::string(EventStream::kMostBytes + (3u << 20), 'x') + R"("}}, {"name": "b"}])";
  const Seen seen = read_in_pieces(huge, 1 << 20);
  EXPECT_TRUE(seen.status.ok());
  EXPECT_THAT(seen.names, ElementsAre("b"));
  EXPECT_EQ(seen.damaged, 1u);
  const std::string value = R"({"a": ")" + std::string(EventStream::kMostBytes + (3u << 20), 'x') +
                            R"(", "traceEvents": [{"name": "b"}]})";
  EXPECT_THAT(read_in_pieces(value, 1 << 20).names, ElementsAre("b"));
}

TEST(EventStream, times_are_exact_nanoseconds) {
  EXPECT_EQ(parse_micros("1763719391000120.456"), 1'763'719'391'000'120'456);
  EXPECT_EQ(parse_micros("0.001"), 1);
  EXPECT_EQ(parse_micros("2"), 2000);
  EXPECT_EQ(parse_micros("-1.5"), -1500);
  EXPECT_EQ(parse_micros("1.23456789"), 1234);
  EXPECT_EQ(parse_micros("1e3"), 1'000'000);
  for (const char* wrong : {"", "-", "x", "1x", "1e99", "99999999999999999999", "nan", "inf", "null"})
    EXPECT_EQ(parse_micros(wrong), std::nullopt) << wrong;
}

TEST(EventStream, spans_with_impossible_durations_have_no_time) {
  EXPECT_TRUE(parse_event(R"({"ts": 1, "dur": 0})")->has_time);
  EXPECT_TRUE(parse_event(R"({"ts": 1})")->has_time);
  EXPECT_FALSE(parse_event(R"({"dur": 1})")->has_time);
  EXPECT_FALSE(parse_event(R"({"ts": 1, "dur": -1})")->has_time);
  EXPECT_FALSE(parse_event(R"({"ts": 1, "dur": 3999999999999999})")->has_time);
}

}  // namespace
}  // namespace stoker::profile
