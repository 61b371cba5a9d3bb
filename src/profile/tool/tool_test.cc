#include "profile/tool/tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ToolRequest request_of(const std::string& tool, const StepSelection& steps = {}) {
  auto request = parse_tool_request(tool, "0", steps, {"python", "train.py"});
  EXPECT_TRUE(request.ok()) << request.status().to_string();
  return *request;
}

TEST(ProfileTools, command_lines_write_one_file_and_keep_the_command) {
  EXPECT_THAT(tool_command(request_of("nsys"), "/r/nsys-0000.nsys-rep"),
              ElementsAre("nsys", "profile", "--trace=cuda,nvtx,osrt", "--force-overwrite=true",
                          "--output=/r/nsys-0000.nsys-rep", "python", "train.py"));
  EXPECT_THAT(tool_command(request_of("ncu"), "/r/x"),
              ElementsAre("ncu", "--target-processes=all", "--force-overwrite", "--export=/r/x", "python",
                          "train.py"));
  EXPECT_THAT(tool_command(request_of("perf"), "/r/x"),
              ElementsAre("perf", "record", "--call-graph=fp", "--output=/r/x", "--", "python", "train.py"));
  EXPECT_THAT(tool_command(request_of("torch"), ""), ElementsAre("python", "train.py"));
  EXPECT_THAT(py_spy_command(7, "/r/x"),
              ElementsAre("py-spy", "record", "--subprocesses", "--output", "/r/x", "--pid", "7"));
}

TEST(ProfileTools, steps_limit_the_tools_that_a_program_can_start) {
  const StepSelection steps{.first = 10, .last = 20};
  EXPECT_THAT(tool_command(request_of("nsys", steps), "x"),
              testing::IsSupersetOf({"--capture-range=cudaProfilerApi", "--capture-range-end=stop"}));
  EXPECT_THAT(tool_command(request_of("ncu", steps), "x"), testing::Contains("--profile-from-start=off"));
  EXPECT_THAT(tool_environment(request_of("torch", steps), {{"STOKER_PROFILE_STEPS", "1..2"}, {"A", "b"}}),
              testing::UnorderedElementsAre(std::pair("A", "b"), std::pair("STOKER_PROFILE_TOOL", "torch"),
                                            std::pair("STOKER_PROFILE_STEPS", "10..20")));
  for (const char* tool : {"perf", "py-spy"})
    EXPECT_THAT(std::string(parse_tool_request(tool, "0", steps, {"x"}).status().message()),
                HasSubstr("records the whole command, not steps"));
  EXPECT_EQ(parse_tool_request("torch", "0", {.first = 3, .last = {}}, {"x"}).status().code(), Code::invalid);
}

TEST(ProfileTools, tools_and_ranks_are_parsed_strictly) {
  EXPECT_THAT(parse_tool_request("perf", "0, 3", {}, {"x"})->ranks, ElementsAre(0, 3));
  EXPECT_THAT(std::string(parse_tool_request("pref", "0", {}, {"x"}).status().message()),
              HasSubstr("did you mean 'perf'"));
  for (const char* ranks : {"", "x", "0,", "-1", "0-3"})
    EXPECT_EQ(parse_tool_request("perf", ranks, {}, {"x"}).status().code(), Code::invalid) << ranks;
  EXPECT_THAT(std::string(parse_tool_request("perf", "0", {}, {}).status().message()),
              HasSubstr("needs a command"));
}

TEST(ProfileTools, files_are_named_by_rank_in_the_folder_of_the_attempt) {
  EXPECT_EQ(tool_output(ProfileTool::perf, 3, {{"STOKER_ATTEMPT_DIR", "/r/a"}}), "/r/a/perf-0003.data");
  EXPECT_EQ(tool_output(ProfileTool::py_spy, 12345, {}), "py-spy-12345.svg");
  EXPECT_EQ(own_rank({{"SLURM_PROCID", "5"}}), 5);
  EXPECT_EQ(own_rank({{"SLURM_PROCID", "5"}, {"RANK", "2"}}), 2);
  EXPECT_EQ(own_rank({{"RANK", "x"}}), 0);
}

}  // namespace
}  // namespace stoker::profile
