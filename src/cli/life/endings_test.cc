// The same word for the ending of a run from every command that shows one.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "launch/state/array_file.h"
#include "launch/state/task_record.h"
#include "record/run_events.h"
#include "record/run_folder.h"
#include "record/state.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;
using record::Outcome;
using testing::StartsWith;

enum class Kind { local, srun, torchrun, array, chain, script };
enum class End { done, failed, out_of_memory, time_limit, preempted, cancelled, lost, resumed };

constexpr std::array kKinds = {Kind::local, Kind::srun,  Kind::torchrun,
                               Kind::array, Kind::chain, Kind::script};
constexpr std::array kEnds = {End::done,      End::failed,    End::out_of_memory, End::time_limit,
                              End::preempted, End::cancelled, End::lost,          End::resumed};

std::string name_of(Kind kind) {
  constexpr const char* kNames[] = {"local", "srun", "torchrun", "array", "chain", "script"};
  return kNames[static_cast<int>(kind)];
}

// The word; nothing for an ending that this kind of run cannot have.
std::optional<std::string> word_of(Kind kind, End end) {
  // An array ends as a whole: a task that exceeds a limit is one that failed. Slurm requeues a preempted
  // task, and an array whose records are incomplete is unfinished.
  const bool is_of_task = end == End::out_of_memory || end == End::time_limit;
  if (kind == Kind::array && is_of_task) return "failed";
  if (kind == Kind::array && (end == End::preempted || end == End::lost)) return std::nullopt;
  // Only Slurm preempts.
  if (kind == Kind::local && end == End::preempted) return std::nullopt;
  const std::map<End, std::string> words = {
      {End::done, "done"},          {End::failed, "failed"},       {End::out_of_memory, "out of memory"},
      {End::time_limit, "timeout"}, {End::preempted, "preempted"}, {End::cancelled, "cancelled"},
      {End::lost, "lost"},          {End::resumed, "done"}};
  return words.at(end);
}

// Slurm's timestamp of the local time zone.
std::string slurm_time(double unix_s) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
  return text;
}

double now() { return unix_seconds(RealClock().wall()); }

// A run folder as the supervisor, the submitter and Slurm leave it.
class EndedRun {
 public:
  EndedRun(const TempDirectory& box, Kind kind) : kind_(kind) {
    STOKER_CHECK(write_file(box / "t.sh", "#!/bin/bash\nsleep 1\n").ok());
    std::string job = "name: x\n";
    job += kind == Kind::script ? format("run: [{}]\nlauncher: single\n", (box / "t.sh").string())
                                : std::string("run: sleep 9\n");
    if (kind == Kind::torchrun) job += "launcher: torchrun\n";
    if (kind == Kind::chain) job += "chain: {until: done, time_per_link: 10m}\n";
    job += format("working_directory: {}\nrecord: {{directory: {}}}\n", box.path().string(),
                  (box / "runs").string());
    yaml_ = job;
    record::RunDescription what;
    what.name = "x";
    what.command = {kind == Kind::script ? (box / "t.sh").string() : "sleep"};
    what.working_directory = box.path().string();
    what.job_file = kind == Kind::script ? "" : "job.yaml";
    what.typed = {"stoker", is_submitted() ? "submit" : "run", "job.yaml"};
    auto made = record::RunFolder::create(box / "runs", what, yaml_);
    STOKER_CHECK(made.ok());
    run_ = *made;
  }

  void end(End end) {
    if (end != End::resumed) return attempt(end);
    attempt(End::failed);
    attempt(End::done);
  }
  std::string id() const { return run_->id(); }

 private:
  bool is_submitted() const { return kind_ != Kind::local; }
  std::string job_id() const { return kind_ == Kind::local ? "" : kind_ == Kind::chain ? "42_1" : "42"; }

  void attempt(End end) {
    auto attempt = run_->start_attempt(yaml_);
    STOKER_CHECK(attempt.ok());
    if (kind_ == Kind::script)
      STOKER_CHECK(write_file(attempt->folder() / "slurm_script", "#!/bin/bash\n").ok());
    if (is_submitted()) write_submission(*attempt);
    if (end == End::cancelled) {
      auto events = record::EventWriter::open(attempt->cancel_events());
      STOKER_CHECK(write_event(*events, record::CancelRequested{.user = "ana", .host = "n1"}).ok());
    }
    if (kind_ == Kind::array) return write_tasks(*attempt, end);
    auto events = record::EventWriter::open(attempt->node_events(0));
    record::AttemptStarted started;
    started.supervisor = record::this_process();
    started.supervisor.pid_start += 1;  // an earlier process with this number
    started.command = {"sleep", "9"};
    started.scheduler_job = job_id();
    started.links = kind_ == Kind::chain ? 3 : 0;
    STOKER_CHECK(write_event(*events, started).ok());
    if (end != End::lost) STOKER_CHECK(write_event(*events, ending(end)).ok());
    write_log(*attempt, end);
  }

  void write_submission(const record::Attempt& attempt) const {
    auto events = record::EventWriter::open(attempt.submit_events());
    const std::string comment = format("stoker:{}/{}", run_->id(), attempt.number());
    STOKER_CHECK(write_event(*events, record::Submitting{.host = "n1", .comment = comment}).ok());
    STOKER_CHECK(
        write_event(*events, record::Submitted{.scheduler_job = "42", .links = kind_ == Kind::chain ? 3 : 0})
            .ok());
  }

  static record::AttemptEnded ending(End end) {
    const std::string rank = "rank 0 (n1) exited after 2.0 s: ";
    switch (end) {
      case End::failed:
        return {.outcome = Outcome::failed, .exit_code = 7, .first_rank = 0, .reason = rank + "exit code 7"};
      case End::out_of_memory:
        return {.outcome = Outcome::failed,
                .exit_code = 137,
                .first_rank = 0,
                .reason = rank + "killed by signal 9 (SIGKILL), out of memory (cgroup limit 32 GB)"};
      case End::time_limit:
        return {.outcome = Outcome::stopped,
                .exit_code = record::kOutOfTime,
                .reason = "time limit 10m (resources.time)"};
      case End::preempted:
        return {.outcome = Outcome::failed,
                .exit_code = 143,
                .first_rank = 0,
                .reason = "rank 0 (n1) was terminated externally: killed by signal 15 (SIGTERM)"};
      case End::cancelled:
        return {.outcome = Outcome::stopped, .exit_code = 143, .reason = "interrupted by SIGTERM"};
      default:
        return {.outcome = Outcome::done};
    }
  }

  // Slurm's daemons write to the log of the batch script.
  void write_log(const record::Attempt& attempt, End end) const {
    if (!is_submitted()) return;
    std::string log = "hello\n";
    // The ranks got SIGTERM at the start of the grace time.
    if (end == End::preempted)
      log += format("slurmstepd: error: *** JOB 42 ON n1 CANCELLED AT {} DUE TO PREEMPTION ***\n",
                    slurm_time(now() + 30));
    STOKER_CHECK(write_file(attempt.batch_log(), log).ok());
  }

  void write_tasks(const record::Attempt& attempt, End end) const {
    launch::TaskArrayFile array;
    array.job_file = "job.yaml";
    array.text = yaml_;
    array.folder = run_->description().working_directory;
    array.options.current_directory = array.folder;
    array.tasks.resize(2);
    array.chosen = {1, 2};
    STOKER_CHECK(launch::write_array_file(attempt, array).ok());
    STOKER_CHECK(make_directories(launch::tasks_folder(*run_)).ok());
    for (const std::uint32_t task : array.chosen) {
      const record::AttemptEnded last = ending(task == 1 ? end : End::done);
      auto events = record::EventWriter::open(launch::task_events(*run_, task));
      STOKER_CHECK(write_task_event(*events, launch::TaskStarted{attempt.number(), "n1", "42_1", ""}).ok());
      STOKER_CHECK(write_task_event(*events, launch::TaskEnded{attempt.number(), last.outcome, last.exit_code,
                                                               last.reason})
                       .ok());
    }
  }

  Kind kind_;
  std::string yaml_;
  std::optional<record::RunFolder> run_;
};

struct CommandOutput {
  int code = 0;
  Json json;
  std::string notes;
};

std::string text_of(std::FILE* file) {
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

CommandOutput run_command(std::vector<std::string> words) {
  std::FILE* out_file = std::tmpfile();
  std::FILE* err_file = std::tmpfile();
  Output out(OutputMode::json, out_file, err_file);
  CommandOutput done{.code = dispatch(words, out), .json = {}, .notes = ""};
  done.json = parse_json<Json>(text_of(out_file));
  done.notes = text_of(err_file);
  return done;
}

class Endings : public testing::TestWithParam<Kind> {
 protected:
  // Without Slurm, the records decide.
  void SetUp() override {
    path_ = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
    ::setenv("PATH", box_.path().c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  CommandOutput command(std::vector<std::string> words) const {
    words.insert(words.end(), {"--runs", (box_ / "runs").string()});
    return run_command(std::move(words));
  }

  TempDirectory box_;
  std::string path_;
};

TEST_P(Endings, have_the_same_word_in_status_wait_report_explain_and_resume) {
  for (const End end : kEnds) {
    const auto word = word_of(GetParam(), end);
    if (!word) continue;
    SCOPED_TRACE(format("{}, expected {}", static_cast<int>(end), *word));
    EndedRun run(box_, GetParam());
    run.end(end);
    const std::string id = run.id();
    EXPECT_EQ(command({"status", id}).json["runs"][0]["state"], *word);
    EXPECT_EQ(command({"wait", id}).json["state"], *word);
    EXPECT_EQ(command({"report", id}).json["runs"][0]["state"], *word);
    EXPECT_EQ(command({"explain", id}).json["state"], *word);
    EXPECT_THAT(command({"resume", id, "--dry-run"}).notes, StartsWith(format("run {}: {}", id, *word)));
  }
}

TEST_P(Endings, have_one_reason_and_one_exit_code) {
  if (GetParam() == Kind::array) return;  // its reason counts the tasks
  EndedRun run(box_, GetParam());
  run.end(End::failed);
  const std::string reason = "rank 0 (n1) exited after 2.0 s: exit code 7";
  EXPECT_EQ(command({"status", run.id()}).json["runs"][0]["reason"], reason);
  EXPECT_EQ(command({"report", run.id()}).json["runs"][0]["reason"], reason);
  EXPECT_EQ(command({"explain", run.id()}).json["note"], reason);
  const CommandOutput waited = command({"wait", run.id()});
  EXPECT_EQ(waited.json["reason"], reason);
  EXPECT_EQ(waited.code, 7);
  EXPECT_EQ(command({"report", run.id()}).json["runs"][0]["exit_code"], 7);
}

INSTANTIATE_TEST_SUITE_P(All, Endings, testing::ValuesIn(kKinds),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace stoker::cli
