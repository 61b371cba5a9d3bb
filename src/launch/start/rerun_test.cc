#include "launch/start/rerun.h"

#include <gmock/gmock.h>

#include "base/version.h"
#include "launch/sandbox.h"
#include "record/capsule.h"

namespace stoker::launch {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

record::RunFolder made(const LaunchSandbox& box, const std::string& job_file = "") {
  const Request request = box.request("params: {lr: 0.1}\n");
  auto run = record::RunFolder::create(
      request.job.record.directory,
      {.name = "digits", .job_file = job_file, .stoker_version = std::string(version())},
      to_yaml(request.job));
  STOKER_CHECK(run.ok());
  return *run;
}

std::vector<std::string> drift(const record::RunFolder& run, const job::Job& job) {
  std::vector<std::string> lines;
  for (const Drift& each : find_drift(run, job)) lines.push_back(to_text(each));
  return lines;
}

TEST(Rerun, is_the_runs_own_job_from_the_start_as_another_run) {
  LaunchSandbox box;
  const record::RunFolder run = made(box, "job.yaml");
  const auto request = rerun_request(run, {"resources.ranks_per_node=3"});
  ASSERT_TRUE(request.ok()) << request.status().to_string();
  EXPECT_EQ(request->job.resources.ranks_per_node, 3u);
  EXPECT_EQ(request->job_file, "job.yaml");
  EXPECT_FALSE(request->resumed.has_value());
  EXPECT_FALSE(request->prepared.has_value());
  EXPECT_EQ(rerun_request(run, {"params.lr=1"}).status().to_string(),
            format("run {}: --set params.lr=1: its command already contains the values of params\n  try: "
                   "stoker run job.yaml --set params.lr=1",
                   run.id()));
  EXPECT_EQ(rerun_request(run, {"nonsense=1"}).status().code(), Code::invalid);
}

TEST(Rerun, no_drift_when_equal_or_unknown) {
  LaunchSandbox box;
  const record::RunFolder run = made(box);
  EXPECT_THAT(drift(run, rerun_request(run, {})->job), IsEmpty());
}

TEST(Rerun, what_differs_is_named_with_both_sides) {
  LaunchSandbox box;
  const record::RunFolder run = made(box);
  ASSERT_TRUE(record::write_execution(run, {{.host = "a", .cpu = "Z80"}}).ok());
  const auto lines = drift(run, rerun_request(run, {})->job);
  EXPECT_THAT(lines, Contains(::testing::StartsWith("host: Z80 then, ")));
  EXPECT_EQ(to_text(Drift{"data.train", "version 7c1f9e02", "version 9a00b1ce", ""}),
            "data.train: version 7c1f9e02 then, version 9a00b1ce now");
}

TEST(Rerun, a_job_file_that_was_changed_since_is_named_and_not_taken) {
  LaunchSandbox box;
  const record::RunFolder run = made(box, "job.yaml");
  (void)box.request("params: {lr: 0.5}\n");  // writes job.yaml anew
  const auto request = rerun_request(run, {});
  EXPECT_EQ(request->job.params.at("lr"), "0.1");
  EXPECT_THAT(drift(run, request->job),
              Contains("job file: params.lr is 0.5 in job.yaml now; the run keeps 0.1"));
}

}  // namespace
}  // namespace stoker::launch
