// One text file that somebody else writes, read line by line as it grows: the log of a batch script that is
// no run of ours. An object belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace stoker::observe {

class TextFollower {
 public:
  /// Called with a line, without its end. Lines over 1 MiB come in pieces.
  using Sink = std::function<void(std::string_view line)>;

  explicit TextFollower(Path path) : path_(std::move(path)) {}

  /// Gives every complete line that has come since the last call; none while there is no such file.
  Status read_new(const Sink& sink);
  /// Gives what is left without a line end.
  void finish(const Sink& sink);

 private:
  Path path_;
  std::uint64_t offset_ = 0;
  std::string partial_;
};

}  // namespace stoker::observe
