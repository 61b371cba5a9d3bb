// stoker-train: one rank of the built-in trainer. docs/commands/train.md.

#include <atomic>
#include <cstdio>
#include <string_view>
#include <unistd.h>

#include "base/process.h"
#include "net/port.h"
#include "train/trainer/command_line.h"
#include "train/trainer/training.h"

namespace {

using namespace stoker::train;

class TerminalLog final : public TrainerLog {
 public:
  void progress(std::string_view line) override {
    if (!rewrites_) return info(line);
    std::printf("\r\033[K%.*s", static_cast<int>(line.size()), line.data());
    std::fflush(stdout);
    is_open_ = true;
  }
  void info(std::string_view line) override {
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
  // libtorch's store resolves the name of every peer address for its log, and blocks for seconds if DNS does
  // not respond. The only name that a rank may need is MASTER_ADDR.
  const auto master_address = stoker::environment_value("MASTER_ADDR");
  if (!master_address || stoker::net::is_numeric_address(*master_address))
    (void)stoker::net::resolve_hosts_from_files_only();
  TerminalLog terminal;
  const int code = run_command_line({argv + 1, argv + argc}, terminal);
  std::fflush(nullptr);
  // Skip libtorch's static destructors and gloo's threads, which take up to a second and have nothing to
  // save.
  ::_exit(code);
}
