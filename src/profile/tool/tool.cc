#include "profile/tool/tool.h"

#include <algorithm>
#include <csignal>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "stoker/text.h"

namespace stoker::profile {
namespace {

constexpr std::string_view kToolVariable = "STOKER_PROFILE_TOOL";
constexpr std::string_view kStepsVariable = "STOKER_PROFILE_STEPS";
// py-spy writes its file after the process has ended.
constexpr std::chrono::seconds kWriteTime{30};

bool selects_steps(ProfileTool tool) {
  return tool == ProfileTool::nsys || tool == ProfileTool::ncu || tool == ProfileTool::torch;
}
bool has_steps(const ToolRequest& request) { return request.steps.first.has_value(); }

bool is_installed(std::string_view program, const Environment& environment) {
  const std::string path = variable(environment, "PATH");
  return std::ranges::any_of(split(path, ':'), [program](std::string_view folder) {
    return !folder.empty() && ::access((Path(folder) / program).c_str(), X_OK) == 0;
  });
}

std::string_view cure_of(ProfileTool tool) {
  switch (tool) {
    case ProfileTool::perf:
      return "apt install linux-perf       (or: module load perf)";
    case ProfileTool::py_spy:
      return "pip install py-spy";
    default:
      return "module load cuda       (or: module load nvhpc)";
  }
}

volatile std::sig_atomic_t signalled_pid = 0;
void forward_signal(int signal) {
  if (signalled_pid > 0) ::kill(signalled_pid, signal);
}

// Ends like the process, so that the caller sees the same signal.
int end_as(const Exit& exit) {
  if (exit.signal == 0) return exit.code;
  std::signal(exit.signal, SIG_DFL);
  ::raise(exit.signal);
  return exit.shell_code();
}

// The command is the child of this process, and py-spy its sibling.
Result<int> run_beside_py_spy(const ToolRequest& request, const Environment& environment,
                              const Path& output) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(signal, &forward_signal);
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn({.argv = request.command, .environment = environment}));
  signalled_pid = child.pid();
  auto spy = Child::spawn({.argv = py_spy_command(child.pid(), output),
                           .environment = environment,
                           .group = Group::own,
                           .parent_death_signal = SIGKILL});
  STOKER_ASSIGN_OR_RETURN(exit, child.wait(Deadline::never()));
  signalled_pid = 0;
  if (spy.ok() && !spy->wait(Deadline::after(kWriteTime)).ok()) {
    (void)spy->signal(SIGKILL);
    (void)spy->wait(Deadline::after(kWriteTime));
  }
  return end_as(exit);
}

}  // namespace

Result<ToolRequest> parse_tool_request(const std::string& tool, const std::string& ranks,
                                       const StepSelection& steps, const std::vector<std::string>& command) {
  const auto found = std::ranges::find(kToolNames, tool);
  if (found == kToolNames.end())
    return invalid("profile: unknown tool '{}'{} (--tool)", printable(tool), suggestion(tool, kToolNames));
  ToolRequest request{.tool = static_cast<ProfileTool>(found - kToolNames.begin()),
                      .ranks = {},
                      .steps = steps,
                      .command = command};
  for (const std::string_view word : split(ranks, ',')) {
    std::int64_t rank = 0;
    if (!parse_number(trim(word), &rank) || rank < 0 || rank > 10'000'000)
      return invalid("profile: '{}' is no list of ranks, such as 0,3 (--ranks)", printable(ranks));
    request.ranks.push_back(static_cast<int>(rank));
  }
  if (command.empty())
    return invalid("profile: --tool needs a command")
        .cure("stoker profile --tool {} -- python train.py", tool);
  const bool has_any = steps.first || steps.last;
  if (has_any && !selects_steps(request.tool))
    return invalid("profile: {} records the whole command, not steps (--steps)", tool);
  if (has_any && !(steps.first && steps.last))
    return invalid("profile: --tool needs the first and the last step, such as 10..20 (--steps)");
  return request;
}

Path tool_output(ProfileTool tool, int rank, const Environment& environment) {
  constexpr std::string_view kEnds[] = {"nsys-rep", "ncu-rep", "data", "svg", ""};
  if (tool == ProfileTool::torch) return {};
  const auto index = static_cast<std::size_t>(tool);
  return Path(variable(environment, "STOKER_ATTEMPT_DIR")) /
         format("{}-{:04}.{}", kToolNames[index], rank, kEnds[index]);
}

std::vector<std::string> tool_command(const ToolRequest& request, const Path& output) {
  const std::string file = output.string();
  std::vector<std::string> words;
  if (request.tool == ProfileTool::nsys) {
    words = {"nsys", "profile", "--trace=cuda,nvtx,osrt", "--force-overwrite=true", "--output=" + file};
    if (has_steps(request)) {
      words.emplace_back("--capture-range=cudaProfilerApi");
      words.emplace_back("--capture-range-end=stop");
    }
  } else if (request.tool == ProfileTool::ncu) {
    words = {"ncu", "--target-processes=all", "--force-overwrite", "--export=" + file};
    if (has_steps(request)) words.emplace_back("--profile-from-start=off");
  } else if (request.tool == ProfileTool::perf) {
    words = {"perf", "record", "--call-graph=fp", "--output=" + file, "--"};
  }
  words.insert(words.end(), request.command.begin(), request.command.end());
  return words;
}

std::vector<std::string> py_spy_command(int pid, const Path& output) {
  return {"py-spy", "record", "--subprocesses", "--output", output.string(), "--pid", std::to_string(pid)};
}

Environment tool_environment(const ToolRequest& request, Environment environment) {
  set_variable(environment, kToolVariable, std::string(kToolNames[static_cast<std::size_t>(request.tool)]));
  if (has_steps(request))
    set_variable(environment, kStepsVariable, format("{}..{}", *request.steps.first, *request.steps.last));
  return environment;
}

int own_rank(const Environment& environment) {
  for (const std::string_view name : {"RANK", "SLURM_PROCID"}) {
    std::int64_t rank = 0;
    if (parse_number(variable(environment, name), &rank) && rank >= 0 && rank <= 10'000'000)
      return static_cast<int>(rank);
  }
  return 0;
}

Result<int> run_with_tool(const ToolRequest& request) {
  const Environment base = current_environment();
  const int rank = own_rank(base);
  if (std::ranges::find(request.ranks, rank) == request.ranks.end())
    return exec_command(request.command, base);
  const std::string_view name = kToolNames[static_cast<std::size_t>(request.tool)];
  if (request.tool != ProfileTool::torch && !is_installed(name, base))
    return unavailable("profile: rank {}: {} is not installed on this node (--tool)", rank, name)
        .cure("{}", cure_of(request.tool));
  const Environment environment = tool_environment(request, base);
  const Path output = tool_output(request.tool, rank, base);
  if (request.tool == ProfileTool::py_spy) return run_beside_py_spy(request, environment, output);
  return exec_command(tool_command(request, output), environment);
}

}  // namespace stoker::profile
