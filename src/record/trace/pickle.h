// Reads pickles of plain values: dictionaries, lists, tuples, texts and numbers. Opcodes that import, call or
// build an object are refused, so a pickle can run no code. Used for the dumps of torch's flight recorder.
// Thread-compatible: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "stoker/status.h"

namespace stoker::record {

/// The values of one pickle. Texts are views of its bytes, which must outlive it. Values that the pickle
/// refers to several times are stored once, and may contain themselves.
class Pickle {
 public:
  /// Number of a value.
  using Index = std::uint32_t;

  struct List {
    std::vector<Index> items;  ///< of a list or a tuple
  };
  struct Dictionary {
    std::vector<Index> pairs;  ///< key, value, key, value, ...
  };
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string_view, List, Dictionary>;

  /// Parses protocols 2 to 5. Corrupt with `name` and the position for bytes that are no pickle, for other
  /// opcodes, for numbers over 64 bits and for more than 8 Mi values.
  static Result<Pickle> parse(std::string_view name, std::span<const std::byte> bytes);

  Index root() const { return root_; }
  const Value& at(Index index) const { return values_[index]; }

  /// The value of a text key; nothing if `index` is no dictionary, or has no such key.
  std::optional<Index> find(Index index, std::string_view key) const;
  /// The same, if it has that type.
  template <typename T>
  const T* find_as(Index index, std::string_view key) const {
    const auto found = find(index, key);
    return found ? std::get_if<T>(&at(*found)) : nullptr;
  }

 private:
  friend class PickleParser;
  std::vector<Value> values_;
  Index root_ = 0;
};

}  // namespace stoker::record
