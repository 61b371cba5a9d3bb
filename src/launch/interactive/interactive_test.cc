#include "launch/interactive/interactive.h"

#include <gmock/gmock.h>

#include "launch/sandbox.h"

namespace stoker::launch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Interactive, an_allocation_asks_for_what_the_job_would) {
  const LaunchSandbox box;
  const Request request = box.request(
      "resources: {nodes: 2, time: 1h}\nslurm: {account: def-lab, extra: ['-C \"a b\"', '--exclusive']}\n");
  const auto words = salloc_arguments(request, {"bash"});
  ASSERT_TRUE(words.ok()) << words.status().to_string();
  EXPECT_EQ(words->front(), "salloc");
  for (const char* word : {"--account=def-lab", "--nodes=2", "--time=01:00:00", "--exclusive", "-C", "--pty"})
    EXPECT_THAT(*words, Contains(word));
  for (const char* option : {"--output", "--requeue", "--signal", "--comment"})
    EXPECT_THAT(*words, Not(Contains(StartsWith(option))));
  EXPECT_EQ(words->back(), "bash");
}

TEST(Interactive, what_worked_is_kept_and_what_only_looked_is_not) {
  using namespace std::string_literals;
  EXPECT_THAT(successful_lines(
                  "0 module load python\0001 trainer train.py\0000 python train.py\0000 ls -l\0000 exit\0"s),
              ElementsAre("module load python", "python train.py"));
  EXPECT_THAT(successful_lines(""), IsEmpty());
  EXPECT_THAT(successful_lines("rubbish"), IsEmpty());
}

TEST(Interactive, what_was_typed_becomes_a_job_that_reads_back) {
  const LaunchSandbox box;
  const job::Job job = job_of_lines(box.request().job, {"cd \"a b\"", "python 'x.py'"});
  EXPECT_THAT(job.command->arguments, ElementsAre("/bin/sh", "-c", "set -e\ncd \"a b\"\npython 'x.py'"));
  TempDirectory folder;
  ASSERT_TRUE(write_file(folder / "job.yaml", to_yaml(job)).ok());
  const auto again = job::load(folder / "job.yaml", {.current_directory = folder.path()});
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, job);
}

}  // namespace
}  // namespace stoker::launch
