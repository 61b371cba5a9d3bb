#include "job/profile_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/test_job.h"

namespace stoker::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job good(const std::string& text) {
  JobSandbox box;
  auto job = load(box.write(text));
  EXPECT_TRUE(job.ok()) << job.status().to_string();
  return job.ok() ? *job : Job{};
}

TEST(ProfileSettings, the_tool_becomes_part_of_the_command) {
  const Job job = good(
      "name: p\nrun: python train.py\nresources: {nodes: 2, ranks_per_node: 2}\n"
      "profile: {tool: nsys, ranks: [0, 3], steps: 10..20}\n");
  EXPECT_THAT(job.command->arguments, ElementsAre("stoker", "profile", "--tool", "nsys", "--ranks", "0,3",
                                                  "--steps", "10..20", "--", "python", "train.py"));
  EXPECT_THAT(good("name: p\nrun: {shell: 'a | b'}\nprofile: {tool: torch}\n").command->arguments,
              ElementsAre("stoker", "profile", "--tool", "torch", "--", "/bin/sh", "-c", "a | b"));
}

TEST(ProfileSettings, tool_and_command_are_found_in_the_words) {
  const auto both =
      split_profile_tool({"/bin/stoker", "profile", "--tool", "perf", "--ranks", "0", "--", "a", "--", "b"});
  EXPECT_EQ(both.tool, "perf");
  EXPECT_THAT(both.command, ElementsAre("a", "--", "b"));
  EXPECT_EQ(split_profile_tool({"stoker", "profile", "--", "a"}).tool, "");
  EXPECT_THAT(split_profile_tool({"python", "train.py"}).command, ElementsAre("python", "train.py"));
}

TEST(ProfileSettings, the_effective_job_has_the_command_and_can_be_profiled_again) {
  const Job job = good("name: p\nrun: {shell: 'a -- b'}\nprofile: {tool: perf}\n");
  const std::string effective = to_yaml(job);
  EXPECT_THAT(effective, testing::Not(HasSubstr("profile:")));
  EXPECT_EQ(good(effective), job);
  EXPECT_THAT(
      good(effective + "profile: {tool: py-spy, ranks: [0]}\n").command->arguments,
      ElementsAre("stoker", "profile", "--tool", "py-spy", "--ranks", "0", "--", "/bin/sh", "-c", "a -- b"));
}

TEST(ProfileSettings, what_no_tool_can_record_is_an_error) {
  const auto error_of = [](const std::string& more) {
    return errors_of(std::string("name: p\nrun: x\n") + more);
  };
  EXPECT_THAT(error_of("profile: {tool: perf, ranks: [1]}\n"),
              HasSubstr("profile.ranks: 1 is no rank of this job (0 to 0)"));
  EXPECT_THAT(error_of("profile: {tool: perf, ranks: [0.5]}\n"),
              HasSubstr("profile.ranks: 0.5 is no rank of this job"));
  EXPECT_THAT(error_of("profile: {tool: perf, steps: 1..2}\n"),
              HasSubstr("profile.steps: perf records the whole command"));
  EXPECT_THAT(error_of("profile: {tool: torch, steps: 5..2}\n"),
              HasSubstr("profile.steps: '5..2' is not a range such as 10..20"));
  EXPECT_THAT(error_of("profile: {steps: 1..2}\n"), HasSubstr("profile.steps: needs profile.tool"));
  EXPECT_THAT(error_of("profile: {tool: gdb}\n"), HasSubstr("profile.tool: unknown value 'gdb'"));
  EXPECT_THAT(error_of("profile: {tool: perf}\nenvironment: {container: image}\n"),
              HasSubstr("profile.tool: does not reach into environment.container"));
  EXPECT_THAT(
      errors_of(
          "name: p\ntrain: {model: cifar-resnet20}\ndata: {train: {source: d}}\nprofile: {tool: perf}\n"),
      HasSubstr("profile.tool: needs 'run'"));
}

}  // namespace
}  // namespace stoker::job
