// Writes settings as YAML that parses back to the same values, and declarations as a table.
// Thread-compatible.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "config/setting.h"

namespace stoker::config {

/// Collects values by key path, in order. Common prefixes become nested maps. REQUIRES: the keys of one map
/// are added consecutively.
class YamlWriter {
 public:
  /// `comment` is written after the value; may be empty.
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

/// A table of all settings for a terminal: key, help, type, range, default.
std::string text_table(const Schema& schema);

}  // namespace stoker::config
