// Other profilers around a command: Nsight Systems, Nsight Compute, perf, py-spy and torch.profiler, on
// chosen ranks of any launcher. Used by `stoker profile --tool`. Thread-safe: no state, except run_with_tool.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "profile/records.h"
#include "stoker/status.h"

namespace stoker::profile {

enum class ProfileTool { nsys, ncu, perf, py_spy, torch };
inline constexpr std::array<std::string_view, 5> kToolNames = {"nsys", "ncu", "perf", "py-spy", "torch"};

struct ToolRequest {
  ProfileTool tool = ProfileTool::perf;
  std::vector<int> ranks;  ///< the command of every other rank runs without it
  StepSelection
      steps;  ///< with nsys, ncu and torch: only these; the program marks them with stoker.profile()
  std::vector<std::string> command;
};

/// Invalid, with the choices, for an unknown tool, for ranks that are no list such as "0,3", and for steps
/// that the tool cannot select.
Result<ToolRequest> parse_tool_request(const std::string& tool, const std::string& ranks,
                                       const StepSelection& steps, const std::vector<std::string>& command);

/// "perf-0003.data" in the attempt's folder, else in the current one. Empty for torch, whose part of Python
/// names it.
Path tool_output(ProfileTool tool, int rank, const Environment& environment);

/// The command line that records the command to `output`; for py-spy and torch the command itself. The tool's
/// exit status is that of the command.
std::vector<std::string> tool_command(const ToolRequest& request, const Path& output);
/// py-spy beside the running process: as its parent it would hide the exit status.
std::vector<std::string> py_spy_command(int pid, const Path& output);

/// The variables for stoker.profile() in the command: tool, and steps if there are any.
Environment tool_environment(const ToolRequest& request, Environment environment);

/// The rank of this process, by RANK or SLURM_PROCID; 0 without them.
int own_rank(const Environment& environment);

/// Runs the command and returns its exit code; signals of this process reach it. Unavailable, before anything
/// starts, if the tool is not installed. Replaces this process where it can: then it returns only errors.
Result<int> run_with_tool(const ToolRequest& request);

}  // namespace stoker::profile
