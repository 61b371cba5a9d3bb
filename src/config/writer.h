// Writes settings as a YAML file that reads back the same, and settings' declarations as a table. Used by
// rooms that store or document their settings. Thread-compatible.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "config/setting.h"

namespace stoker::config {

/// Collects values by key path; keys with a common beginning are nested, in the order added.
/// REQUIRES: keys of one map are added one after the other.
class YamlWriter {
 public:
  /// `comment` goes behind the value; may be empty.
  void put(std::string_view path, const Value& value, std::string_view comment = "");
  std::string text() const;

 private:
  struct Line {
    std::string path;
    std::string value;
    std::string comment;
  };
  std::vector<Line> lines_;
};

/// Every setting for a terminal: key, meaning, type, range, default.
std::string text_table(const Schema& schema);

}  // namespace stoker::config
