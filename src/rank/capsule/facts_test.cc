#include "rank/capsule/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Repository {
 public:
  Repository() {
    run("init -q -b main && git config user.name a && git config user.email a@b && echo one > file && "
        "git add file && git commit -q -m one");
  }
  void run(const std::string& words) {
    const auto captured = run_program({.argv = {"sh", "-c", "git " + words}, .directory = box.path()},
                                      Deadline::after(std::chrono::seconds(30)));
    ASSERT_TRUE(captured.ok() && captured->exit.ok()) << captured->err;
  }
  TempDirectory box;
};

TEST(Capsule, code_is_commit_changes_and_untracked_files) {
  Repository repository;
  ASSERT_TRUE(write_file(repository.box / "file", "two\n").ok());
  ASSERT_TRUE(write_file(repository.box / "new", "").ok());
  repository.run("remote add origin https://me:secret@example.org/x.git");
  const record::CodeFacts facts = gather_code(repository.box.path());
  EXPECT_EQ(facts.commit.size(), 40u);
  EXPECT_THAT(facts.commit, testing::StartsWith(short_commit(repository.box.path())));
  EXPECT_EQ(facts.branch, "main");
  EXPECT_EQ(facts.remote, "https://(masked)@example.org/x.git");
  EXPECT_TRUE(facts.dirty);
  EXPECT_THAT(facts.diff, HasSubstr("-one\n+two\n"));
  EXPECT_THAT(facts.untracked, ElementsAre("new"));
}

TEST(Capsule, a_clean_repository_is_not_dirty_and_no_repository_is_empty) {
  Repository repository;
  EXPECT_FALSE(gather_code(repository.box.path()).dirty);
  TempDirectory none;
  EXPECT_EQ(gather_code(none.path()).commit, "");
  EXPECT_EQ(short_commit(none.path()), "");
}

TEST(Capsule, secrets_are_masked_by_name_and_inside_urls) {
  EXPECT_EQ(masked("WANDB_API_KEY", "x"), "(masked)");
  EXPECT_EQ(masked("github_token", "x"), "(masked)");
  EXPECT_EQ(masked("HOME", "/root"), "/root");
  EXPECT_EQ(masked("MLFLOW", "see https://u:p@h/x and ftp://h/a@b"),
            "see https://(masked)@h/x and ftp://h/a@b");
  EXPECT_EQ(masked("MY_SECRET", ""), "");
}

TEST(Capsule, environment_names_the_python_of_the_command) {
  job::Job job;
  job.command = job::Command{.arguments = {"python3", "train.py"}};
  const record::EnvironmentFacts facts = gather_environment(job, current_environment());
  EXPECT_THAT(facts.programs, Contains(Pair("python", HasSubstr("3."))));
  EXPECT_THAT(facts.variables, Contains(Pair("PATH", testing::_)));
}

TEST(Capsule, data_that_cannot_be_read_has_no_version) {
  job::Job job;
  job.data["train"] = {.source = "/no/such/dataset", .split = "train"};
  const auto facts = gather_data(job);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].version, "");
  EXPECT_EQ(facts[0].source, "/no/such/dataset");
}

TEST(Capsule, the_machine_is_described) {
  const record::NodeFacts facts = gather_node("here");
  EXPECT_THAT(facts.kernel, HasSubstr("Linux"));
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, 0u);
}

}  // namespace
}  // namespace stoker::rank
