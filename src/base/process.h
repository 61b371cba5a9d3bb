// Child processes: started with everything that must be right before exec, awaited by pidfd with a deadline.
// Used by rank, launch, lab and wherever a program is asked for its output. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/time.h"

namespace stoker {

/// One "NAME=value" list.
using Environment = std::vector<std::pair<std::string, std::string>>;
/// This process's environment.
Environment current_environment();
/// The value of `name` in this process's environment, or nothing. An empty value is a value.
std::optional<std::string> environment_value(const std::string& name);

/// Which process group a child gets.
enum class Group { inherit, own };

/// How to start a child.
struct Command {
  std::vector<std::string> argv;  ///< argv[0] is looked up in PATH of `environment` unless it has a slash
  std::optional<Environment> environment;  ///< the whole environment; this process's if not set
  Path directory;                          ///< where it starts; this process's if empty
  int stdin_fd = -1;                       ///< -1: /dev/null
  int stdout_fd = -1;                      ///< -1: inherited
  int stderr_fd = -1;                      ///< -1: inherited
  Group group = Group::inherit;
  int parent_death_signal = 0;  ///< sent to the child when the thread that started it ends; 0: none
};

/// How a child ended.
struct Exit {
  int code = 0;    ///< exit code, if `signal` is 0
  int signal = 0;  ///< what killed it
  bool ok() const { return code == 0 && signal == 0; }
  /// As a shell gives it: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};
/// "exit code 7", "killed by signal 9 (SIGKILL)".
std::string to_text(const Exit& exit);
/// "SIGKILL", or "signal 77" where it has no name.
std::string signal_name(int signal);

/// A started child. Destroying a Child that runs leaves it running: end it first.
class Child {
 public:
  /// Starts it. Fails with NotFound or Invalid naming argv[0] if it cannot be executed, and not with a child
  /// that exits 127.
  static Result<Child> spawn(const Command& command);

  pid_t pid() const { return pid_; }
  /// Readable when the child has ended: for poll(2).
  int pidfd() const { return pidfd_.get(); }
  /// The end of the child, or Timeout. Reaps it; later calls give the same answer.
  Result<Exit> wait(Deadline deadline);
  /// How it ended if it has.
  std::optional<Exit> poll();
  /// kill(2) through the pidfd, so never another process's pid. Ok if it has ended already.
  Status signal(int signal);

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  std::optional<Exit> exit_;
};

/// NotFound when the `#!` line of a program asks for what is not there, as with Windows line ends; Ok for
/// every other file. `name` is what people call it.
Status check_first_line(const Path& program, std::string_view name);

/// What a program printed.
struct Captured {
  Exit exit;
  std::string out;
  std::string err;
};
/// Runs a program to its end with /dev/null as input and collects what it prints, at most `limit` each (the
/// rest is read and dropped). At the deadline it is killed: Timeout naming argv[0].
Result<Captured> run_program(const Command& command, Deadline deadline, ByteCount limit = 16_MiB);

/// A pipe, both ends close-on-exec.
struct Pipe {
  Fd read;
  Fd write;
  static Result<Pipe> create();
};

}  // namespace stoker
