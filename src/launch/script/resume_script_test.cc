#include "launch/script/resume_script.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "launch/fake_scheduler.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ResumeScript : public ::testing::Test {
 protected:
  // A failed run of this script, submitted with an option and two arguments.
  record::RunFolder submitted(const std::string& text) {
    STOKER_CHECK(write_file(box_ / "train.sh", text).ok());
    ScriptRequest request{.script = "train.sh", .arguments = {"a b", "--lr"}};
    request.options = {"--time=1:00"};
    request.typed = {"stoker", "submit", "--sbatch", "--time=1:00", "train.sh", "a b", "--", "--lr"};
    request.stoker = "/opt/stoker";
    request.directory = box_.path();
    const auto plan = plan_script(std::move(request));
    STOKER_CHECK(plan.ok());
    auto made = submit_script(*plan, scheduler_, soon());
    STOKER_CHECK(made.ok());
    return made->folder;
  }
  static Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

  TempDirectory box_;
  FakeScheduler scheduler_;
  RunLife failed_{
      .life = Life::failed, .note = "", .scheduler_job = "", .nodes = "", .records = {}, .array = {}};
};

TEST_F(ResumeScript, resubmits_the_copy_with_original_options) {
  const std::string text = "#!/bin/sh\n#SBATCH -N 2\necho $1\n";
  const record::RunFolder run = submitted(text);
  ASSERT_TRUE(write_file(box_ / "train.sh", "#!/bin/sh\necho other\n").ok());
  const auto plan = resume_script(run, failed_, {}, "/opt/stoker");
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_TRUE(has_script_changed(*plan));
  const auto again = submit_script(*plan, scheduler_, soon());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->folder.id(), run.id());
  EXPECT_EQ(again->attempt.number(), 2);
  const Path copy = again->attempt.folder() / "slurm_script";
  EXPECT_EQ(*read_file(copy), text);
  EXPECT_THAT(job::load(again->attempt.job())->command->arguments, ElementsAre(copy.string(), "a b", "--lr"));
  const std::string batch = *read_file(again->attempt.batch_script());
  EXPECT_THAT(batch, HasSubstr("\n#SBATCH -N 2\n"));
  EXPECT_THAT(batch, HasSubstr("\n#SBATCH --time=1:00\n"));
  EXPECT_THAT(batch, HasSubstr(format("/{}/attempts/2\n", run.id())));
}

TEST_F(ResumeScript, rerun_is_a_new_run) {
  const record::RunFolder run = submitted("#!/bin/sh\necho $1\n");
  const auto plan = rerun_script(run, {"name=other"}, "/opt/stoker");
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_FALSE(has_script_changed(*plan));
  const auto again = submit_script(*plan, scheduler_, soon());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_NE(again->folder.id(), run.id());
  EXPECT_EQ(again->folder.description().name, "other");
  EXPECT_EQ(rerun_script(run, {"resources.nodes=2"}, "/opt/stoker").status().message(),
            "--set resources.nodes: does not apply to batch scripts");
}

TEST_F(ResumeScript, settings_are_refused_with_a_cure) {
  const record::RunFolder run = submitted("#!/bin/sh\ntrue\n");
  EXPECT_EQ(
      resume_script(run, failed_, {"resources.time=2h"}, "/opt/stoker").status().to_string(),
      format("run {}: --set resources.time=2h: does not apply to batch scripts\n  try: stoker submit "
             "--sbatch=--time=1:00 --sbatch=--time=1:00:00 train.sh -- 'a b' --lr      (starts a new run)",
             run.id()));
}

TEST_F(ResumeScript, of_an_array_names_the_command_for_what_is_not_done) {
  const record::RunFolder run = submitted("#!/bin/sh\n#SBATCH --array=1-6%2\ntrue\n");
  for (int task : {1, 2, 5}) {
    auto events = record::EventWriter::open(run.last_attempt()->node_events(task));
    const auto outcome = task == 2 ? record::Outcome::failed : record::Outcome::done;
    ASSERT_TRUE(write_event(*events, record::AttemptEnded{.node = task, .outcome = outcome}).ok());
  }
  EXPECT_EQ(resume_script(run, failed_, {}, "/opt/stoker").status().to_string(),
            format("run {}: is an array, 4 of 6 tasks unfinished: submit them as a new run\n  try: stoker "
                   "submit --sbatch=--time=1:00 --sbatch=--array=2-4,6%2 train.sh -- 'a b' --lr",
                   run.id()));
}

TEST_F(ResumeScript, is_refused_while_the_run_still_runs) {
  const record::RunFolder run = submitted("#!/bin/sh\ntrue\n");
  failed_.life = Life::running;
  EXPECT_EQ(resume_script(run, failed_, {}, "/opt/stoker").status().message(),
            format("run {}: is still running", run.id()));
}

TEST(ToArray, tasks_are_formatted_as_ranges) { EXPECT_EQ(to_array({1, 2, 3, 7, 10}), "1-3,7,10"); }

}  // namespace
}  // namespace stoker::launch
