// stoker-train: one rank of the built-in trainer. docs/commands/train.md.

#include <atomic>
#include <cstdio>
#include <string_view>
#include <unistd.h>

#include "base/process.h"
#include "net/port.h"
#include "torch/trainer/command_line.h"
#include "torch/trainer/training.h"

namespace {

using namespace stoker::torch;

class Terminal final : public Voice {
 public:
  void progress(std::string_view line) override {
    if (!rewrites_) return say(line);
    std::printf("\r\033[K%.*s", static_cast<int>(line.size()), line.data());
    std::fflush(stdout);
    is_open_ = true;
  }
  void say(std::string_view line) override {
    std::printf("%s%.*s\n", is_open_ ? "\r\033[K" : "", static_cast<int>(line.size()), line.data());
    std::fflush(stdout);
    is_open_ = false;
  }
  void warn(std::string_view line) override {
    std::fprintf(stderr, "%s%.*s\n", is_open_ ? "\n" : "", static_cast<int>(line.size()), line.data());
    is_open_ = false;
  }

 private:
  const bool rewrites_ = ::isatty(STDOUT_FILENO) == 1;
  std::atomic<bool> is_open_{false};
};

}  // namespace

int main(int argc, char** argv) {
  // libtorch's store asks for the name of every address that comes to it, only to show it, and waits for
  // seconds where DNS is silent. The one name that a rank may need is where they meet.
  const auto meeting = stoker::environment_value("MASTER_ADDR");
  if (!meeting || stoker::net::is_numeric_address(*meeting)) (void)stoker::net::look_names_up_in_files();
  Terminal terminal;
  const int code = run_command_line({argv + 1, argv + argc}, terminal);
  std::fflush(nullptr);
  // libtorch's static destructors and gloo's threads have nothing left to save, and take up to a second.
  ::_exit(code);
}
