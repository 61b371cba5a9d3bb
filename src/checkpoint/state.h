// The small values that travel with a checkpoint: step, epoch, position, seeds, learning rate, generator
// states. A map from names to typed values, stored as JSON so that people can read it. Thread-compatible
// value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace stoker::checkpoint {

/// Names to values. What is read back compares equal to what was set: floating point to the last bit,
/// not-a-number and infinities included.
class State {
 public:
  using Bytes = std::vector<std::byte>;
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Bytes>;

  /// Sets or replaces. A non-negative signed integer is kept as an unsigned one: the file cannot tell them
  /// apart.
  void set(std::string name, Value value);

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  bool empty() const { return values_.empty(); }
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

  /// The value of that name. not_found "state: no value 'epoch'", or invalid "state: 'epoch' is text, not an
  /// integer" when it is of another kind or does not fit.
  Result<bool> boolean(std::string_view name) const;
  Result<std::int64_t> integer(std::string_view name) const;
  Result<std::uint64_t> natural(std::string_view name) const;
  /// Takes an integer too, when a double holds it exactly.
  Result<double> number(std::string_view name) const;
  Result<std::string> text(std::string_view name) const;
  Result<Bytes> bytes(std::string_view name) const;

  /// As a JSON object; parse() gives the same state back.
  std::string to_json() const;
  /// Corrupt "<subject>: ..." when the text is not what to_json() writes.
  static Result<State> parse(std::string_view subject, std::string_view json);

  bool operator==(const State&) const = default;

 private:
  Result<Value> find(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace stoker::checkpoint
