// Strict YAML as a small tree with the exact place of every key and value. Used by this room's layers and by
// whoever reads a YAML file people write. What is refused and why: docs/rooms/config.md. Thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/source.h"

namespace stoker::config {

struct Member;

/// A value: nothing, text, a list or a map. Offsets are bytes of the document's source.
struct Node {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  bool is_quoted = false;  ///< in quotes or a block text: never a number, never true or false
  std::string text;        ///< of a scalar, unquoted
  std::size_t offset = 0;  ///< where it starts
  std::size_t end = 0;     ///< just behind it
  std::vector<Node> items;
  std::vector<Member> members;  ///< in the order written, no key twice

  /// The value of `key` in a map, or nothing.
  const Node* find(std::string_view key) const;
};

/// One `key: value` of a map.
struct Member {
  std::string key;
  std::size_t offset = 0;  ///< of the key
  Node value;
};

/// What a text may cost before it is refused.
struct Limits {
  std::size_t bytes = 1'000'000;
  std::size_t depth = 32;
  std::size_t nodes = 20'000;              ///< after aliases are copied
  std::size_t expanded_bytes = 4'000'000;  ///< of all texts, after aliases are copied
};

/// A parsed text.
struct Document {
  std::shared_ptr<const Source> source;  ///< shared with the origins of its values
  Node root;
};

/// The tree of `source`, or nothing when it cannot be read at all. Mistakes go to `mistakes`: a syntax error
/// ends the reading, a duplicate key does not (the first one counts).
std::optional<Node> parse_yaml(const std::shared_ptr<const Source>& source, Mistakes& mistakes,
                               const Limits& limits = {});

/// The text of a file that people write. Refuses folders, devices and pipes, and files over `limits.bytes`.
Result<std::string> read_config_file(const Path& path, const Limits& limits = {});

}  // namespace stoker::config
