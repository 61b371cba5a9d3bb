// For tests: plays GPUs with tests/programs/fake_nvml.c, which describes the lines. One thread.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/checkout_test.h"
#include "base/file.h"
#include "stoker/text.h"

namespace stoker::observe {

/// A compiled NVML library that plays the GPUs of `play`. The machine that runs unit tests has the compiler
/// that built them.
class FakeNvml {
 public:
  /// `flags`: for the compiler.
  explicit FakeNvml(std::string_view lines, std::string_view flags = "") {
    const Path source = in_checkout("tests/programs/fake_nvml.c");
    STOKER_CHECK(
        std::system(format("cc -w -shared -fPIC {} -o {} {}", flags, library(), source.string()).c_str()) ==
        0);
    play(lines);
  }
  ~FakeNvml() { ::unsetenv("FAKE_NVML"); }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  /// Replaces all lines.
  void play(std::string_view lines) const {
    const Path file = box_ / "gpus";
    STOKER_CHECK(write_file(file, lines).ok());
    ::setenv("FAKE_NVML", file.c_str(), 1);
  }
  std::string library() const { return (box_ / "libnvidia-ml.so.1").string(); }

 private:
  TempDirectory box_;
};

}  // namespace stoker::observe
