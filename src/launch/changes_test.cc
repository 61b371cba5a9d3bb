#include "launch/changes.h"

#include <gmock/gmock.h>

#include "launch/sandbox.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A run of the job file with `more` in it; `typed` are the words of its command line.
record::RunFolder begun(const Sandbox& box, const std::string& more,
                        const std::vector<std::string>& typed = {}) {
  const Request request = box.request(more);
  auto run = record::RunFolder::create(request.job.record.directory,
                                       {.name = "digits", .job_file = "job.yaml", .typed = typed},
                                       to_yaml(request.job));
  CHECK(run.ok());
  return *run;
}

job::Job own_job(const record::RunFolder& run, const std::vector<std::string>& settings = {}) {
  auto job = job::load(run.job(), {.set = settings});
  CHECK(job.ok());
  return *job;
}

TEST(JobFile, that_was_not_edited_has_nothing_to_tell) {
  const Sandbox box;
  const record::RunFolder run = begun(box, "params: {lr: 0.1}\n");
  EXPECT_THAT(told_job_file(run, own_job(run)), IsEmpty());
  EXPECT_THAT(told_job_file(run, own_job(run, {"resources.ranks_per_node=4"})), IsEmpty())
      << "what was set since is no change of the file";
}

TEST(JobFile, what_it_has_otherwise_now_is_told_with_the_setting_that_takes_it) {
  const Sandbox box;
  const record::RunFolder run = begun(box, "params: {lr: 0.1}\nresources: {ranks_per_node: 2}\n");
  (void)box.request("params: {lr: 0.5}\nenvironment: {variables: {A: 'x; \\ \"y\"'}}\n");
  EXPECT_THAT(
      told_job_file(run, own_job(run)),
      ElementsAre("params.lr is 0.5 in job.yaml now; the run's own is taken: 0.1",
                  "environment.variables.A is \"x; \\\\ \\\"y\\\"\" in job.yaml now; the run's own is taken: "
                  "not set (--set 'environment.variables.A=x; \\ \"y\"' changes it)",
                  "resources.ranks_per_node is 1 in job.yaml now; the run's own is taken: 2 "
                  "(--set resources.ranks_per_node=1 changes it)"));
}

TEST(JobFile, what_is_taken_already_or_was_set_for_the_run_is_not_told) {
  const Sandbox box;
  const record::RunFolder run = begun(box, "resources: {ranks_per_node: 2}\n",
                                      {"stoker", "run", "job.yaml", "--set", "timeouts.grace=3s"});
  (void)box.request("resources: {ranks_per_node: 3}\ntimeouts: {grace: 4s}\n");
  EXPECT_THAT(told_job_file(run, own_job(run, {"resources.ranks_per_node=3"})), IsEmpty());
}

TEST(JobFile, a_default_that_follows_from_what_was_typed_is_no_edit) {
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
  EXPECT_THAT(told_job_file(*run, own_job(*run)), IsEmpty());
}

TEST(JobFile, what_a_run_keeps_is_told_without_a_setting) {
  const Sandbox box;
  const record::RunFolder run = begun(box, "");
  (void)box.request("checkpoint: {directory: /scratch}\n");
  EXPECT_THAT(
      told_job_file(run, own_job(run)),
      ElementsAre("checkpoint.directory is /scratch in job.yaml now; the run's own is taken: not set"));
}

TEST(JobFile, that_is_no_job_any_more_is_named) {
  const Sandbox box;
  const record::RunFolder run = begun(box, "");
  (void)box.request("params: {lr: 1}\n");
  const Path file = own_job(run).working_directory / "job.yaml";
  ASSERT_TRUE(write_file(file, "name: [\n").ok());
  EXPECT_THAT(told_job_file(run, own_job(run)),
              ElementsAre("job.yaml no longer reads as a job; the run's own is taken"));
}

}  // namespace
}  // namespace stoker::launch
