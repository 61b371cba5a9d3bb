// Output of the trainer. Created by main, used by the whole trainer. No libtorch.
#pragma once

#include <string_view>

namespace stoker::train {

/// Only rank 0 logs, except for warnings. One thread, except for warnings.
class TrainerLog {
 public:
  virtual ~TrainerLog() = default;
  /// A progress line; the next one may overwrite it.
  virtual void progress(std::string_view line) = 0;
  /// A line that stays.
  virtual void info(std::string_view line) = 0;
  /// A problem that does not end the training. Any thread.
  virtual void warn(std::string_view line) = 0;
};

}  // namespace stoker::train
