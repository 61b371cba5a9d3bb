// The command `stoker`: sets up the process and calls dispatch().
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "cli/commands.h"
#include "cli/output.h"

int main(int argc, char** argv) {
  using namespace stoker::cli;
  // `stoker ... | head` exits quietly instead of failing at the next write.
  std::signal(SIGPIPE, SIG_DFL);
  const std::vector<std::string> words(argv + 1, argv + argc);
  Output out(wants_json(words) ? OutputMode::json : OutputMode::text, stdout, stderr);
  try {
    const int code = dispatch(words, out);
    if (std::fflush(stdout) != 0 && code == stoker::exit_code::kOk) {
      return out.fail(stoker::posix_error("standard output", errno));
    }
    return code;
  } catch (const std::exception& error) {
    return out.fail(stoker::internal("stoker: {}", error.what()).cure("please report this and what you ran"));
  }
}
