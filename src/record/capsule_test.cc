#include "record/capsule.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::record {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RunFolder make_run(const TempDirectory& box) { return *RunFolder::create(box / "runs", {}, ""); }

TEST(Capsule, removed_run_folder_is_not_created_again) {
  TempDirectory box;
  const RunFolder run = make_run(box);
  ASSERT_TRUE(remove_tree(run.folder()).ok());
  EXPECT_EQ(write_data(run, {}).code(), Code::not_found);
  EXPECT_FALSE(path_exists(run.folder()));
}

TEST(Capsule, parts_are_read_back_unchanged) {
  TempDirectory box;
  const RunFolder run = make_run(box);
  CodeInfo code{"/home/ana/p", "3f2c1aa0", "main", "git@host:p", true, "--- a\n+++ b\n", {"new.py"}};
  ASSERT_TRUE(write_code(run, code).ok());
  ASSERT_TRUE(
      write_environment(run, {{{"python", "3.11.2"}}, {{"OMP_NUM_THREADS", "1"}}, "numpy==2.0\n"}).ok());
  ASSERT_TRUE(write_data(run, {{"train", "/data/c", "train", "7c1f9e02", 50000, 8, 1ull << 40}}).ok());
  ASSERT_TRUE(
      write_execution(run, {{"node1", "6.1", "Debian 12", "EPYC", 2, 1ull << 35, {"H100"}, "550"}}).ok());
  const Capsule capsule = read_capsule(run);
  EXPECT_THAT(capsule.problems, IsEmpty());
  EXPECT_EQ(capsule.code->commit, "3f2c1aa0");
  EXPECT_TRUE(capsule.code->dirty);
  EXPECT_EQ(capsule.code->diff, "--- a\n+++ b\n");
  EXPECT_THAT(capsule.code->untracked, ElementsAre("new.py"));
  EXPECT_THAT(capsule.environment->programs, ElementsAre(std::pair("python", "3.11.2")));
  EXPECT_THAT(capsule.environment->variables, ElementsAre(std::pair("OMP_NUM_THREADS", "1")));
  EXPECT_EQ(capsule.environment->packages, "numpy==2.0\n");
  ASSERT_THAT(*capsule.data, SizeIs(1));
  EXPECT_EQ(capsule.data->front().version, "7c1f9e02");
  EXPECT_EQ(capsule.data->front().bytes, 1ull << 40);
  ASSERT_THAT(*capsule.execution, SizeIs(1));
  EXPECT_EQ(capsule.execution->front().cpu, "EPYC");
  EXPECT_THAT(capsule.execution->front().gpus, ElementsAre("H100"));
}

TEST(Capsule, secrets_are_hidden_and_variables_are_for_the_owner) {
  TempDirectory box;
  const RunFolder run = make_run(box);
  const std::string token = "hf_0123456789abcdefghij";
  ASSERT_TRUE(
      write_environment(
          run, {{}, {{"A", token}, {"DB_PWD", "x"}, {"PWD", "/w"}}, "a @ git+https://" + token + "@h/a\n"})
          .ok());
  ASSERT_TRUE(write_code(run, {"/p", "3f", "main", "", true, "+x\n", {}}).ok());
  const Capsule capsule = read_capsule(run);
  EXPECT_THAT(
      capsule.environment->variables,
      ElementsAre(std::pair("A", "(hidden)"), std::pair("DB_PWD", "(hidden)"), std::pair("PWD", "/w")));
  EXPECT_EQ(capsule.environment->packages, "a @ git+https://(hidden)@h/a\n");
  for (const char* name : {"environment.json", "code.diff"}) {
    struct stat info{};
    ASSERT_EQ(::stat((run.capsule() / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST(Capsule, absent_parts_are_allowed_and_damaged_ones_are_reported) {
  TempDirectory box;
  const RunFolder run = make_run(box);
  EXPECT_THAT(read_capsule(run).problems, IsEmpty());
  ASSERT_TRUE(make_directories(run.capsule()).ok());
  ASSERT_TRUE(write_file(run.capsule() / "code.json", "{\"commit\":").ok());
  ASSERT_TRUE(write_file(run.capsule() / "data.json", "{\"datasets\": 7}").ok());
  ASSERT_TRUE(
      write_file(run.capsule() / "execution.json", "{\"nodes\": [7, {\"cores\": -1, \"cpu\": []}]}").ok());
  const Capsule capsule = read_capsule(run);
  EXPECT_FALSE(capsule.code.has_value());
  EXPECT_FALSE(capsule.data.has_value());
  ASSERT_THAT(*capsule.execution, SizeIs(1));
  EXPECT_EQ(capsule.execution->front().cores, 0);
  EXPECT_THAT(capsule.problems,
              ElementsAre((run.capsule() / "code.json").string() + ": not a JSON object",
                          (run.capsule() / "data.json").string() + ": list 'datasets' is missing"));
}

}  // namespace
}  // namespace stoker::record
