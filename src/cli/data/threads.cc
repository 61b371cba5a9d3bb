#include "cli/data/threads.h"

#include <algorithm>
#include <thread>

namespace stoker::cli {

void Threads::declare(Arguments& arguments, std::string_view what) {
  arguments.option("-j,--jobs", &asked_, "N", what);
}

Result<int> Threads::count(std::string_view command) const {
  if (!asked_) return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  if (*asked_ < 1 || *asked_ > 256)
    return invalid("{}: -j,--jobs: {} is not between 1 and 256", command, *asked_);
  return static_cast<int>(*asked_);
}

}  // namespace stoker::cli
