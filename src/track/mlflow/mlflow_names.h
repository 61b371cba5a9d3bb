// Names and texts within MLflow's limits. One thread.
#pragma once

#include <map>
#include <string>

#include "track/run/tracker.h"

namespace stoker::track {

inline constexpr std::size_t kLongestParam = 6000;
inline constexpr std::size_t kLongestTag = 5000;

/// `name` with the characters that every version of MLflow accepts, in at most 250 bytes.
std::string mlflow_key(const std::string& name);

/// Gives different names different keys, and reports each changed name once.
class MlflowKeys {
 public:
  explicit MlflowKeys(NoteSink note) : note_(std::move(note)) {}
  const std::string& key_of(const std::string& name);

 private:
  NoteSink note_;
  std::map<std::string, std::string> keys_;   // by name
  std::map<std::string, std::string> names_;  // by key
};

}  // namespace stoker::track
