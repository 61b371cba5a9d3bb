// Where the trainer's words go. Made by main, used by all of the trainer. No libtorch.
#pragma once

#include <string_view>

namespace stoker::torch {

/// Only rank 0 speaks, but for warnings. One thread, but for warnings.
class Voice {
 public:
  virtual ~Voice() = default;
  /// How far it is; the next one may take its place.
  virtual void progress(std::string_view line) = 0;
  /// Something to keep.
  virtual void say(std::string_view line) = 0;
  /// Something is wrong, and training goes on. Any thread.
  virtual void warn(std::string_view line) = 0;
};

}  // namespace stoker::torch
