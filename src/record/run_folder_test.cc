#include "record/run_folder.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "record/run_events.h"

namespace stoker::record {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

RunDescription example() {
  RunDescription what;
  what.name = "resnet20";
  what.git = "3f2c1aa";
  what.command = {"python", "train.py", "--lr", "0.1"};
  what.job_file = "job.yaml";
  what.working_directory = "/home/ana/project";
  what.typed = {"stoker", "run", "job.yaml"};
  what.world_size = 2;
  what.hosts = {"node1", "node2"};
  what.user = "ana";
  what.stoker_version = "0.1.0";
  what.params = {{"lr", "0.1"}, {"batch", "64"}};
  what.created = 1'763'719'391.25;
  return what;
}

RunFolder make_run(const Path& runs, double created, std::string_view name = "resnet20") {
  RunDescription what = example();
  what.created = created;
  what.name = name;
  auto run = RunFolder::create(runs, what, "name: x\n");
  EXPECT_TRUE(run.ok());
  return *run;
}

TEST(RunFolder, opens_with_the_created_values) {
  TempDirectory box;
  const auto made = RunFolder::create(box / "runs", example(), "name: resnet20\n");
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_THAT(made->id(), MatchesRegex("2025-11-21T10-03-11_3f2c1aa_resnet20_[a-z2-7]{4}"));
  const auto opened = RunFolder::open(made->folder());
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const RunDescription& what = opened->description();
  EXPECT_EQ(opened->id(), made->id());
  EXPECT_EQ(what.name, "resnet20");
  EXPECT_EQ(what.created, 1'763'719'391.25);
  EXPECT_THAT(what.command, ElementsAre("python", "train.py", "--lr", "0.1"));
  EXPECT_THAT(what.typed, ElementsAre("stoker", "run", "job.yaml"));
  EXPECT_THAT(what.hosts, ElementsAre("node1", "node2"));
  EXPECT_THAT(what.params, ElementsAre(std::pair("lr", "0.1"), std::pair("batch", "64")));
  EXPECT_EQ(what.world_size, 2);
  EXPECT_EQ(*read_file(opened->job()), "name: resnet20\n");
}

TEST(RunFolder, id_survives_a_slash_at_the_end_of_the_path) {
  TempDirectory box;
  const RunFolder run = make_run(box / "runs", 1'763'719'391);
  EXPECT_EQ(RunFolder::open(run.folder() / "")->id(), run.id());
}

TEST(RunFolder, id_keeps_only_plain_characters) {
  EXPECT_EQ(make_run_id(0, "", "", "abcd"), "1970-01-01T00-00-00_nogit_run_abcd");
  EXPECT_EQ(make_run_id(0, "12/..", "../<b> \xc3\xa9_1", "abcd"),
            "1970-01-01T00-00-00_12-.._-.--b-----1_abcd");
}

TEST(RunFolder, attempts_are_numbered_and_never_shared) {
  TempDirectory box;
  const RunFolder run = make_run(box / "runs", 1'763'719'391);
  EXPECT_EQ(run.last_attempt().status().message(), "run " + run.id() + ": no attempt has started");
  ASSERT_TRUE(make_directories(run.folder() / "attempts" / "2").ok());  // of a different process
  ASSERT_TRUE(make_directories(run.folder() / "attempts" / "notes").ok());
  ASSERT_TRUE(make_directories(run.folder() / "attempts" / "07").ok());
  const auto attempt = run.start_attempt("name: y\n");
  ASSERT_TRUE(attempt.ok());
  EXPECT_EQ(attempt->number(), 3);
  EXPECT_EQ(*read_file(attempt->job()), "name: y\n");
  EXPECT_EQ(run.last_attempt()->number(), 3);
  EXPECT_THAT(*run.attempts(), SizeIs(2));
}

TEST(RunFolder, names_the_files_of_an_attempt) {
  const Attempt attempt("/r/attempts/1", 1);
  EXPECT_EQ(attempt.log(0), "/r/attempts/1/rank-0000.log");
  EXPECT_EQ(attempt.beacon(12), "/r/attempts/1/rank-0012.beacon");
  EXPECT_EQ(attempt.metrics(12345), "/r/attempts/1/metrics-12345.csv");
  EXPECT_EQ(attempt.system(1), "/r/attempts/1/system-0001.csv");
  EXPECT_EQ(attempt.node_events(0), "/r/attempts/1/events-node-0000.jsonl");
  EXPECT_EQ(attempt.rank_events(3), "/r/attempts/1/events-rank-0003.jsonl");
  EXPECT_EQ(attempt.sampler_events(2), "/r/attempts/1/events-sampler-0002.jsonl");
}

TEST(RunFolder, is_found_by_id_prefix_suffix_path_and_last) {
  TempDirectory box;
  const Path runs = box / "runs";
  const RunFolder first = make_run(runs, 1'763'719'391);
  const RunFolder later = make_run(runs, 1'763'719'500.25);
  const RunFolder last = make_run(runs, 1'763'719'500.75);  // the same second
  const auto id_of = [&](std::string_view word) {
    const auto found = RunFolder::find(runs, word);
    return found ? found->id() : std::string(found.status().message());
  };
  EXPECT_EQ(id_of("last"), last.id());
  EXPECT_EQ(id_of(first.id()), first.id());
  EXPECT_EQ(id_of("2025-11-21T10-03"), first.id());
  EXPECT_EQ(id_of(first.id().substr(first.id().size() - 4)), first.id());
  EXPECT_EQ(id_of(later.folder().string()), later.id());
}

TEST(RunFolder, is_found_by_the_job_id_of_the_scheduler) {
  TempDirectory box;
  RunDescription what = example();
  what.scheduler_job = "812345";
  const auto made = RunFolder::create(box / "runs", what, "");
  (void)make_run(box / "runs", 1'763'719'800);
  EXPECT_EQ(RunFolder::find(box / "runs", "812345")->id(), made->id());
}

TEST(RunFolder, an_ambiguous_name_lists_the_candidates) {
  TempDirectory box;
  const Path runs = box / "runs";
  const std::string place = runs.string();
  EXPECT_EQ(RunFolder::find(runs, "last").status().to_string(),
            "run 'last': no runs in " + place + "\n  try: stoker run JOB");
  const std::string a = make_run(runs, 1'763'719'391).id();
  const std::string b = make_run(runs, 1'763'719'392).id();
  EXPECT_EQ(
      RunFolder::find(runs, "2025").status().to_string(),
      "run '2025': 2 runs match (" + b + ", " + a + ")\n  try: use more of the id, or its last four letters");
  EXPECT_EQ(RunFolder::find(runs, "x\x1b").status().to_string(),
            "run 'x\\x1b': not found in " + place + " (newest: " + b + ", " + a + ")");
  EXPECT_EQ(RunFolder::find(runs, "").status().message(), "run '': an empty name matches every run");
  EXPECT_EQ(RunFolder::find(runs, "./nowhere").status().message(), "./nowhere: no such run folder");
}

TEST(RunFolder, reports_damage_and_still_lists_other_runs) {
  TempDirectory box;
  const Path runs = box / "runs";
  const RunFolder good = make_run(runs, 1'763'719'391);
  const RunFolder bad = make_run(runs, 1'763'719'392);
  const RunFolder cut = make_run(runs, 1'763'719'393);
  const std::string file = (bad.folder() / "run.json").string();
  ASSERT_TRUE(remove_file(cut.folder() / "run.json").ok());
  ASSERT_TRUE(make_directories(runs / "not-a-run").ok());
  const std::pair<std::string, std::string> damages[] = {
      {"{", file + ": not a JSON object"},
      {"[1]", file + ": not a JSON object"},
      {R"({"format": "other"})", file + ": not a stoker run (format)"},
      {R"({"format": "stoker-run", "version": 2})",
       file + ": run folder version 2, this Stoker version reads 1"},
  };
  for (const auto& [content, message] : damages) {
    ASSERT_TRUE(write_file(file, content).ok());
    EXPECT_EQ(RunFolder::open(bad.folder()).status().message(), message);
    const auto listed = list_runs(runs);
    ASSERT_THAT(*listed, SizeIs(2));
    EXPECT_EQ(listed->front().id, good.id());
    EXPECT_EQ(listed->back().problem.message(), message);
  }
  EXPECT_EQ(RunFolder::open(cut.folder()).status().message(),
            cut.folder().string() + ": not a run folder (no run.json)");
}

TEST(RunFolder, fields_of_the_wrong_type_read_as_absent) {
  TempDirectory box;
  const RunFolder run = make_run(box / "runs", 1'763'719'391);
  ASSERT_TRUE(write_file(run.folder() / "run.json", R"({"format": "stoker-run", "version": 1, "name": 7,
      "command": "x", "world_size": 99999999999, "params": {"a": 1, "b": "2"}, "hosts": [1, "h"]})")
                  .ok());
  const auto opened = RunFolder::open(run.folder());
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->description().name, "");
  EXPECT_THAT(opened->description().command, ElementsAre());
  EXPECT_EQ(opened->description().world_size, 1'000'000);
  EXPECT_THAT(opened->description().hosts, ElementsAre("h"));
  EXPECT_THAT(opened->description().params, ElementsAre(std::pair("b", "2")));
}

mode_t mode_of(const Path& file) {
  struct stat info{};
  EXPECT_EQ(::stat(file.c_str(), &info), 0) << file;
  return info.st_mode & 0777;
}

TEST(RunFolder, values_of_the_environment_are_for_the_owner_and_hidden_in_run_json) {
  TempDirectory box;
  const std::string job = "name: x\nenvironment:\n  variables:\n    HF_TOKEN: x\n";
  RunDescription what;
  what.typed = {"stoker", "run", "job.yaml", "--set", "environment.variables.HF_TOKEN=hush"};
  what.command = {"python", "t.py", "--password=hush"};
  what.params = {{"api_key", "hush"}, {"lr", "0.1"}};
  const RunFolder run = *RunFolder::create(box / "runs", what, job);
  EXPECT_EQ(mode_of(run.job()), 0600u);
  EXPECT_EQ(mode_of(run.start_attempt(job)->job()), 0600u);
  const std::string text = *read_file(run.folder() / "run.json");
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("hush")));
  const RunDescription read = RunFolder::open(run.folder())->description();
  EXPECT_THAT(read.typed,
              ElementsAre("stoker", "run", "job.yaml", "--set", "environment.variables.HF_TOKEN=(hidden)"));
  EXPECT_THAT(read.command, ElementsAre("python", "t.py", "--password=(hidden)"));
  EXPECT_THAT(read.params, ElementsAre(std::pair("api_key", "(hidden)"), std::pair("lr", "0.1")));
}

TEST(RunFolder, files_without_values_are_for_everybody_whom_the_umask_allows) {
  EXPECT_EQ(access_of("name: x\nrun: train\n"), Access::umask);
  EXPECT_EQ(access_of("#SBATCH --export=ALL,HOME\n"), Access::umask);
  EXPECT_EQ(access_of("#SBATCH --export=ALL,DB_PWD=x\n"), Access::owner);
  EXPECT_EQ(access_of("run: train hf_0123456789abcdefghij\n"), Access::owner);
}

TEST(RunFolder, a_missing_runs_folder_gives_an_empty_list) {
  TempDirectory box;
  EXPECT_THAT(*list_runs(box / "runs"), SizeIs(0));
}

TEST(RunFolder, a_run_is_found_by_the_job_of_any_of_its_attempts) {
  TempDirectory box;
  const RunFolder run = make_run(box.path(), 1'763'719'391);
  (void)make_run(box.path(), 1'763'719'392);
  for (const char* job : {"812345", "812399"}) {
    auto events = EventWriter::open(run.start_attempt("name: x\n")->submit_events());
    ASSERT_TRUE(write_event(*events, Submitted{job}).ok());
  }
  EXPECT_EQ(RunFolder::find(box.path(), "812345")->id(), run.id());
  EXPECT_EQ(RunFolder::find(box.path(), "812399")->id(), run.id());
  EXPECT_EQ(RunFolder::find(box.path(), "81234").status().code(), Code::not_found);
}

}  // namespace
}  // namespace stoker::record
