#include "launch/start/changes.h"

#include <gmock/gmock.h>

#include "launch/sandbox.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A run of the job file with `more` in it; `typed` is its command line.
record::RunFolder begun(const LaunchSandbox& box, const std::string& more,
                        const std::vector<std::string>& typed = {}) {
  const Request request = box.request(more);
  auto run = record::RunFolder::create(request.job.record.directory,
                                       {.name = "digits", .job_file = "job.yaml", .typed = typed},
                                       to_yaml(request.job));
  STOKER_CHECK(run.ok());
  return *run;
}

job::Job own_job(const record::RunFolder& run, const std::vector<std::string>& settings = {}) {
  auto job = job::load(run.job(), {.set = settings});
  STOKER_CHECK(job.ok());
  return *job;
}

TEST(JobFile, unedited_file_has_no_changes) {
  const LaunchSandbox box;
  const record::RunFolder run = begun(box, "params: {lr: 0.1}\n");
  EXPECT_THAT(describe_job_file_changes(run, own_job(run)), IsEmpty());
  EXPECT_THAT(describe_job_file_changes(run, own_job(run, {"resources.ranks_per_node=4"})), IsEmpty())
      << "what was set since is no change of the file";
}

TEST(JobFile, changed_value_is_listed_with_its_set_option) {
  const LaunchSandbox box;
  const record::RunFolder run = begun(box, "params: {lr: 0.1}\nresources: {ranks_per_node: 2}\n");
  (void)box.request("params: {lr: 0.5}\nenvironment: {variables: {A: 'x; \\ \"y\"'}}\n");
  EXPECT_THAT(describe_job_file_changes(run, own_job(run)),
              ElementsAre("params.lr is 0.5 in job.yaml now; the run keeps 0.1",
                          "resources.ranks_per_node is 1 in job.yaml now; the run keeps 2 (to change it: "
                          "--set resources.ranks_per_node=1)",
                          "environment.variables.A is \"x; \\\\ \\\"y\\\"\" in job.yaml now; the run keeps "
                          "not set (to change it: --set 'environment.variables.A=x; \\ \"y\"')"));
}

TEST(JobFile, applied_and_overridden_values_are_not_listed) {
  const LaunchSandbox box;
  const record::RunFolder run = begun(box, "resources: {ranks_per_node: 2}\n",
                                      {"stoker", "run", "job.yaml", "--set", "timeouts.grace=3s"});
  (void)box.request("resources: {ranks_per_node: 3}\ntimeouts: {grace: 4s}\n");
  EXPECT_THAT(describe_job_file_changes(run, own_job(run, {"resources.ranks_per_node=3"})), IsEmpty());
}

TEST(JobFile, default_derived_from_the_command_line_is_no_change) {
  const TempDirectory box;
  const Path file = box / "job.yaml";
  const std::string text =
      "name: t\ntrain: {model: cifar-resnet20, epochs: 1}\ndata: {train: {source: /data}}\n";
  ASSERT_TRUE(write_file(file, text).ok());
  const auto typed =
      job::load(file, {.set = {"train.schedule.kind=constant"}, .current_directory = box.path()});
  ASSERT_TRUE(typed.ok()) << typed.status().to_string();
  const auto run = record::RunFolder::create(
      typed->record.directory,
      {.name = "t",
       .job_file = "job.yaml",
       .typed = {"stoker", "run", "job.yaml", "--set", "train.schedule.kind=constant"}},
      to_yaml(*typed));
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(describe_job_file_changes(*run, own_job(*run)), IsEmpty());
}

TEST(JobFile, fixed_settings_are_listed_without_a_set_option) {
  const LaunchSandbox box;
  const record::RunFolder run = begun(box, "");
  (void)box.request("checkpoint: {directory: /scratch}\n");
  EXPECT_THAT(describe_job_file_changes(run, own_job(run)),
              ElementsAre("checkpoint.directory is /scratch in job.yaml now; the run keeps not set"));
}

TEST(JobFile, invalid_file_is_reported) {
  const LaunchSandbox box;
  const record::RunFolder run = begun(box, "");
  (void)box.request("params: {lr: 1}\n");
  const Path file = own_job(run).working_directory / "job.yaml";
  ASSERT_TRUE(write_file(file, "name: [\n").ok());
  EXPECT_THAT(describe_job_file_changes(run, own_job(run)),
              ElementsAre("job.yaml is no longer a valid job; the run keeps its own"));
}

}  // namespace
}  // namespace stoker::launch
