#include "profile/trace/trace_profile.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "profile/trace/trace_events.h"

namespace stoker::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string span(std::string_view category, std::string_view name, int begin_us, int end_us,
                 std::string_view args = "{}") {
  return format(R"({{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":1,"ts":{},"dur":{},"args":{}}})", category,
                name, begin_us, end_us - begin_us, args);
}
std::string trace_of(const std::vector<std::string>& events,
                     std::string_view info = R"({"rank":0,"world_size":1,"pg_count":1})") {
  return format(R"({{"distributedInfo":{},"traceEvents":[{}]}})", info, join(events, ",\n"));
}

class Traces {
 public:
  Path put(std::string_view name, std::string_view text) {
    const Path file = box_ / name;
    EXPECT_TRUE(write_file(file, text).ok());
    files_.push_back(file);
    return file;
  }
  Result<Profile> read(const StepSelection& selection = {}) const {
    Profile profile;
    profile.subject = "test";
    CollectiveTable collectives;
    STOKER_RETURN_IF_ERROR(read_traces(files_, selection, collectives, profile));
    profile.collectives = collectives.rows();
    return profile;
  }

 private:
  TempDirectory box_;
  std::vector<Path> files_;
};

TEST(TraceProfile, a_moment_on_a_gpu_counts_once_compute_first) {
  Traces traces;
  traces.put(
      "rank0.json",
      trace_of({
          span("user_annotation", "ProfilerStep#7", 0, 100),
          span("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 20),
          span("cpu_op", "aten::mm", 15, 30),
          span("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 18, 32),
          span("kernel", "gemm", 30, 60),
          span("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 50, 80,
               R"({"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,)"
               R"("Group size":4,"dtype":"Float","Process Group Description":"default_pg"})"),
          span("gpu_memset", "Memset (Device)", 79, 85),
          span("cuda_runtime", "cudaLaunchKernel", 84, 88),
      }));
  const auto profile = traces.read();
  ASSERT_TRUE(profile.ok()) << profile.status().to_string();
  const PartTimes& times = profile->ranks.at(0).times;
  EXPECT_EQ(times[ProfilePart::data], 18'000);
  EXPECT_EQ(times[ProfilePart::host_to_device], 12'000);
  EXPECT_EQ(times[ProfilePart::compute], 30'000);
  EXPECT_EQ(times[ProfilePart::communication], 20'000);
  EXPECT_EQ(times[ProfilePart::copies], 5'000);
  EXPECT_EQ(times[ProfilePart::host], 3'000);
  EXPECT_EQ(times[ProfilePart::other], 12'000);
  EXPECT_EQ(times.total(), 100'000);
  EXPECT_EQ(profile->ranks[0].communication, 30'000);
  EXPECT_EQ(profile->range->first, 7);
  ASSERT_THAT(profile->collectives, SizeIs(1));
  const CollectiveRow& row = profile->collectives[0];
  EXPECT_EQ(row.kind.operation, "all-reduce");
  EXPECT_EQ(row.kind.group, "default_pg");
  EXPECT_EQ(row.kind.ranks, 4);
  EXPECT_EQ(row.kind.bytes, 4000u);
  EXPECT_EQ(row.shortest, 30'000);
}

TEST(TraceProfile, without_gpu_events_the_operators_of_the_host_are_split) {
  Traces traces;
  traces.put("rank0.json", trace_of({
                               span("user_annotation", "ProfilerStep#1", 0, 50),
                               span("user_annotation", "ProfilerStep#2", 50, 100),
                               span("user_annotation", "enumerate(DataLoader)#x", 0, 10),
                               span("cpu_op", "aten::stack", 2, 8),
                               span("user_annotation", "DistributedDataParallel.forward", 10, 30),
                               span("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 30, 45),
                               span("user_annotation", "gloo:all_reduce", 40, 60,
                                    R"({"Input type":["float"],"Input Dims":[[8,2]]})"),
                               span("user_annotation", "Optimizer.step#SGD.step", 60, 70),
                               span("cpu_op", "aten::add_", 61, 69),
                               span("user_annotation", "checkpoint", 80, 95),
                               span("user_annotation", "my own label", 0, 100),
                           }));
  const auto profile = traces.read();
  ASSERT_TRUE(profile.ok());
  const RankProfile& rank = profile->ranks.at(0);
  EXPECT_EQ(rank.steps, 2);
  EXPECT_EQ(rank.times[ProfilePart::data], 10'000);
  EXPECT_EQ(rank.times[ProfilePart::forward], 20'000);
  EXPECT_EQ(rank.times[ProfilePart::backward], 15'000);
  EXPECT_EQ(rank.times[ProfilePart::communication], 15'000);
  EXPECT_EQ(rank.times[ProfilePart::optimizer], 10'000);
  EXPECT_EQ(rank.times[ProfilePart::checkpoint], 15'000);
  EXPECT_EQ(rank.times[ProfilePart::other], 15'000);
  EXPECT_EQ(rank.times.total(), 100'000);
  EXPECT_EQ(profile->collectives.at(0).kind.bytes, 64u);
}

TEST(TraceProfile, parts_of_any_trace_are_never_negative_and_add_up) {
  constexpr std::string_view kCategories[] = {"kernel", "gpu_memcpy",      "gpu_memset",
                                              "cpu_op", "user_annotation", "cuda_runtime"};
  constexpr std::string_view kNames[] = {"gemm",
                                         "ncclKernel_x",
                                         "Memcpy HtoD",
                                         "Optimizer.step#A",
                                         "enumerate(DataLoader)#b",
                                         "gloo:x",
                                         "autograd::engine::evaluate_function: B"};
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> events;
    Nanos steps = 0;
    for (int step = 0; step < 3; ++step) {
      const int begin = 1000 * step + static_cast<int>(random() % 100),
                end = 1000 * step + 500 + static_cast<int>(random() % 500);
      steps += 1000 * (end - begin);
      events.push_back(span("user_annotation", format("ProfilerStep#{}", step), begin, end));
    }
    for (int i = 0; i < 60; ++i) {
      const int begin = static_cast<int>(random() % 3000);
      events.push_back(span(kCategories[random() % std::size(kCategories)],
                            kNames[random() % std::size(kNames)], begin,
                            begin + static_cast<int>(random() % 300)));
    }
    std::shuffle(events.begin(), events.end(), random);
    Traces traces;
    traces.put("rank0.json", trace_of(events));
    const auto profile = traces.read();
    ASSERT_TRUE(profile.ok());
    for (const Nanos nanos : profile->ranks.at(0).times.nanos) EXPECT_GE(nanos, 0);
    EXPECT_EQ(profile->ranks[0].times.total(), steps);
  }
}

TEST(TraceProfile, ranks_come_from_the_file_or_its_name_and_appear_once) {
  Traces traces;
  const std::vector<std::string> events = {span("user_annotation", "ProfilerStep#1", 0, 50)};
  traces.put("a.json", trace_of(events, R"({"rank":5})"));
  traces.put("rank-3.123.pt.trace.json", trace_of(events, "null"));
  traces.put("b.json", trace_of(events, "7"));
  traces.put("c.json", trace_of(events, R"({"rank":5})"));
  const auto profile = traces.read();
  ASSERT_TRUE(profile.ok());
  std::vector<int> ranks;
  for (const RankProfile& rank : profile->ranks) ranks.push_back(rank.rank);
  EXPECT_THAT(ranks, ElementsAre(2, 3, 4, 5));
  ASSERT_THAT(profile->notes, SizeIs(1));
  EXPECT_EQ(profile->notes[0], "c.json: rank 5 is there twice; it is shown as rank 4");
}

TEST(TraceProfile, a_trace_without_steps_counts_as_one_step) {
  Traces traces;
  traces.put("x.json", trace_of({span("cpu_op", "aten::mm", 10, 40), span("cpu_op", "aten::mm", 60, 70)}));
  const auto profile = traces.read();
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->range, std::nullopt);
  EXPECT_EQ(profile->ranks.at(0).times[ProfilePart::forward], 40'000);
  EXPECT_EQ(profile->ranks[0].times[ProfilePart::other], 20'000);
}

TEST(TraceProfile, stokers_own_traces_have_phases_and_exchanges) {
  Traces traces;
  traces.put("trace-0001.json", "[\n" + span("step", "step 4", 0, 100) + ",\n" +
                                    span("phase", "data", 0, 10) + ",\n" + span("phase", "forward", 10, 40) +
                                    ",\n" + span("phase", "backward", 40, 80) +
                                    R"(,
{"name":"all-reduce float32 [16]","cat":"exchange","ph":"b","id":"1.7","ts":70,"args":{"bytes":64,"number":7}},
{"cat":"exchange","ph":"e","id":"1.7","ts":90,"args":{"outcome":"done"}}
)");
  const auto profile = traces.read();
  ASSERT_TRUE(profile.ok()) << profile.status().to_string();
  const RankProfile& rank = profile->ranks.at(0);
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.times[ProfilePart::backward], 40'000);
  EXPECT_EQ(rank.times[ProfilePart::communication], 10'000);
  EXPECT_EQ(rank.times[ProfilePart::other], 10'000);
  EXPECT_EQ(profile->collectives.at(0).kind.bytes, 64u);
  EXPECT_EQ(profile->collectives.at(0).shortest, 20'000);
  EXPECT_THAT(profile->notes.at(0).english(),
              HasSubstr("trace-0001.json: ends early: what follows is missing"));
}

TEST(TraceProfile, bad_files_are_errors_with_their_name) {
  Traces empty;
  const Path file = empty.put("empty.json", "");
  EXPECT_EQ(empty.read().status().message(),
            format("{}: no Chrome trace: it has no traceEvents", file.string()));
  Traces missing;
  missing.put("x.json", "{}");
  EXPECT_EQ(missing.read().status().code(), Code::corrupt);
  Traces none;
  none.put("x.json", trace_of({span("cpu_op", "a", 1, 2).replace(5, 3, "\"i\"")}));
  EXPECT_EQ(none.read().status().message(), "test: no recorded step");
  Traces chosen;
  chosen.put("x.json", trace_of({span("user_annotation", "ProfilerStep#1", 0, 50)}));
  EXPECT_EQ(chosen.read({.first = 2, .last = {}}).status().message(),
            "test: no recorded step in this range (--steps)");
}

TEST(TraceEvents, numbers_of_steps_follow_the_last_separator) {
  EXPECT_EQ(step_number("ProfilerStep#12"), 12);
  EXPECT_EQ(step_number("step 7"), 7);
  EXPECT_EQ(step_number("ProfilerStep#"), std::nullopt);
  EXPECT_EQ(step_number("ProfilerStep"), std::nullopt);
}

}  // namespace
}  // namespace stoker::profile
