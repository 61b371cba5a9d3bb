// Strict YAML as a small tree with the position of every key and value. Used by layers and by readers of
// user-written YAML. Thread-compatible.
//
// Refused: tags (they name types of a programming language), merge keys `<<` (they hide where a value is
// set), a second document, duplicate keys, text that is not UTF-8, control and invisible characters, tabs in
// the indentation, and more than 1 MB, 32 levels, 20 000 values or 4 MB of text with aliases copied (an alias
// could grow a small file without bound). Anchors and aliases are read. Positions count lines at line feeds
// and columns in characters, as editors do, whatever libyaml counts.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/source.h"
#include "stoker/status.h"

namespace stoker::config {

struct Member;

/// A value: null, scalar, list or map. Offsets are bytes of the source.
struct Node {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  bool is_quoted = false;  ///< quoted or a block scalar: neither a number nor a boolean
  std::string text;        ///< of a scalar, unquoted
  std::size_t offset = 0;  ///< where it starts
  std::size_t end = 0;     ///< first byte after it
  std::vector<Node> items;
  std::vector<Member> members;  ///< in source order, without duplicate keys

  /// The value of `key` in a map, or null.
  const Node* find(std::string_view key) const;
};

/// One `key: value` of a map.
struct Member {
  std::string key;
  std::size_t offset = 0;  ///< of the key
  Node value;
};

/// Size limits.
struct Limits {
  std::size_t bytes = 1'000'000;
  std::size_t depth = 32;
  std::size_t nodes = 20'000;              ///< after aliases are copied
  std::size_t expanded_bytes = 4'000'000;  ///< of all scalars, after aliases are copied
};

/// A parsed source.
struct Document {
  std::shared_ptr<const Source> source;  ///< shared with the origins of its values
  Node root;
};

/// The tree of `source`, or nullopt if it is unreadable. Adds errors to `errors`: a syntax error ends
/// parsing, a duplicate key does not (the first one counts).
std::optional<Node> parse_yaml(const std::shared_ptr<const Source>& source, ErrorList& errors,
                               const Limits& limits = {});

/// The text of a user-written file. Rejects folders, devices, pipes and files over `limits.bytes`.
Result<std::string> read_config_file(const Path& path, const Limits& limits = {});

}  // namespace stoker::config
