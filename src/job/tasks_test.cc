#include "job/tasks.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "job/job.h"

namespace stoker::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string refused(std::string_view suffix, std::string_view text) {
  return std::string(parse_tasks("t" + std::string(suffix), suffix, text).status().message());
}

TEST(Tasks, a_table_of_any_kind_gives_the_same_settings) {
  const auto settings = ElementsAre("params.lr=0.1", "train.epochs=3", "params.tag=a, b");
  const auto csv =
      parse_tasks("t.csv", ".csv", "lr,train.epochs,tag\r\n\n0.1,3,\"a, b\"\n0.2,,\"run \"\"x\"\"\"\n");
  ASSERT_TRUE(csv.ok()) << csv.status().to_string();
  ASSERT_EQ(csv->tasks.size(), 2U);
  EXPECT_THAT(csv->tasks[0].settings, settings);
  EXPECT_THAT(csv->tasks[1].settings, ElementsAre("params.lr=0.2", "params.tag=run \"x\""));
  EXPECT_THAT(csv->tasks[1].values, ElementsAre(Pair("lr", "0.2"), Pair("tag", "run \"x\"")));
  const auto json =
      parse_tasks("t.json", ".json", R"([{"lr": 0.1, "train": {"epochs": 3}, "tag": "a, b", "x": null}])");
  ASSERT_TRUE(json.ok()) << json.status().to_string();
  EXPECT_THAT(json->tasks[0].settings, settings);
  const auto yaml = parse_tasks("t.yaml", ".yaml", "- {lr: 0.1, train: {epochs: 3}, tag: 'a, b'}\n");
  ASSERT_TRUE(yaml.ok()) << yaml.status().to_string();
  EXPECT_THAT(yaml->tasks[0].settings, settings);
}

TEST(Tasks, errors_have_a_position) {
  EXPECT_EQ(refused(".csv", "lr,lr\n1,2\n"), "t.csv:1: 'lr' appears twice");
  EXPECT_EQ(refused(".csv", "lr,seed\n1,2\n3\n"), "t.csv:3: 1 cells, but 2 columns");
  EXPECT_EQ(refused(".csv", "lr\n\"1\n"), "t.csv:2: a quote is not closed");
  EXPECT_EQ(refused(".csv", "l r\n1\n"),
            "t.csv:1: 'l r' is not a name: letters, digits, '_' and '-' only, at most 64");
  EXPECT_EQ(refused(".csv", "resources.nodes\n2\n"),
            "t.csv:1: 'resources.nodes' cannot differ between the tasks of an array");
  EXPECT_THAT(refused(".csv", "train.epoch\n2\n"), HasSubstr("t.csv:1: unknown key 'epoch'"));
  EXPECT_EQ(refused(".csv", "lr\n"), "t.csv: contains no task");
  EXPECT_EQ(refused(".csv", ""), "t.csv: contains no task");
  EXPECT_EQ(refused(".csv", "lr\n\xff\n"), "t.csv:2: lr: '\\xff' is not valid UTF-8");
  EXPECT_EQ(refused(".json", "{}"), "t.json: not a list of objects");
  EXPECT_EQ(refused(".json", "[3]"), "t.json: task 1: is not an object");
  EXPECT_EQ(refused(".yaml", "a: 1\n"), "t.yaml: not a list of maps");
  EXPECT_EQ(refused(".yaml", "- 3\n"), "t.yaml:1:3: is not a map");
  EXPECT_EQ(refused(".txt", "3\n"), "t.txt: not a .csv, .json or .yaml file");
}

TEST(Tasks, uses_the_first_task_when_a_job_file_is_loaded) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "configs.csv", "lr\n0.1\n0.2\n").ok());
  ASSERT_TRUE(
      write_file(box / "job.yaml", "run: train --lr ${params.lr}\narray: {over: configs.csv, at_once: 2}\n")
          .ok());
  const auto first = load(box / "job.yaml");
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_THAT(first->command->arguments, ElementsAre("train", "--lr", "0.1"));
  EXPECT_EQ(first->array.over, box / "configs.csv");
  const auto second = load(box / "job.yaml", {.task = {"params.lr=0.2"}});
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_THAT(second->command->arguments, ElementsAre("train", "--lr", "0.2"));
  const auto flagged = load(box / "job.yaml", {.set = {"params.lr=5"}, .task = {"params.lr=0.2"}});
  EXPECT_THAT(flagged->command->arguments, ElementsAre("train", "--lr", "5"));
}

TEST(Tasks, a_missing_table_is_an_error_at_its_key) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "job.yaml", "run: x\narray: {over: no.csv}\n").ok());
  EXPECT_THAT(
      std::string(load(box / "job.yaml").status().message()),
      ::testing::MatchesRegex(".*job.yaml:2:15: array.over: .*no.csv: no such file or directory\n.*"));
}

TEST(Tasks, chains_do_not_share_a_job) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "t.csv", "lr\n1\n").ok());
  const auto read = [&](const std::string& bundle) {
    const std::string text =
        format("run: x\narray: {{over: t.csv{}}}\nchain: {{until: done, time_per_link: 1h}}\n", bundle);
    STOKER_CHECK(write_file(box / "job.yaml", text).ok());
    return load(box / "job.yaml").status();
  };
  EXPECT_TRUE(read("").ok());
  EXPECT_TRUE(read(", bundle: 1").ok());
  EXPECT_THAT(std::string(read(", bundle: 3").message()),
              HasSubstr("array.bundle: 3, but tasks with chains cannot share a job (chain, "));
}

}  // namespace
}  // namespace stoker::job
