// The command `stoker`: sets up the process, prints its version or calls dispatch().
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_code.h"
#include "base/process.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "launch/remote/serve.h"

namespace stoker {

// The commit that the build found, or "". cmake/commit.cmake writes its source: a new commit compiles only
// that.
std::string_view commit();

}  // namespace stoker

namespace {

int execute(const std::vector<std::string>& words, stoker::cli::Output& out) {
  if (words.empty() || words[0] != "--version") return stoker::cli::dispatch(words, out);
  out.line("stoker {}", stoker::build_description(stoker::commit()));
  return stoker::exit_code::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace stoker::cli;
  // `stoker ... | head` exits quietly instead of failing at the next write.
  std::signal(SIGPIPE, SIG_DFL);
  const std::vector<std::string> words(argv + 1, argv + argc);
  Output out(wants_json(words) ? OutputMode::json : OutputMode::text, stdout, stderr);
  if (const auto options = stoker::environment_value(stoker::launch::kHostOptionsVariable)) {
    out.show_commands_with(stoker::printable(*options));
    ::unsetenv(stoker::launch::kHostOptionsVariable);  // what this process starts is not called from there
  }
  try {
    const int code = execute(words, out);
    if (std::fflush(stdout) != 0 && code == stoker::exit_code::kOk) {
      return out.fail(stoker::posix_error("standard output", errno));
    }
    return code;
  } catch (const std::exception& error) {
    return out.fail(stoker::internal("stoker: {}", error.what()).cure("please report this and what you ran"));
  }
}
