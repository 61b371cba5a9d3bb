// Small values of a checkpoint: step, epoch, position, seeds, learning rate, generator states. A map from
// names to typed values, stored as readable JSON. Thread-compatible value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stoker/status.h"

namespace stoker::checkpoint {

/// Names to values. Values survive the round trip exactly, floating point to the last bit, including NaN and
/// infinities.
class StateValues {
 public:
  using Bytes = std::vector<std::byte>;
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Bytes>;

  /// Sets or replaces. A non-negative signed integer is stored as unsigned: the file cannot distinguish them.
  void set(std::string name, Value value);

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  bool empty() const { return values_.empty(); }
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

  /// The value of that name. not_found "state: no value 'epoch'", or invalid "state: 'epoch' is text, not an
  /// integer" if it has another type or does not fit.
  Result<bool> boolean(std::string_view name) const;
  Result<std::int64_t> integer(std::string_view name) const;
  Result<std::uint64_t> natural(std::string_view name) const;
  /// Also accepts an integer that a double represents exactly.
  Result<double> number(std::string_view name) const;
  Result<std::string> text(std::string_view name) const;
  Result<Bytes> bytes(std::string_view name) const;

  /// As a JSON object; parse() returns the same state.
  std::string to_json() const;
  /// Corrupt "<subject>: ..." if the text is not an output of to_json().
  static Result<StateValues> parse(std::string_view subject, std::string_view json);

  bool operator==(const StateValues&) const = default;

 private:
  Result<Value> find(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace stoker::checkpoint
