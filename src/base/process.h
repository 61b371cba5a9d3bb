// Child processes: set up before exec, awaited by pidfd with a deadline. Used by rank, launch, lab and all
// rooms that run programs. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "base/file.h"
#include "stoker/time.h"

namespace stoker {

/// One "NAME=value" list.
using Environment = std::vector<std::pair<std::string, std::string>>;
/// This process's environment.
Environment current_environment();
/// The value of `name` in this process's environment, or nullopt. An empty value is a value.
std::optional<std::string> environment_value(const std::string& name);

/// Sets or replaces one variable.
void set_variable(Environment& environment, std::string_view name, std::string value);
void unset_variable(Environment& environment, std::string_view name);
/// The value, or "" when it is not set.
std::string variable(const Environment& environment, std::string_view name);

/// The process group of a child.
enum class Group { inherit, own };

/// How to start a child.
struct Command {
  std::vector<std::string> argv;  ///< argv[0] is resolved by PATH of `environment` unless it contains a slash
  std::optional<Environment> environment;  ///< the whole environment; nullopt: inherited
  Path directory;                          ///< working directory; empty: inherited
  int stdin_fd = -1;                       ///< -1: /dev/null
  int stdout_fd = -1;                      ///< -1: inherited
  int stderr_fd = -1;                      ///< -1: inherited
  Group group = Group::inherit;
  int parent_death_signal = 0;  ///< sent to the child when the starting thread exits; 0: none
};

/// The exit status of a child.
struct Exit {
  int code = 0;    ///< exit code, if `signal` is 0
  int signal = 0;  ///< the signal that killed it
  bool ok() const { return code == 0 && signal == 0; }
  /// As in a shell: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};
/// "exit code 7", "killed by signal 9 (SIGKILL)".
std::string to_text(const Exit& exit);
/// "SIGKILL", or "signal 77" for a signal without a name.
std::string signal_name(int signal);

/// Programs that this process starts do not inherit file descriptors from `first` on. Allocates nothing:
/// callable between fork and exec.
void set_close_on_exec_from(int first);

/// A child process. The destructor does not stop a running child.
class Child {
 public:
  /// Starts the child. NotFound or Invalid with argv[0] if it cannot be executed. Never returns a child that
  /// exits with 127 for that reason.
  static Result<Child> spawn(const Command& command);

  pid_t pid() const { return pid_; }
  /// Readable after the child has exited: for poll(2).
  int pidfd() const { return pidfd_.get(); }
  /// Waits for the exit and reaps the child, or Timeout. Later calls return the same status.
  Result<Exit> wait(Deadline deadline);
  /// The exit status if the child has exited.
  std::optional<Exit> poll();
  /// Sends a signal through the pidfd, so never to a reused pid. Ok if the child has exited.
  Status signal(int signal);

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  std::optional<Exit> exit_;
};

/// NotFound if the interpreter of the `#!` line does not exist, for example because of Windows line ends. Ok
/// for every other file. `name` is the name in messages.
Status check_shebang(const Path& program, std::string_view name);

/// Output of a program.
struct Captured {
  Exit exit;
  std::string out;
  std::string err;
};
/// Runs a program with /dev/null as input and captures its output, at most `limit` bytes per stream (the rest
/// is discarded). Kills it at the deadline: Timeout with argv[0]; `partial` then receives the output until
/// there.
Result<Captured> run_program(const Command& command, Deadline deadline, ByteCount limit = 16_MiB,
                             Captured* partial = nullptr);

/// Replaces this process by the command, which is searched in PATH of `environment`. Returns only errors.
/// REQUIRES: `command` is not empty.
Status exec_command(const std::vector<std::string>& command, const Environment& environment);

/// A pipe, both ends close-on-exec.
struct Pipe {
  Fd read;
  Fd write;
  static Result<Pipe> create();
};

}  // namespace stoker
