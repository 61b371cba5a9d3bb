#include "rank/stacks/stacks.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/process.h"
#include "base/stack_signal.h"
#include "rank/stacks/frames.h"
#include "rank/stacks/thread_states.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr Duration kToolTime = 4s;
constexpr ByteCount kMaxOutput = 1_MiB;
constexpr std::size_t kMaxProcesses = 16;  // DataLoader workers have the same stacks

Path process_folder(pid_t pid) { return Path("/proc") / std::to_string(pid); }

std::vector<std::string> words_of(pid_t pid, const char* file) {
  const auto text = read_pseudo_file(process_folder(pid) / file);
  std::vector<std::string> words;
  if (!text.ok()) return words;
  for (std::string_view word : split(*text, '\0')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

bool is_python(pid_t pid) {
  std::error_code failure;
  const Path program = std::filesystem::read_symlink(process_folder(pid) / "exe", failure);
  if (!failure && program.filename().string().starts_with("python")) return true;
  const auto maps = read_pseudo_file(process_folder(pid) / "maps");
  return maps.ok() && maps->find("/libpython") != std::string::npos;
}

// Beside Python, in the virtual environment, or in PATH, of that process.
std::optional<Path> find_tool(pid_t pid, std::string_view tool) {
  std::vector<std::string> folders;
  const std::vector<std::string> words = words_of(pid, "cmdline");
  if (!words.empty() && Path(words[0]).filename().string().starts_with("python"))
    folders.push_back(Path(words[0]).parent_path().string());
  for (const std::string& variable : words_of(pid, "environ")) {
    if (variable.starts_with("VIRTUAL_ENV=")) folders.push_back(variable.substr(12) + "/bin");
    if (!variable.starts_with("PATH=")) continue;
    for (std::string_view folder : split(std::string_view(variable).substr(5), ':'))
      folders.emplace_back(folder);
  }
  for (const std::string& folder : folders) {
    const Path path = Path(folder) / tool;
    if (path.is_absolute() && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

// The output of a program that attaches to the process, or why it has none.
struct ToolOutput {
  std::string text;
  std::string problem;
};

ToolOutput run_tool(std::vector<std::string> words, Deadline deadline) {
  const std::string name = Path(words[0]).filename().string();
  const auto done = run_program({.argv = std::move(words)},
                                Deadline::after(std::min(deadline.left(), kToolTime)), kMaxOutput);
  if (!done.ok()) return {.text = "", .problem = std::string(done.error().message())};
  if (done->exit.ok()) return {.text = done->out, .problem = ""};
  const std::string_view error = trim(done->err);
  return {.text = "", .problem = format("{}: {}", name, printable(error.substr(0, error.find('\n'))))};
}

ToolOutput read_stack(pid_t pid, Deadline deadline) {
  const std::string number = std::to_string(pid);
  if (is_python(pid)) {
    const auto tool = find_tool(pid, "py-spy");
    if (!tool) return {.text = "", .problem = "py-spy: not found in its environment (pip install py-spy)"};
    return run_tool({tool->string(), "dump", "--full-filenames", "--pid", number}, deadline);
  }
  const auto tool = find_tool(pid, "gdb");
  if (!tool) return {.text = "", .problem = "gdb: not found"};
  return run_tool({tool->string(), "-p", number, "-batch", "-nx", "-ex", "thread apply all bt 48"}, deadline);
}

bool ask_process(pid_t pid) {
  return handles_signal(pid, kStackSignal) && ::syscall(SYS_tgkill, pid, pid, kStackSignal) == 0;
}

class StackReport {
 public:
  StackReport(const StackRequest& request, Deadline deadline) : request_(request), deadline_(deadline) {}

  std::string run() {
    for (const ProcessFacts& process : request_.processes) {
      if (process.state == 'Z') continue;
      if (written_ == kMaxProcesses || deadline_.passed()) {
        request_.write("further processes are left out\n");
        break;
      }
      ++written_;
      write_process(process);
    }
    return summary_.empty() ? launcher_summary_ : summary_;
  }

 private:
  void write_process(const ProcessFacts& process) {
    std::string command;
    for (const std::string& word : words_of(process.pid, "cmdline"))
      command += (command.empty() ? "" : " ") + word;
    request_.write(
        format("process {}: {}\n", process.pid,
               printable(std::string_view(command.empty() ? process.name : command).substr(0, 300))));
    request_.write(thread_states(process.pid));
    // The answer to a signal is in the log like all output. Tools need more rights, and gdb reads the symbols
    // of libtorch for many seconds.
    if (ask_process(process.pid) && keep(main_thread_frames(request_.take_output()))) return;
    ToolOutput tool = read_stack(process.pid, deadline_);
    if (!tool.problem.empty()) request_.write(format("  {}\n", tool.problem));
    request_.write(tool.text);
    (void)keep(main_thread_frames(tool.text));
  }

  // The training is the outermost process that does not only wait for a child.
  bool keep(const std::vector<Frame>& frames) {
    std::string& kept = waits_for_child(frames) ? launcher_summary_ : summary_;
    if (kept.empty()) kept = summarize(frames);
    return !frames.empty();
  }

  const StackRequest& request_;
  const Deadline deadline_;
  std::size_t written_ = 0;
  std::string summary_;
  std::string launcher_summary_;
};

}  // namespace

std::string write_stacks(const StackRequest& request, Deadline deadline) {
  return StackReport(request, deadline).run();
}

}  // namespace stoker::rank
