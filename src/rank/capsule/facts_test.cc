#include "rank/capsule/facts.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Repository {
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

TEST(Capsule, code_is_commit_changes_and_untracked_files_without_the_runs) {
  Repository repository;
  ASSERT_TRUE(write_file(repository.box / "file", "two\n").ok());
  ASSERT_TRUE(write_file(repository.box / "new", "").ok());
  ASSERT_TRUE(make_directories(repository.box / "runs").ok());
  ASSERT_TRUE(write_file(repository.box / "runs/x", "").ok());
  const record::CodeInfo facts = code_facts(repository.box.path(), repository.box / "runs");
  EXPECT_EQ(facts.commit.size(), 40u);
  EXPECT_THAT(facts.commit, testing::StartsWith(short_commit(repository.box.path())));
  EXPECT_EQ(facts.branch, "main");
  EXPECT_TRUE(facts.dirty);
  EXPECT_THAT(facts.diff, HasSubstr("-one\n+two\n"));
  EXPECT_THAT(facts.untracked, ElementsAre("new"));
}

TEST(Capsule, a_clean_repository_is_not_dirty_and_no_repository_is_empty) {
  const Repository repository;
  EXPECT_FALSE(code_facts(repository.box.path(), {}).dirty);
  const TempDirectory none;
  EXPECT_EQ(code_facts(none.path(), {}).commit, "");
  EXPECT_EQ(short_commit(none.path()), "");
}

TEST(Capsule, a_password_in_the_remote_is_hidden) {
  Repository repository;
  repository.run("remote add origin https://me:hush@example.org/x.git");
  EXPECT_EQ(code_facts(repository.box.path(), {}).remote, "(hidden: holds a password)");
}

TEST(Capsule, a_token_in_an_uncommitted_line_is_hidden_and_the_patch_still_applies) {
  Repository repository;
  ASSERT_TRUE(write_file(repository.box / "file", "token = ghp_0123456789abcdefABCDEF0123456789abcd\n").ok());
  const record::CodeInfo facts = code_facts(repository.box.path(), {});
  EXPECT_THAT(facts.diff, HasSubstr("-one\n+token = (hidden)\n"));
  ASSERT_TRUE(write_file(repository.box / "patch", facts.diff).ok());
  repository.run("checkout -q file && git apply patch");
  EXPECT_EQ(*read_file(repository.box / "file"), "token = (hidden)\n");
}

TEST(Capsule, variables_are_hidden_by_name_and_by_value) {
  const record::EnvironmentInfo facts = environment_facts(
      "", {{"WANDB_API_KEY", "x"}, {"NOTES", "use hf_0123456789abcdefghij"}, {"HOME", "/root"}}, "/");
  EXPECT_THAT(facts.variables, ElementsAre(std::pair("HOME", "/root"), std::pair("NOTES", "use (hidden)"),
                                           std::pair("WANDB_API_KEY", "(hidden)")));
}

TEST(Capsule, the_interpreter_is_the_one_that_the_command_starts) {
  job::Environment none;
  job::Environment venv{.venv = Path("/v")};
  EXPECT_EQ(interpreter_of({"python3.11", "train.py"}, none), "python3.11");
  EXPECT_EQ(interpreter_of({"/opt/py/bin/python", "x"}, venv), "/opt/py/bin/python");
  EXPECT_EQ(interpreter_of({"/bin/sh", "-c", "python train.py"}, venv), "/v/bin/python");
  EXPECT_EQ(interpreter_of({"/bin/sh", "-c", "python train.py"}, none), "python3");
  EXPECT_EQ(interpreter_of({"true"}, venv), "");
}

TEST(Capsule, data_that_cannot_be_read_has_no_version) {
  job::Job job;
  job.data["train"] = {.source = "/no/such/dataset", .split = "train"};
  const auto facts = data_facts(job);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].version, "");
  EXPECT_EQ(facts[0].source, "/no/such/dataset");
}

TEST(Capsule, the_machine_is_described) {
  const record::NodeInfo facts = node_facts();
  EXPECT_THAT(facts.kernel, HasSubstr("Linux"));
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, 0u);
}

}  // namespace
}  // namespace stoker::rank
