#include "loader/trials/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

using ::testing::ElementsAre;

Trial example(double samples_per_s) {
  return {.job = "4711",
          .dataset = "922d6b47",
          .loader = "stoker.Loader",
          .batch = 128,
          .workers = 2,
          .pins_memory = true,
          .prefetch = 4,
          .batch_s = 0.25,
          .first_batch_s = 1.5,
          .memory = {123456},
          .samples_per_s = samples_per_s,
          .limit = "decode (70 %)"};
}

TEST(Trials, round_trip) {
  TempDirectory folder;
  const Path file = folder / "trials.csv";
  ASSERT_TRUE(append_trials(file, {example(10)}).ok());
  ASSERT_TRUE(append_trials(file, {example(30), example(20)}).ok());
  auto trials = read_trials(file).value();
  EXPECT_THAT(trials, ElementsAre(example(10), example(30), example(20)));
  sort_best_first(trials);
  EXPECT_THAT(trials, ElementsAre(example(30), example(20), example(10)));
}

TEST(Trials, texts_never_break_the_table) {
  TempDirectory folder;
  Trial odd = example(1);
  odd.limit = "a, b\nc";
  ASSERT_TRUE(append_trials(folder / "trials.csv", {odd}).ok());
  EXPECT_EQ(read_trials(folder / "trials.csv").value()[0].limit, "a  b c");
}

TEST(Trials, a_torn_last_line_is_ignored) {
  TempDirectory folder;
  const Path file = folder / "trials.csv";
  ASSERT_TRUE(append_trials(file, {example(10), example(20)}).ok());
  const std::string text = read_file(file).value();
  ASSERT_TRUE(write_file(file, text.substr(0, text.size() - 9)).ok());
  EXPECT_THAT(read_trials(file).value(), ElementsAre(example(10)));
}

TEST(Trials, a_different_file_is_refused_with_its_line) {
  TempDirectory folder;
  const Path file = folder / "trials.csv";
  ASSERT_TRUE(write_file(file, "a,b\n").ok());
  EXPECT_EQ(read_trials(file).status().to_string(), format("{}:1: not a file of loader trials", file));
  ASSERT_TRUE(write_file(file, "").ok());
  EXPECT_EQ(read_trials(file).status().to_string(), format("{}:1: not a file of loader trials", file));
  for (const char* wrong : {"x\n", "here,d,l,1,2,Yes,False,4,True,False,1,1,1,1,\n",
                            "here,d,l,-1,2,True,False,4,True,False,1,1,1,1,\n"}) {
    ASSERT_TRUE(remove_file(file).ok());
    ASSERT_TRUE(append_trials(file, {example(10)}).ok());
    ASSERT_TRUE(File::open_append(file).value().write(std::string_view(wrong)).ok());
    EXPECT_EQ(read_trials(file).status().to_string(), format("{}:3: not a loader trial", file)) << wrong;
  }
}

TEST(Trials, are_collected_from_attempts) {
  TempDirectory folder;
  for (const char* attempt : {"runs/a/attempts/1", "runs/b/attempts/2"}) {
    ASSERT_TRUE(make_directories(folder / attempt).ok());
    ASSERT_TRUE(append_trials(folder / attempt / "loader-0000.csv", {example(10)}).ok());
  }
  ASSERT_TRUE(write_file(folder / "runs/a/attempts/1/loader-0001.csv", "half a hea").ok());
  EXPECT_THAT(collect_run_trials(folder / "runs"), ElementsAre(example(10), example(10)));
  EXPECT_TRUE(collect_run_trials(folder / "none").empty());
}

}  // namespace
}  // namespace stoker::loader
