// Expands ${key.path} in values. Used by Layers::resolve only. Thread-compatible.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/layers.h"

namespace stoker::config {

/// A reference names a scalar setting or a variable. `$${` is a literal "${". Settings may refer to each
/// other without cycles.
class Expansion {
 public:
  /// REQUIRES: `layers` outlives it and does not change.
  explicit Expansion(const Layers& layers) : layers_(layers) {}

  /// The value of `path` with all references expanded, or nullopt after adding an error. A command line is
  /// split first, so that a value with blanks stays one argument.
  std::optional<Node> expand(const std::string& path);

 private:
  std::optional<std::string> expand_text(const Node& node, const Layers::Assignment& holder);
  std::optional<std::string> value_of(std::string_view name, const Origin& at);
  Origin locate(std::string_view reference, const Node& node, const Layers::Assignment& holder) const;

  const Layers& layers_;
  std::map<std::string, std::optional<Node>> done_;
  std::vector<std::string> open_;  // keys being expanded
};

}  // namespace stoker::config
