// A text file that a different process writes, read line by line as it grows: the log of a batch script
// without a run. An object belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker::observe {

class TextFollower {
 public:
  /// Called with a line, without the newline. Lines longer than 1 MiB arrive in pieces.
  using Sink = std::function<void(std::string_view line)>;

  explicit TextFollower(Path path) : path_(std::move(path)) {}

  /// Passes on every complete line since the last call; none while the file does not exist.
  Status read_new(const Sink& sink);
  /// Passes on the remaining incomplete line.
  void finish(const Sink& sink);

 private:
  Path path_;
  std::uint64_t offset_ = 0;
  std::string partial_;
};

}  // namespace stoker::observe
