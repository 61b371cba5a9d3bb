// Expands ${key.path} in values. Used by Layers::resolve alone. Thread-compatible.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/layers.h"

namespace stoker::config {

/// References name a setting of one value or a variable; `$${` is a literal "${". A setting may refer to
/// others, not to itself by any way round.
class Expansion {
 public:
  /// REQUIRES: `layers` outlives it and does not change.
  explicit Expansion(const Layers& layers) : layers_(layers) {}

  /// The value of an assigned `path` with all references replaced; nothing if that failed, and then the
  /// mistake is told. A command line is split first, so that a value with blanks stays one argument.
  std::optional<Node> expand(const std::string& path);

 private:
  std::optional<std::string> expand_text(const Node& node, const Layers::Assignment& holder);
  std::optional<std::string> value_of(std::string_view name, const Origin& at);
  Origin locate(std::string_view reference, const Node& node, const Layers::Assignment& holder) const;

  const Layers& layers_;
  std::map<std::string, std::optional<Node>> done_;
  std::vector<std::string> open_;  // the chain of keys being expanded
};

}  // namespace stoker::config
