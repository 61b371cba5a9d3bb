// Values of YAML nodes with their errors. Used by the readers of this folder. Functions return a default
// after an error, so that reading continues at the next one. Thread-compatible.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "config/source.h"
#include "config/yaml.h"
#include "sweep/space/expression.h"

namespace stoker::sweep {

/// Reads the nodes of one document.
class NodeValues {
 public:
  NodeValues(std::shared_ptr<const config::Source> source, config::ErrorList& errors)
      : source_(std::move(source)), errors_(errors) {}

  void fail(const config::Node& node, std::string_view fact) { errors_.add({source_, node.offset}, fact); }
  void fail(const config::Member& member, std::string_view fact) {
    errors_.add({source_, member.offset}, fact);
  }

  /// An error for each key of the map that is not listed; one if the node is no map.
  void expect_keys(const config::Node& map, std::span<const std::string_view> keys);
  /// A scalar as YAML's core schema reads it: true, 12, 0.1, else text; quoted: text.
  Value value(const config::Node& node);
  /// A list of at least one scalar; a scalar is a list of one.
  std::vector<Value> values(const config::Node& node);
  std::string text(const config::Node& node);
  double number(const config::Node& node);
  /// At least `least`.
  std::int64_t whole(const config::Node& node, std::int64_t least = 0);
  bool boolean(const config::Node& node);
  template <typename Enum>
  Enum choice(const config::Node& node) {
    if (const auto found = enum_named<Enum>(node.text); found && node.kind == config::Node::Kind::scalar)
      return *found;
    const auto names = names_of(Enum{});
    fail(node, format("'{}' is unknown{}", printable(node.text), suggestion(node.text, std::span(names))));
    return Enum{};
  }

 private:
  std::shared_ptr<const config::Source> source_;
  config::ErrorList& errors_;
};

}  // namespace stoker::sweep
