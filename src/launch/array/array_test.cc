#include <gmock/gmock.h>

#include "launch/array/submit_array.h"
#include "launch/sandbox.h"
#include "launch/state/array_state.h"
#include "launch/state/live_tasks.h"
#include "launch/status/array_life.h"
#include "launch/status/control.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A sandbox with a table of this many tasks, and its submission.
class ArrayBox {
 public:
  explicit ArrayBox(int tasks, const std::string& array = "", const std::string& more = "") {
    std::string table = "lr\n";
    for (int i = 1; i <= tasks; ++i) table += format("0.{}\n", i);
    STOKER_CHECK(write_file(folder_ / "t.csv", table).ok());
    STOKER_CHECK(write_file(folder_ / "job.yaml",
                            format("name: sweep\nrun: train ${{params.lr}}\narray: {{over: t.csv{}}}\n{}",
                                   array.empty() ? "" : ", " + array, more))
                     .ok());
    auto job = job::load(folder_ / "job.yaml", {.current_directory = folder_.path()});
    STOKER_CHECK(job.ok());
    request.job = std::move(*job);
    request.job_file = (folder_ / "job.yaml").string();
    request.load.current_directory = folder_.path();
    request.stoker = "/opt/stoker";
  }

  Result<ArraySubmission> submit() {
    STOKER_ASSIGN_OR_RETURN(array, make_array(request));
    return submit_array(request, array, scheduler, soon());
  }
  /// Records that the task ran and ended this way.
  static void run_task(const ArraySubmission& array, std::uint32_t task, std::optional<int> exit_code) {
    auto events = record::EventWriter::open(task_events(array.folder, task));
    STOKER_CHECK(write_task_event(*events, TaskStarted{array.attempt.number(), "n1", "100_1", ""}).ok());
    if (!exit_code) return;
    const auto outcome = *exit_code == 0 ? record::Outcome::done : record::Outcome::failed;
    STOKER_CHECK(write_task_event(*events, TaskEnded{array.attempt.number(), outcome, *exit_code, ""}).ok());
  }

  Request request{.job = {}};
  FakeScheduler scheduler;

 private:
  TempDirectory folder_;
};

std::string script_of(const ArraySubmission& array) { return *read_file(array.attempt.batch_script()); }

TEST(Array, submits_once_and_creates_one_folder) {
  ArrayBox box(300, "at_once: 20");
  const auto array = box.submit();
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  EXPECT_EQ(box.scheduler.calls, 1);
  EXPECT_THAT(array->jobs, ElementsAre("100"));
  EXPECT_THAT(script_of(*array), HasSubstr("\n#SBATCH --array=1-300%20\n"));
  EXPECT_THAT(*list_directory(tasks_folder(array->folder)), SizeIs(0));
  const auto file = read_array_file(array->attempt);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  EXPECT_EQ(file->tasks.size(), 300U);
  EXPECT_THAT(file->tasks_of(7), ElementsAre(7));
  EXPECT_THAT(file->tasks_of(301), SizeIs(0));
  EXPECT_THAT(file->job_of(7)->command->arguments, ElementsAre("train", "0.7"));
  // The attempt's job file needs no table.
  EXPECT_TRUE(job::load(array->attempt.job()).ok());
}

TEST(Array, oversized_array_is_split_under_one_cap) {
  ArrayBox box(25, "at_once: 4");
  box.scheduler.array_limit = 10;
  int refusals = 0;
  box.scheduler.refuse_array = [&](const std::string& script) {
    const bool is_large = script.find("--array=1-25") != std::string::npos;
    refusals += is_large ? 1 : 0;
    return is_large;
  };
  const auto array = box.submit();
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  EXPECT_EQ(refusals, 1);
  ASSERT_THAT(array->jobs, SizeIs(3));
  EXPECT_THAT(script_of(*array), HasSubstr("\n#SBATCH --array=1-10%4\n"));
  const std::string third = *read_file(array->attempt.folder() / "job-3.sbatch");
  EXPECT_THAT(third, HasSubstr("\n#SBATCH --array=1-5%4\n"));
  EXPECT_THAT(third, HasSubstr(format("\n#SBATCH --dependency=afterany:{}\n", array->jobs[1])));
  EXPECT_THAT(third, HasSubstr("\nexec env STOKER_ARRAY_FROM=20 /opt/stoker run "));
  const RunLife life = query_life(array->folder, box.scheduler, soon());
  EXPECT_EQ(life.scheduler_job, join(array->jobs, ","));
  const auto plan = plan_cancel(array->folder, box.scheduler, soon());
  ASSERT_TRUE(cancel(array->folder, *plan, box.scheduler, soon()).ok());
  EXPECT_EQ(box.scheduler.cancelled_ids, array->jobs);
}

TEST(Array, damaged_list_of_tasks_is_no_end) {
  ArrayBox box(2);
  const auto array = box.submit();
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  for (const std::uint32_t task : {1U, 2U}) ArrayBox::run_task(*array, task, 0);
  EXPECT_EQ(query_life(array->folder, box.scheduler, soon()).life, Life::done);
  const Path list = array->attempt.folder() / "array.json";
  const std::string text = *read_file(list);
  for (const std::string& damaged : {std::string(), text.substr(0, text.size() / 2), std::string("{}\n")}) {
    ASSERT_TRUE(write_file(list, damaged).ok());
    const RunLife life = query_life(array->folder, box.scheduler, soon());
    EXPECT_EQ(life.life, Life::unknown);
    EXPECT_THAT(life.note, HasSubstr("array.json: not an array.json"));
    EXPECT_EQ(wait_for(array->folder, box.scheduler, {.deadline = soon()}).status().code(), Code::corrupt);
  }
}

// 25 tasks in three arrays; the last array is refused.
bool is_whole_or_last(const std::string& script) {
  return script.find("--array=1-25") != std::string::npos ||
         script.find("--array=1-5\n") != std::string::npos;
}

TEST(Array, partly_accepted_array_is_cancelled) {
  ArrayBox box(25);
  box.scheduler.array_limit = 10;
  box.scheduler.refuse_array = is_whole_or_last;
  const Status refused = box.submit().status();
  EXPECT_EQ(refused.to_string(),
            "array 3 of 3: sbatch: Invalid job array specification; earlier jobs cancelled: job 100, 101");
  EXPECT_THAT(box.scheduler.cancelled_ids, ElementsAre("101", "100"));
  const auto runs = record::list_runs(box.request.job.record.directory);
  ASSERT_THAT(*runs, SizeIs(1));
  const RunLife life = query_life(*runs->front().run, box.scheduler, soon());
  EXPECT_EQ(life.life, Life::failed);
  EXPECT_EQ(life.note, refused.message());
}

TEST(Array, partly_running_array_is_queued_and_can_be_cancelled) {
  ArrayBox box(25);
  box.scheduler.array_limit = 10;
  box.scheduler.refuse_array = is_whole_or_last;
  box.scheduler.cannot_cancel = unavailable("scancel: Unable to contact slurm controller");
  const Status refused = box.submit().status();
  const record::RunFolder run = *record::list_runs(box.request.job.record.directory)->front().run;
  EXPECT_EQ(refused.to_string(),
            format("array 3 of 3: sbatch: Invalid job array specification; earlier jobs still queued, "
                   "because scancel failed: job 100, 101\n  try: stoker cancel {}",
                   run.id()));
  const RunLife life = query_life(run, box.scheduler, soon());
  EXPECT_EQ(life.life, Life::queued);
  EXPECT_EQ(resume_array(run, life, {}).status().message(),
            format("run {}: is queued as job 100,101", run.id()));
  box.scheduler.cannot_cancel = Status();
  box.scheduler.cancelled_ids.clear();
  const auto plan = plan_cancel(run, box.scheduler, soon());
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  ASSERT_TRUE(cancel(run, *plan, box.scheduler, soon()).ok());
  EXPECT_THAT(box.scheduler.cancelled_ids, ElementsAre("100", "101"));
}

TEST(Array, chunks_without_a_cap_have_no_dependency) {
  ArrayBox box(25);
  box.scheduler.array_limit = 20;
  box.scheduler.refuse_array = [](const std::string& script) {
    return script.find("--array=1-25") != std::string::npos;
  };
  const auto array = box.submit();
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  ASSERT_THAT(array->jobs, SizeIs(2));
  EXPECT_THAT(*read_file(array->attempt.folder() / "job-2.sbatch"), Not(HasSubstr("--dependency")));
}

constexpr const char* kChain = "chain: {until: done, time_per_link: 2h, links: 3}\n";

TEST(Array, chains_submit_one_array_per_link_with_aftercorr) {
  ArrayBox box(5, "", format("resources: {{time: 9h}}\n{}", kChain));
  const auto array = box.submit();
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  EXPECT_THAT(array->jobs, ElementsAre("100", "101", "102"));
  EXPECT_THAT(script_of(*array), HasSubstr("\n#SBATCH --time=02:00:00\n"));
  EXPECT_THAT(script_of(*array), Not(HasSubstr("--dependency")));
  EXPECT_THAT(script_of(*array), HasSubstr("\nexec /opt/stoker run "));
  const std::string third = *read_file(array->attempt.folder() / "job-3.sbatch");
  EXPECT_THAT(third, HasSubstr("\n#SBATCH --array=1-5\n"));
  EXPECT_THAT(third, HasSubstr("\n#SBATCH --dependency=aftercorr:101\n"));
  EXPECT_THAT(third, HasSubstr("\nexec env STOKER_ARRAY_LINK=3 /opt/stoker run "));
  EXPECT_EQ(read_array_file(array->attempt)->links, 3U);
  // A dependency covers all jobs of the chain, even jobs that may be cancelled.
  EXPECT_EQ(query_life(array->folder, box.scheduler, soon()).records.links, 3);
}

TEST(Array, capped_chains_wait_for_the_whole_previous_link) {
  ArrayBox box(25, "at_once: 4", kChain);
  box.scheduler.array_limit = 20;
  box.scheduler.refuse_array = [](const std::string& script) {
    return script.find("--array=1-25") != std::string::npos;
  };
  const auto array = box.submit();
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  ASSERT_THAT(array->jobs, SizeIs(6));
  const std::string fourth = *read_file(array->attempt.folder() / "job-4.sbatch");
  EXPECT_THAT(fourth, HasSubstr("\n#SBATCH --array=1-5%4\n"));
  EXPECT_THAT(fourth, HasSubstr(format("\n#SBATCH --dependency=afterany:{}\n", array->jobs[2])));
  EXPECT_THAT(fourth, HasSubstr("\nexec env STOKER_ARRAY_FROM=20 STOKER_ARRAY_LINK=2 /opt/stoker run "));
}

TEST(Array, chains_with_too_many_jobs_are_refused) {
  ArrayBox box(4000, "", kChain);
  const Status refused = box.submit().status();
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("4000 tasks in 3 links need 12000 jobs, but the queue of all users holds fewer than 10000"));
  EXPECT_EQ(refused.cure(), "--set chain.links=2");
}

TEST(Array, task_waits_for_next_link_until_the_last) {
  ArrayBox box(1, "", kChain);
  const auto array = box.submit();
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  auto events = record::EventWriter::open(task_events(array->folder, 1));
  const auto link = [&](std::uint32_t number, const CheckpointStamp& from, bool will_continue) {
    STOKER_CHECK(write_task_event(*events, TaskStarted{1, "n1", "100_1", "", number, from}).ok());
    STOKER_CHECK(
        write_task_event(*events, TaskEnded{1, record::Outcome::stopped, 75, "saved", will_continue}).ok());
  };
  link(1, {}, true);
  EXPECT_EQ(read_array_state(array->folder, array->attempt, *read_array_file(array->attempt)).waiting, 1U);
  EXPECT_EQ(read_task(array->folder, 1, 1, true).starts, 0);
  link(2, {"/c/3", 7.5}, false);
  EXPECT_EQ(to_text(read_array_state(array->folder, array->attempt, *read_array_file(array->attempt))),
            "0 of 1 done, 1 stopped");
  const std::vector<PastAttempt> links = links_of_task(array->folder, 1, 1);
  ASSERT_THAT(links, SizeIs(2));
  EXPECT_EQ(links[0].cause, Cause::stopped);
  EXPECT_EQ(links[0].started_from, CheckpointStamp());
  EXPECT_EQ(links[1].started_from, (CheckpointStamp{"/c/3", 7.5}));
  EXPECT_THAT(links_of_task(array->folder, 1, 2), SizeIs(0));
}

TEST(Array, short_tasks_are_bundled_without_reducing_concurrency) {
  const auto size = [](int tasks, const std::string& array, const std::string& more) {
    ArrayBox box(tasks, array, more);
    return choose_bundle(box.request.job, static_cast<std::size_t>(tasks)).size;
  };
  EXPECT_EQ(size(300, "at_once: 10", "resources: {time: 1m}\n"), 15U);
  EXPECT_EQ(size(40, "at_once: 10", "resources: {time: 1m}\n"), 4U);
  EXPECT_EQ(size(12, "at_once: 10", "resources: {time: 1m}\n"), 1U);
  EXPECT_EQ(size(300, "at_once: 10", "resources: {time: 5m}\n"), 1U);
  EXPECT_EQ(size(300, "at_once: 10", ""), 1U);
  EXPECT_EQ(size(300, "at_once: 10, bundle: 3", "resources: {time: 1m}\n"), 3U);
  EXPECT_EQ(size(300, "at_once: 10", "resources: {time: 1m, ranks_per_node: 2}\n"), 1U);
  ArrayBox box(30, "at_once: 2", "resources: {time: 1m}\n");
  const auto array = box.submit();
  EXPECT_THAT(script_of(*array), HasSubstr("\n#SBATCH --time=00:15:00\n"));
  EXPECT_THAT(script_of(*array), HasSubstr("\n#SBATCH --array=1-2\n"));
  EXPECT_THAT(read_array_file(array->attempt)->tasks_of(2), SizeIs(15));
}

TEST(Array, tasks_with_several_ranks_are_not_bundled) {
  ArrayBox box(4, "bundle: 2", "resources: {ranks_per_node: 2}\n");
  EXPECT_THAT(
      std::string(make_array(box.request).status().message()),
      ::testing::MatchesRegex("array.bundle: 2, but tasks of `train` or of several ranks cannot share a job "
                              "\\(.*job.yaml:3:30\\)"));
}

TEST(Array, too_many_jobs_are_refused_with_limit_and_option) {
  ArrayBox box(10'001);
  box.scheduler.array_limit = 20'000;
  const auto refused = [&](std::int64_t limit) {
    box.scheduler.job_limit = limit;
    return box.submit().status();
  };
  // Without an answer, Slurm's default counts.
  EXPECT_EQ(refused(0).message(),
            "t.csv: 10 001 tasks need 10 001 jobs, but the queue of all users holds fewer than 10000 "
            "(MaxJobCount)");
  EXPECT_EQ(refused(10'001).message(),
            "t.csv: 10 001 tasks need 10 001 jobs, but the queue of all users holds fewer than 10001 "
            "(MaxJobCount)");
  EXPECT_EQ(refused(10'001).cure(), "--set array.bundle=4");
  EXPECT_EQ(refused(2'000).cure(), "--set array.bundle=12");
  EXPECT_FALSE(path_exists(box.request.job.record.directory));
  EXPECT_TRUE(refused(100'000).ok());
}

TEST(Array, invalid_task_is_refused_before_anything_is_written) {
  TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "t.csv", "timeouts.grace\n1s\nlong\n").ok());
  ASSERT_TRUE(write_file(folder / "job.yaml", "run: x\narray: {over: t.csv}\n").ok());
  Request request{.job = *job::load(folder / "job.yaml")};
  request.job_file = (folder / "job.yaml").string();
  const std::string refused(make_array(request).status().message());
  EXPECT_THAT(refused,
              ::testing::StartsWith("t.csv: task 2: array timeouts.grace: timeouts.grace: 'long' is not"));
  EXPECT_EQ(*list_directory(folder.path()), (std::vector<std::string>{"job.yaml", "t.csv"}));
}

TEST(Array, state_is_derived_from_task_records) {
  ArrayBox box(3);
  const auto array = box.submit();
  const auto life = [&] { return query_life(array->folder, box.scheduler, soon()); };
  EXPECT_EQ(life().life, Life::queued);
  EXPECT_THAT(life().note, HasSubstr("0 of 3 done, 3 waiting"));
  ArrayBox::run_task(*array, 1, 0);
  ArrayBox::run_task(*array, 2, std::nullopt);
  EXPECT_EQ(life().life, Life::running);
  EXPECT_EQ(life().note, "1 of 3 done, 1 running, 1 waiting");
  ArrayBox::run_task(*array, 2, 7);
  ArrayBox::run_task(*array, 3, 0);
  const int asked = box.scheduler.calls;
  EXPECT_EQ(life().life, Life::failed);
  EXPECT_EQ(life().note, "2 of 3 done, 1 failed (2)");
  EXPECT_EQ(exit_code_of(life()), 7);
  EXPECT_EQ(box.scheduler.calls, asked);  // the records suffice
}

TEST(Array, running_tasks_are_listed_with_last_line) {
  ArrayBox box(4);
  const auto array = box.submit();
  ArrayBox::run_task(*array, 1, 0);
  ArrayBox::run_task(*array, 2, std::nullopt);
  ArrayBox::run_task(*array, 4, std::nullopt);
  ASSERT_TRUE(write_file(task_log(array->folder, 2), "one\nepoch 1\repoch 2\n\n").ok());
  const auto running = running_tasks(array->folder, array->attempt, 10);
  ASSERT_THAT(running, SizeIs(2));
  EXPECT_EQ(running[0].number, 2U);
  EXPECT_EQ(running[0].record.host, "n1");
  EXPECT_EQ(running[0].last_line, "epoch 2");
  EXPECT_EQ(running[1].last_line, "");
  EXPECT_THAT(running_tasks(array->folder, array->attempt, 1), SizeIs(1));
  EXPECT_EQ(find_task(array->folder, array->attempt, 1)->record.state, TaskState::done);
  EXPECT_EQ(find_task(array->folder, array->attempt, 5).status().message(),
            format("run {}: no task 5 (valid: 1 to 4)", array->folder.id()));
}

TEST(Array, a_job_without_a_reason_yet_adds_none) {
  ArrayBox box(50);
  const auto array = box.submit();
  slurm::JobInfo job;
  job.id = array->jobs.front();
  job.state = slurm::JobState::pending;
  box.scheduler.listed.jobs = {job};
  EXPECT_EQ(query_life(array->folder, box.scheduler, soon()).note, "0 of 50 done, 50 waiting");
  box.scheduler.listed.jobs[0].reason = "Priority";
  EXPECT_EQ(query_life(array->folder, box.scheduler, soon()).note,
            "0 of 50 done, 50 waiting; Priority: other jobs have a higher priority");
}

TEST(Array, unfinished_tasks_are_reported_when_no_job_is_left) {
  ArrayBox box(3);
  const auto array = box.submit();
  ArrayBox::run_task(*array, 1, 0);
  box.scheduler.listed.jobs.clear();
  const RunLife life = query_life(array->folder, box.scheduler, soon());
  EXPECT_EQ(life.life, Life::failed);
  EXPECT_EQ(life.note, "1 of 3 done, 2 waiting; 2 unfinished, and no job is left");
}

TEST(Array, resume_submits_only_unfinished_tasks) {
  ArrayBox box(5, "at_once: 2");
  const auto first = box.submit();
  for (std::uint32_t task = 1; task <= 5; ++task)
    ArrayBox::run_task(*first, task, task == 2 || task == 5 ? 7 : 0);
  const RunLife life = query_life(first->folder, box.scheduler, soon());
  auto rest = resume_array(first->folder, life, {"params.lr=9"});
  ASSERT_TRUE(rest.ok()) << rest.status().to_string();
  EXPECT_THAT(rest->array.chosen, ElementsAre(2, 5));
  EXPECT_THAT(rest->array.job_of(5)->command->arguments, ElementsAre("train", "9"));
  rest->request.stoker = "/opt/stoker";
  const auto again = submit_array(rest->request, rest->array, box.scheduler, soon());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->attempt.number(), 2);
  EXPECT_THAT(script_of(*again), HasSubstr("\n#SBATCH --array=1-2\n"));
  EXPECT_EQ(query_life(first->folder, box.scheduler, soon()).note.substr(0, 22), "3 of 5 done, 2 waiting");
  ArrayBox::run_task(*again, 2, 0);
  ArrayBox::run_task(*again, 5, 0);
  EXPECT_EQ(query_life(first->folder, box.scheduler, soon()).life, Life::done);
}

TEST(TaskArrayFile, damaged_file_is_refused) {
  const auto refused = [](std::string_view text) {
    return std::string(parse_array_file("array.json", text).status().message());
  };
  EXPECT_EQ(refused(""), "array.json: not an array.json");
  EXPECT_EQ(refused(R"({"format":"stoker-array","version":2})"),
            "array.json: written by another version of stoker");
  const std::string start = R"({"format":"stoker-array","version":1,"folder":"/a","current_directory":"/a",)";
  EXPECT_TRUE(parse_array_file("a", start + R"("bundle":1,"tasks":[{}],"chosen":[1]})").ok());
  for (const char* end :
       {R"("bundle":0,"tasks":[{}],"chosen":[1]})", R"("bundle":1,"tasks":[{}],"chosen":[2]})",
        R"("bundle":1,"tasks":[{},{}],"chosen":[2,1]})", R"("bundle":1,"chosen":[1]})"})
    EXPECT_EQ(refused(start + end), "array.json: not an array.json") << end;
}

TEST(ArrayState, tasks_are_formatted_as_truncated_ranges) {
  EXPECT_EQ(format_tasks({3, 4, 5, 9}), "3-5, 9");
  EXPECT_EQ(format_tasks({1, 3, 5, 7, 9, 11, 13, 15, 17, 19}), "1, 3, 5, 7, 9, 11, 13, 15, ...");
}

}  // namespace
}  // namespace stoker::launch
