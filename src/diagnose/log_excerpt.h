// The lines of a log that a scan keeps as an excerpt: the latest notable ones, and the last ones. Internal to
// this folder. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "diagnose/log_end.h"

namespace stoker::diagnose {

class LogExcerpt {
 public:
  /// Keeps a notable line, in place of the oldest one if there are too many.
  void add_notable(std::uint64_t line, std::string_view text);
  /// Keeps the last lines of a block that are not empty. They may report that the program finished, and show
  /// the end of a log without notable lines. `line`: the number of the block's last line.
  void add_block(std::string_view block, std::uint64_t line);

  /// The last lines of the log, in order.
  const std::deque<NotableLine>& last() const { return last_; }
  /// At most three lines as evidence, in order: the notable ones, the first lines of boxes, and the last
  /// ones.
  std::vector<NotableLine> evidence() const;

 private:
  std::deque<NotableLine> notable_;
  std::deque<NotableLine> last_;
};

}  // namespace stoker::diagnose
