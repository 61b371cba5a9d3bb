#include "base/process.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace stoker {

Environment current_environment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const std::size_t equals = text.find('='); equals != std::string_view::npos && equals > 0) {
      variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

void set_variable(Environment& environment, std::string_view name, std::string value) {
  unset_variable(environment, name);
  environment.emplace_back(name, std::move(value));
}

void unset_variable(Environment& environment, std::string_view name) {
  std::erase_if(environment, [&](const auto& entry) { return entry.first == name; });
}

std::string variable(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return "";
}

std::optional<std::string> environment_value(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string signal_name(int signal) {
  // glibc has sigabbrev_np() only from 2.32 on.
  static constexpr std::pair<int, std::string_view> kNames[] = {
      {SIGHUP, "HUP"},   {SIGINT, "INT"},       {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},     {SIGTRAP, "TRAP"},
      {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},       {SIGFPE, "FPE"},   {SIGKILL, "KILL"},   {SIGUSR1, "USR1"},
      {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},     {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"},   {SIGTERM, "TERM"},
      {SIGCHLD, "CHLD"}, {SIGSTKFLT, "STKFLT"}, {SIGCONT, "CONT"}, {SIGSTOP, "STOP"},   {SIGTSTP, "TSTP"},
      {SIGTTIN, "TTIN"}, {SIGTTOU, "TTOU"},     {SIGURG, "URG"},   {SIGXCPU, "XCPU"},   {SIGXFSZ, "XFSZ"},
      {SIGPROF, "PROF"}, {SIGVTALRM, "VTALRM"}, {SIGPOLL, "POLL"}, {SIGWINCH, "WINCH"}, {SIGPWR, "PWR"},
      {SIGSYS, "SYS"}};
  const auto* found = std::ranges::find(kNames, signal, &std::pair<int, std::string_view>::first);
  return found == std::end(kNames) ? format("signal {}", signal) : format("SIG{}", found->second);
}

void set_close_on_exec_from(int first) {
  constexpr unsigned kCloseOnExec = 1U << 2;  // CLOSE_RANGE_CLOEXEC of Linux 5.11
  if (::syscall(SYS_close_range, first, ~0U, kCloseOnExec) == 0) return;
  const long limit = std::min<long>(::sysconf(_SC_OPEN_MAX), 1 << 20);
  for (int fd = first; fd < limit; ++fd) {
    if (const int flags = ::fcntl(fd, F_GETFD); flags >= 0) ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
}

std::string to_text(const Exit& exit) {
  if (exit.signal == 0) return format("exit code {}", exit.code);
  return format("killed by signal {} ({})", exit.signal, signal_name(exit.signal));
}

namespace {

std::string_view path_variable(const Command& command) {
  if (command.environment) {
    for (const auto& [name, value] : *command.environment) {
      if (name == "PATH") return value;
    }
    return "/usr/bin:/bin";
  }
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/usr/bin:/bin" : path;
}

// Like execvp, but with the child's PATH and working directory.
Result<std::string> find_program(const Command& command) {
  const std::string& name = command.argv[0];
  if (name.find('/') != std::string::npos) return name;
  for (std::string_view folder : split(path_variable(command), ':')) {
    const Path candidate = Path(folder.empty() ? "." : folder) / name;
    const Path from_here = command.directory.empty() ? candidate : command.directory / candidate;
    if (::access(from_here.c_str(), X_OK) == 0 && !folder_exists(from_here)) return candidate.string();
  }
  return not_found("{}: command not found in PATH", printable(name));
}

// Data for the child between fork and exec, where only async-signal-safe calls are allowed.
struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  const Command* command;
  int null_fd;
  int error_fd;
  pid_t parent;
};

void set_up_child(const ChildPlan& plan) {
  const Command& command = *plan.command;
  if (command.parent_death_signal != 0) {
    ::prctl(PR_SET_PDEATHSIG, command.parent_death_signal);
    if (::getppid() != plan.parent)
      ::_exit(128 + command.parent_death_signal);  // the parent exited before the prctl
  }
  if (command.group == Group::own) ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) ::signal(signal, SIG_DFL);
  ::dup2(command.stdin_fd >= 0 ? command.stdin_fd : plan.null_fd, 0);
  if (command.stdout_fd >= 0) ::dup2(command.stdout_fd, 1);
  if (command.stderr_fd >= 0) ::dup2(command.stderr_fd, 2);
  if (!command.directory.empty() && ::chdir(command.directory.c_str()) != 0) return;
  ::execve(plan.program, plan.argv, plan.envp);
}

// The text after `#!` in the first line, including the carriage return of a Windows line end.
std::string shebang_of(const Path& program) {
  constexpr std::size_t kLongest = 256;  // the kernel's limit
  const Fd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char buffer[kLongest];
  const ssize_t n = fd ? ::read(fd.get(), buffer, sizeof buffer) : -1;
  std::string_view line(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
  if (!line.starts_with("#!")) return "";
  line = line.substr(2, line.find('\n') - 2);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return std::string(line.substr(0, line.find_last_not_of(" \t") + 1));
}

// exec also returns ENOENT and EACCES for the interpreter or loader of the file.
Status exec_error(const Command& command, const std::string& program, int error) {
  const std::string name = printable(command.argv[0]);
  if (!command.directory.empty() && !folder_exists(command.directory))
    return posix_error(printable(command.directory.string()), error);
  const Path file = (command.directory / program).lexically_normal();
  if (folder_exists(file)) return invalid("{}: expected a program, got a folder", name);
  if (error != ENOENT || !path_exists(file)) return posix_error(name, error);
  STOKER_RETURN_IF_ERROR(check_shebang(file, name));
  if (!shebang_of(file).empty()) return posix_error(name, error);
  return not_found("{}: its dynamic loader does not exist", name)
      .cure("file {}", shell_quote(printable(file.string())));
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

Result<Child> Child::spawn(const Command& command) {
  STOKER_CHECK(!command.argv.empty());
  STOKER_ASSIGN_OR_RETURN(program, find_program(command));
  std::vector<std::string> arguments = command.argv;
  std::vector<std::string> variables;
  for (const auto& [name, value] : command.environment ? *command.environment : current_environment()) {
    variables.push_back(name + "=" + value);
  }
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(variables);
  STOKER_ASSIGN_OR_RETURN(error_pipe, Pipe::create());
  const Fd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const ChildPlan plan{program.c_str(),        argv.data(), envp.data(), &command, null_fd.get(),
                       error_pipe.write.get(), ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return posix_error("fork", errno);
  if (pid == 0) {
    set_up_child(plan);
    const int error = errno;
    (void)!::write(plan.error_fd, &error, sizeof error);
    ::_exit(127);
  }
  error_pipe.write.reset();
  Child child;
  child.pid_ = pid;
  child.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  int error = 0;
  ssize_t n = 0;
  while ((n = ::read(error_pipe.read.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (n == sizeof error) {
    ::waitpid(pid, nullptr, 0);
    return exec_error(command, program, error);
  }
  return child;
}

Status check_shebang(const Path& program, std::string_view name) {
  std::string asked = shebang_of(program);
  if (asked.ends_with('\r')) {
    asked.pop_back();
    return not_found(
               "{}: its first line names the interpreter '{}\\r', which does not exist: the file has Windows "
               "line ends",
               name, printable(asked))
        .cure("sed -i 's/\\r$//' {}", shell_quote(printable(program.string())));
  }
  const Path interpreter = asked.substr(0, asked.find_first_of(" \t"));
  if (interpreter.is_relative() || path_exists(interpreter)) return {};
  return not_found("{}: its first line names the interpreter '{}', which does not exist", name,
                   printable(interpreter.string()));
}

std::optional<Exit> Child::poll() {
  if (exit_) return exit_;
  int status = 0;
  const pid_t pid = ::waitpid(pid_, &status, WNOHANG);
  if (pid != pid_) return std::nullopt;
  exit_ = WIFSIGNALED(status) ? Exit{0, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
  return exit_;
}

Result<Exit> Child::wait(Deadline deadline) {
  for (;;) {
    if (const auto exit = poll()) return *exit;
    if (deadline.passed()) return timeout("process {}: still running at the deadline", pid_);
    pollfd waiting{pidfd_.get(), POLLIN, 0};
    ::poll(&waiting, 1, deadline.poll_ms());
  }
}

Status Child::signal(int signal) {
  if (exit_) return {};
  if (::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0) != 0 && errno != ESRCH) {
    return posix_error(format("process {}", pid_), errno);
  }
  return {};
}

Status exec_command(const std::vector<std::string>& command, const Environment& environment) {
  std::vector<std::string> words = command;
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> argv;
  std::vector<char*> envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  for (const auto& [name, value] : environment) {
    if (name == "PATH") ::setenv("PATH", value.c_str(), 1);
  }
  ::execvpe(argv[0], argv.data(), envp.data());
  return posix_error(printable(command.front()), errno);
}

Result<Pipe> Pipe::create() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return posix_error("pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

namespace {

// Reads the available bytes. Closes at end of file.
void drain(Fd& fd, std::string& text, ByteCount limit) {
  char buffer[65536];
  const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) {
    fd.reset();
    return;
  }
  const std::size_t room = limit.value - std::min<std::size_t>(limit.value, text.size());
  text.append(buffer, std::min<std::size_t>(room, static_cast<std::size_t>(n)));
}

}  // namespace

Result<Captured> run_program(const Command& command, Deadline deadline, ByteCount limit, Captured* partial) {
  STOKER_ASSIGN_OR_RETURN(out, Pipe::create());
  STOKER_ASSIGN_OR_RETURN(err, Pipe::create());
  Command redirected = command;
  redirected.stdout_fd = out.write.get();
  redirected.stderr_fd = err.write.get();
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(redirected));
  out.write.reset();
  err.write.reset();
  Captured captured;
  // The pidfd ends the loop even if a grandchild keeps the pipes open.
  while (out.read || err.read) {
    pollfd waiting[] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}, {child.pidfd(), POLLIN, 0}};
    const int ready = ::poll(waiting, 3, deadline.poll_ms());
    if (ready > 0 && waiting[0].revents != 0) drain(out.read, captured.out, limit);
    if (ready > 0 && waiting[1].revents != 0) drain(err.read, captured.err, limit);
    if (ready > 0 && waiting[0].revents == 0 && waiting[1].revents == 0 && waiting[2].revents != 0) break;
    if (deadline.passed()) {
      (void)child.signal(SIGKILL);
      (void)child.wait(Deadline::after(std::chrono::seconds(5)));
      if (partial != nullptr) *partial = std::move(captured);
      return timeout("{}: still running at the deadline", printable(command.argv[0]));
    }
  }
  STOKER_ASSIGN_OR_RETURN(exit, child.wait(deadline));
  captured.exit = exit;
  return captured;
}

}  // namespace stoker
