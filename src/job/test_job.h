// Job files in separate folders, for tests.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/file.h"
#include "job/job.h"

namespace stoker::job {

/// A job file in a separate folder.
class JobSandbox {
 public:
  Path write(std::string_view text, std::string_view name = "job.yaml") {
    const Path path = folder_ / name;
    EXPECT_TRUE(write_file(path, text).ok());
    return path;
  }
  Path operator/(std::string_view name) const { return folder_ / name; }
  Path folder() const { return folder_.path(); }

 private:
  TempDirectory folder_;
};

/// A minimal training.
inline constexpr std::string_view kTrain = R"(name: cifar
train: {model: cifar-resnet20, epochs: 5}
data:
  train: {source: packed, split: train}
  validation: {source: packed, split: test}
)";

/// The error of load, with the sandbox's folder shown as /box.
inline std::string errors_of(const JobSandbox& box, const Path& file, const LoadOptions& options = {}) {
  std::string text = load(file, options).status().to_string();
  const std::string folder = box.folder().string();
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
    text.replace(at, folder.size(), "/box");
  }
  return text;
}

inline std::string errors_of(std::string_view text, const LoadOptions& options = {}) {
  JobSandbox box;
  return errors_of(box, box.write(text), options);
}

}  // namespace stoker::job
