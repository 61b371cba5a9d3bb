#include "farm/run/task_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "farm/list/command_line.h"
#include "rank/process/process_tree.h"

namespace stoker::farm {

namespace {

constexpr std::size_t kStackBytes = 64U << 10;
const std::string kPosixShell = "/bin/sh";
constexpr std::size_t kMostPrograms = 10'000;
constexpr std::string_view kFunctionPrefix = "BASH_FUNC_";
constexpr Duration kOrphanWait = std::chrono::seconds(10);

// What the child reads between clone and exec. It shares the memory of its parent, which waits.
struct TaskPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  int null_fd;
  int output_fd;
  pid_t parent;
  const cpu_set_t* cores;  // null: all
  int exec_errno;
};

// Only async-signal-safe calls, and no change of memory but `exec_errno`.
int run_child(void* argument) {
  auto* const plan = static_cast<TaskPlan*>(argument);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan->parent) ::_exit(128 + SIGKILL);
  ::setpgid(0, 0);
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD})
    ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan->cores != nullptr) ::sched_setaffinity(0, sizeof *plan->cores, plan->cores);
  ::dup2(plan->null_fd, 0);
  ::dup2(plan->output_fd, 1);
  ::dup2(plan->output_fd, 2);
  ::execve(plan->program, plan->argv, plan->envp);
  plan->exec_errno = errno;
  ::_exit(127);
}

std::vector<char*> to_pointers(const std::vector<std::string>& texts, const std::vector<std::string>& more) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + more.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  for (const std::string& text : more) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
  };
  return !name.empty() && (name[0] < '0' || name[0] > '9') &&
         std::all_of(name.begin(), name.end(), is_letter);
}

bool is_program(const std::string& path) { return ::access(path.c_str(), X_OK) == 0 && !folder_exists(path); }

std::string first_in_path(std::string_view path, std::string_view name) {
  for (std::string_view folder : split(path, ':')) {
    std::string candidate = (Path(folder.empty() ? "." : folder) / name).string();
    if (is_program(candidate)) return candidate;
  }
  return "";
}

// A number after a key in a file of /proc, in KiB.
std::uint64_t kib_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = trim(text.substr(at + key.size()));
  std::uint64_t value = 0;
  return parse_number(rest.substr(0, rest.find(' ')), &value) ? value : 0;
}

std::uint64_t resident_bytes(pid_t pid) {
  const auto text = read_pseudo_file(format("/proc/{}/statm", pid));
  if (!text) return 0;
  const auto fields = split(*text, ' ');
  std::uint64_t pages = 0;
  if (fields.size() < 2 || !parse_number(fields[1], &pages)) return 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t proportional_bytes(pid_t pid) {
  const auto text = read_pseudo_file(format("/proc/{}/smaps_rollup", pid));
  return text ? kib_after(*text, "\nPss:") << 10 : resident_bytes(pid);
}

bool belongs_to(pid_t pid, const std::vector<std::string>& worker_ids) {
  const auto text = read_pseudo_file(format("/proc/{}/environ", pid));
  if (!text) return false;
  const std::string name = std::string(kWorkerVariable) + "=";
  for (std::string_view entry : split(*text, '\0')) {
    if (entry.starts_with(name))
      return std::find(worker_ids.begin(), worker_ids.end(), entry.substr(name.size())) != worker_ids.end();
  }
  return false;
}

std::vector<pid_t> processes_of_workers(const std::vector<std::string>& worker_ids) {
  std::vector<pid_t> found;
  const auto names = list_directory("/proc");
  if (!names) return found;
  for (const std::string& name : *names) {
    std::int64_t pid = 0;
    if (parse_number(name, &pid) && pid != ::getpid() && belongs_to(static_cast<pid_t>(pid), worker_ids))
      found.push_back(static_cast<pid_t>(pid));
  }
  return found;
}

}  // namespace

Result<TaskStarter> TaskStarter::create(const Environment& environment,
                                        const std::vector<std::string>& replaced, TaskWrapper wrapper) {
  TaskStarter starter;
  starter.wrapper_ = std::move(wrapper);
  for (const auto& [name, value] : environment) {
    if (name == "PATH") starter.path_ = value;
    // dash drops names that are no variables: exported functions of bash, such as `module`. Bash also reads
    // the file BASH_ENV.
    if (!is_variable_name(name) || name == "BASH_ENV") starter.may_use_sh_ = false;
    if (name.starts_with(kFunctionPrefix) && name.ends_with("%%"))
      starter.functions_.push_back(
          name.substr(kFunctionPrefix.size(), name.size() - kFunctionPrefix.size() - 2));
    if (std::find(replaced.begin(), replaced.end(), name) == replaced.end())
      starter.environment_.push_back(name + "=" + value);
  }
  if (starter.path_.empty()) starter.path_ = "/usr/bin:/bin";
  starter.shell_ = first_in_path(starter.path_, "bash");
  if (starter.shell_.empty()) starter.shell_ = kPosixShell;
  starter.null_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!starter.null_) return posix_error("/dev/null", errno);
  starter.stack_.resize(kStackBytes);
  return starter;
}

const std::string* TaskStarter::find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return &name;
  if (const auto known = programs_.find(name); known != programs_.end()) return &known->second;
  if (programs_.size() > kMostPrograms) programs_.clear();
  std::string found = first_in_path(path_, name);
  if (found.empty()) return nullptr;
  return &programs_.emplace(name, std::move(found)).first->second;
}

// A function of bash comes before a program of that name.
std::optional<std::vector<std::string>> TaskStarter::words_without_shell(const std::string& line) const {
  auto words = plain_words(line);
  if (words && std::find(functions_.begin(), functions_.end(), (*words)[0]) != functions_.end())
    return std::nullopt;
  return words;
}

Result<pid_t> TaskStarter::spawn(const char* program, const std::vector<std::string>& words,
                                 const TaskCall& call, int* exec_errno) {
  const std::vector<char*> argv = to_pointers(words, {});
  const std::vector<char*> envp = to_pointers(environment_, call.variables);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : call.cores) CPU_SET(core, &cores);
  TaskPlan plan{program,
                argv.data(),
                envp.data(),
                null_.get(),
                call.output_fd,
                ::getpid(),
                call.cores.empty() ? nullptr : &cores,
                0};
  // A signal handler must not run in the child, which shares this memory.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid =
      ::clone(run_child, stack_.data() + stack_.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return posix_error("clone", error);
  *exec_errno = plan.exec_errno;
  return pid;
}

Result<pid_t> TaskStarter::start_wrapped(const TaskCall& call) {
  const std::string* const program = find_program(wrapper_.words[0]);
  if (program == nullptr) return not_found("{}: not in PATH", wrapper_.words[0]);
  std::vector<std::string> words = wrapper_.words;
  const auto own =
      plain_words(call.command).value_or(std::vector<std::string>{wrapper_.shell, "-c", call.command});
  words.insert(words.end(), own.begin(), own.end());
  int exec_errno = 0;
  STOKER_ASSIGN_OR_RETURN(pid, spawn(program->c_str(), words, call, &exec_errno));
  if (exec_errno == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return posix_error(*program, exec_errno);
}

Result<pid_t> TaskStarter::start(const TaskCall& call) {
  if (!wrapper_.words.empty()) return start_wrapped(call);
  int exec_errno = 0;
  if (const auto words = words_without_shell(call.command)) {
    const std::string* const program = find_program((*words)[0]);
    if (program != nullptr) {
      STOKER_ASSIGN_OR_RETURN(pid, spawn(program->c_str(), *words, call, &exec_errno));
      if (exec_errno == 0) return pid;
      ::waitpid(pid, nullptr, 0);
    }
  }
  // The shell also runs scripts without an interpreter line, and reports why a program cannot be executed.
  const std::string& shell = may_use_sh_ && is_portable_line(call.command) ? kPosixShell : shell_;
  STOKER_ASSIGN_OR_RETURN(pid, spawn(shell.c_str(), {shell, "-c", call.command}, call, &exec_errno));
  if (exec_errno == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return posix_error(shell, exec_errno);
}

ByteCount own_peak() {
  const auto text = read_pseudo_file("/proc/self/status");
  return {text ? kib_after(*text, "\nVmHWM:") << 10 : 0};
}

ByteCount memory_of(pid_t task, ByteCount limit) {
  const std::vector<rank::ProcessFacts> processes = rank::descendants(task);
  std::uint64_t resident = resident_bytes(task);
  for (const rank::ProcessFacts& process : processes) resident += resident_bytes(process.pid);
  if (resident <= limit.value) return {resident};
  std::uint64_t proportional = proportional_bytes(task);
  for (const rank::ProcessFacts& process : processes) proportional += proportional_bytes(process.pid);
  return {proportional};
}

void signal_group(pid_t task, int signal) {
  ::kill(-task, signal);
  if (signal != SIGKILL) ::kill(-task, SIGCONT);
}

void end_orphans(const std::vector<std::string>& worker_ids) {
  if (worker_ids.empty()) return;
  const Deadline deadline = Deadline::after(kOrphanWait);
  for (std::vector<pid_t> left = processes_of_workers(worker_ids); !left.empty() && !deadline.passed();
       left = processes_of_workers(worker_ids)) {
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    RealClock().sleep(std::chrono::milliseconds(10));
  }
}

}  // namespace stoker::farm
