#include "cli/data/threads.h"

#include <algorithm>
#include <thread>

namespace stoker::cli {

void ThreadsOption::declare(Arguments& arguments, std::string_view what) {
  arguments.option("-j,--jobs", &requested_, "N", what);
}

Result<int> ThreadsOption::count(std::string_view command) const {
  if (!requested_) return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  if (*requested_ < 1 || *requested_ > 256)
    return invalid("{}: -j,--jobs: {} is not between 1 and 256", command, *requested_);
  return static_cast<int>(*requested_);
}

}  // namespace stoker::cli
