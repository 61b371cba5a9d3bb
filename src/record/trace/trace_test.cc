#include "record/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/json.h"

namespace stoker::record {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

// Two steps of a rank, each with a forward and a backward phase and a collective that starts within backward.
void run_two_steps(Trace& trace) {
  for (std::uint64_t step = 1; step <= 2; ++step) {
    trace.at(0, step);
    trace.enter(Phase::forward);
    trace.enter(Phase::backward);
    trace.begin(step, {"all-reduce", "float32", 400, {100}});
    trace.end(step, CollectiveOutcome::done);
    trace.enter(Phase::optimizer);
  }
}

std::vector<std::string> names_of(const Json& events, std::string_view category) {
  std::vector<std::string> names;
  for (const Json& event : events) {
    if (event.value("cat", "") == category && event.contains("name")) names.push_back(event["name"]);
  }
  return names;
}

const Json& named(const Json& events, std::string_view name, int time = 1) {
  static const Json kNone;
  for (const Json& event : events) {
    if (event.value("name", "") == name && --time == 0) return event;
  }
  ADD_FAILURE() << "no event '" << name << "'";
  return kNone;
}

TEST(Trace, contains_steps_with_their_phases_and_collectives) {
  const TempDirectory folder;
  auto trace = *Trace::create(folder / "t.json", 3, "node \"7\"", 10);
  run_two_steps(*trace);
  ASSERT_TRUE(trace->finish().ok());
  const Json events = Json::parse(*read_file(folder / "t.json"));
  EXPECT_EQ(events.at(0).at("args").at("name"), "rank 3 (node \"7\")");
  EXPECT_THAT(names_of(events, "step"), ElementsAre("step 1", "step 2"));
  EXPECT_THAT(names_of(events, "phase"),
              ElementsAre("forward", "backward", "optimizer", "forward", "backward", "optimizer"));
  EXPECT_THAT(names_of(events, "exchange"),
              ElementsAre("all-reduce float32 [100]", "all-reduce float32 [100]"));
  const Json& step = named(events, "step 2");
  const Json& backward = named(events, "backward", 2);
  const Json& exchange = named(events, "all-reduce float32 [100]", 2);
  const auto end_of = [](const Json& event) {
    return event.at("ts").get<double>() + event.at("dur").get<double>();
  };
  EXPECT_LE(step.at("ts"), backward.at("ts"));
  EXPECT_LE(end_of(backward), end_of(step) + 0.2);  // tenths of a microsecond are not written
  EXPECT_LE(backward.at("ts"), exchange.at("ts"));
  EXPECT_LE(exchange.at("ts").get<double>(), end_of(backward) + 0.2);
  EXPECT_EQ(exchange.at("args").at("bytes"), 400);
  EXPECT_EQ(exchange.at("pid"), 3);
}

TEST(Trace, ends_after_the_requested_steps) {
  const TempDirectory folder;
  auto trace = *Trace::create(folder / "t.json", 0, "here", 1);
  run_two_steps(*trace);
  const Json events = Json::parse(*read_file(folder / "t.json"));  // complete before the training ends
  EXPECT_THAT(names_of(events, "step"), ElementsAre("step 1"));
  ASSERT_TRUE(trace->finish().ok());
  EXPECT_EQ(Json::parse(*read_file(folder / "t.json")), events);
}

TEST(Trace, of_a_killed_rank_contains_all_steps_but_the_last) {
  const TempDirectory folder;
  auto trace = *Trace::create(folder / "t.json", 0, "here", 10);
  run_two_steps(*trace);
  // Perfetto accepts a missing bracket at the end.
  const Json events = Json::parse(*read_file(folder / "t.json") + "]");
  EXPECT_THAT(names_of(events, "step"), ElementsAre("step 1"));
}

TEST(Trace, reports_a_write_error_at_the_end) {
  auto trace = Trace::create("/dev/full", 0, "here", 10);
  ASSERT_TRUE(trace.ok());
  run_two_steps(**trace);
  EXPECT_EQ((*trace)->finish().to_string(), "/dev/full: no space left on device");
}

}  // namespace
}  // namespace stoker::record
