#include "record/trace/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/trace/trace.h"

namespace stoker::record {
namespace {

using testing::SizeIs;

TEST(TraceFile, returns_the_recorded_steps) {
  const TempDirectory folder;
  auto trace = *Trace::create(folder / "t.json", 3, "node", 10);
  for (std::uint64_t step = 7; step <= 8; ++step) {
    trace->at(1, step);
    trace->enter(Phase::forward);
    trace->begin(step, {"all-reduce", "float32", 400, {100}});
    trace->enter(Phase::backward);
    trace->end(step, CollectiveOutcome::done);
  }
  ASSERT_TRUE(trace->finish().ok());
  const auto file = read_trace(folder / "t.json");
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  ASSERT_THAT(file->steps, SizeIs(2));
  EXPECT_EQ(file->steps[1].epoch, 1u);
  EXPECT_EQ(file->steps[1].step, 8u);
  ASSERT_THAT(file->phases, SizeIs(4));
  EXPECT_EQ(file->phases[2].name, "forward");
  EXPECT_GE(file->phases[2].begin_us, file->steps[1].begin_us);
  EXPECT_LE(file->phases[3].end_us, file->steps[1].end_us + 0.2);  // tenths of a microsecond are not written
  ASSERT_THAT(file->exchanges, SizeIs(2));
  EXPECT_EQ(file->exchanges[1].name, "all-reduce float32 [100]");
  EXPECT_GE(file->exchanges[1].end_us, file->phases[3].begin_us);
}

constexpr std::string_view kStep =
    R"({"name":"step 1","cat":"step","ph":"X","pid":0,"ts":10,"dur":5,"args":{"epoch":0,"step":1}})";

std::size_t phases_in(std::string_view line) {
  const auto file = parse_trace("t", format("[\n{},\n{}", line, kStep));
  return file.ok() ? file->phases.size() : 99;
}

TEST(TraceFile, of_a_killed_rank_contains_the_complete_steps) {
  EXPECT_EQ(phases_in(R"({"name":"forward","cat":"phase","ph":"X","ts":10,"dur":2})"), 1u);
  EXPECT_EQ(phases_in(R"({"name":"forward","cat":"phase","ph":"X","ts":10,"du)"), 0u);
  const auto torn = parse_trace("t", format("[\n{},\n{{\"name\":\"step 2\",\"cat\":\"st", kStep));
  ASSERT_TRUE(torn.ok());
  EXPECT_THAT(torn->steps, SizeIs(1));
}

TEST(TraceFile, ignores_invalid_events) {
  for (const char* line :
       {"", "7", "[]", "{}", R"({"cat":"phase","ph":"X","ts":-1,"dur":2})",
        R"({"cat":"phase","ph":"X","ts":1e300,"dur":2})", R"({"cat":"phase","ph":"X","ts":"10","dur":-20})",
        R"({"cat":"exchange","ph":"e","id":"never begun","ts":1})"}) {
    EXPECT_EQ(phases_in(line), 0u) << line;
  }
  EXPECT_EQ(parse_trace("t", "").status().to_string(), "t: contains no complete step");
  EXPECT_EQ(parse_trace("t", "[\n]\n").status().code(), Code::corrupt);
  EXPECT_EQ(read_trace("/nowhere/t").status().code(), Code::not_found);
}

}  // namespace
}  // namespace stoker::record
