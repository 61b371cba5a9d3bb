#include "sweep/space/space.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace stoker::sweep {

namespace {

constexpr std::uint64_t kMostCounted = 1'000'000'000;

double half_step(const NumberRange& range) {
  return (range.is_integer && range.step == 0 ? 1 : range.step) / 2;
}

// The nearest decimal number with this many digits: 0.3 for 3 * 0.1, which is 0.30000000000000004.
double rounded_decimal(double number, int digits) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, number);
  return std::strtod(text.data(), nullptr);
}

// A number that a user can read and type: to a ten-millionth of the range.
double readable(const NumberRange& range, double number) {
  constexpr int kDigits = 7;
  if (range.is_log || number == 0) return rounded_decimal(number, kDigits);
  const double magnitude = std::log10(std::abs(number) / (range.high - range.low));
  return rounded_decimal(number, std::clamp(kDigits + static_cast<int>(std::ceil(magnitude)), 1, 17));
}

Status check_range(const std::string& name, const NumberRange& range) {
  if (!std::isfinite(range.low) || !std::isfinite(range.high) || !std::isfinite(range.step))
    return invalid("parameter {}: its range is not finite", name);
  if (range.low > range.high)
    return invalid("parameter {}: min {} is above max {}", name, range.low, range.high);
  if (range.is_log && range.low <= 0)
    return invalid("parameter {}: a logarithmic range needs a min above 0 ({})", name, range.low);
  if (range.is_integer && (range.low != std::floor(range.low) || range.high != std::floor(range.high)))
    return invalid("parameter {}: whole numbers from {} to {}", name, range.low, range.high)
        .cure("whole numbers as min and max, or type: float");
  constexpr double kExact = 9007199254740992;  // 2^53
  if (range.is_integer && (std::abs(range.low) > kExact || std::abs(range.high) > kExact))
    return invalid("parameter {}: whole numbers over 2^53 are not exact", name);
  if (range.step < 0) return invalid("parameter {}: step {} is negative", name, range.step);
  if (range.is_integer && range.step != std::floor(range.step))
    return invalid("parameter {}: step {} between whole numbers", name, range.step);
  if (range.is_log && range.step > 0 && !(range.is_integer && range.step == 1))
    return invalid("parameter {}: a logarithmic range has no step", name)
        .cure("values: [...] with the numbers wanted");
  return {};
}

Status check_choices(const std::string& name, const Choices& choices) {
  if (choices.values.empty()) return invalid("parameter {}: no values", name);
  for (std::size_t i = 0; i < choices.values.size(); ++i) {
    if (const auto number = number_of(choices.values[i]); number && !std::isfinite(*number))
      return invalid("parameter {}: value {} is not finite", name, to_text(choices.values[i]));
    for (std::size_t j = 0; j < i; ++j) {
      if (is_same_value(choices.values[i], choices.values[j]))
        return invalid("parameter {}: value {} is there twice", name, to_text(choices.values[i]));
    }
  }
  return {};
}

std::optional<std::size_t> index_of(const Choices& choices, const Value& value) {
  const auto found = std::find_if(choices.values.begin(), choices.values.end(),
                                  [&](const Value& choice) { return is_same_value(choice, value); });
  if (found == choices.values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - choices.values.begin());
}

// The coordinate of a value, or Invalid.
Result<double> coordinate_of(const Parameter& parameter, const Value& value) {
  if (const auto* const choices = std::get_if<Choices>(&parameter.domain)) {
    if (const auto index = index_of(*choices, value)) return static_cast<double>(*index);
    return invalid("parameter {}: {} is none of its values", parameter.name, to_text(value));
  }
  const NumberRange& range = std::get<NumberRange>(parameter.domain);
  const auto number = std::holds_alternative<bool>(value) ? std::nullopt : number_of(value);
  if (!number || !std::isfinite(*number))
    return invalid("parameter {}: {} is no number", parameter.name, to_text(value));
  if (!range.is_integer && range.step == 0) {
    if (*number >= range.low && *number <= range.high) return *number;
    return invalid("parameter {}: {} is outside its range", parameter.name, to_text(value));
  }
  // A decimal of a step may differ from the multiple in its last bits.
  const double nearest = number_at(range, position_of(range, std::clamp(*number, range.low, range.high)));
  if (std::abs(nearest - *number) > 1e-9 * std::max({1e-300, std::abs(range.low), std::abs(range.high)}))
    return invalid("parameter {}: {} is outside its range", parameter.name, to_text(value));
  return nearest;
}

Value value_at(const Parameter& parameter, double coordinate) {
  if (const auto* const choices = std::get_if<Choices>(&parameter.domain))
    return choices->values[static_cast<std::size_t>(coordinate)];
  if (std::get<NumberRange>(parameter.domain).is_integer) return static_cast<std::int64_t>(coordinate);
  return coordinate;
}

double normalized_coordinate(const Parameter& parameter, double coordinate) {
  if (const auto* const choices = std::get_if<Choices>(&parameter.domain)) {
    const double last = static_cast<double>(choices->values.size() - 1);
    return std::isnan(coordinate) ? 0 : std::clamp(std::floor(coordinate), 0.0, last);
  }
  const NumberRange& range = std::get<NumberRange>(parameter.domain);
  if (std::isnan(coordinate))
    return number_at(range, (density_interval(range).low + density_interval(range).high) / 2);
  const double inside = std::clamp(coordinate, range.low, range.high);
  return range.is_integer || range.step > 0 ? number_at(range, position_of(range, inside)) : inside;
}

// Parameters after the one that their condition names; a rest that never gets there is a circle.
Result<std::vector<std::size_t>> dependency_order(const std::vector<Parameter>& parameters) {
  std::vector<std::size_t> order;
  std::set<std::string_view> placed;
  while (order.size() < parameters.size()) {
    const std::size_t before = order.size();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& parameter = parameters[i];
      if (placed.contains(parameter.name)) continue;
      if (parameter.when && !placed.contains(parameter.when->parameter)) continue;
      order.push_back(i);
      placed.insert(parameter.name);
    }
    if (order.size() > before) continue;
    for (const Parameter& parameter : parameters) {
      if (!placed.contains(parameter.name))
        return invalid("parameter {}: its condition depends on itself (when: {})", parameter.name,
                       parameter.when->parameter);
    }
  }
  return order;
}

}  // namespace

std::string to_text(const Assignment& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += format("{}{}={}", text.empty() ? "" : " ", name, to_text(value));
  return text;
}

DensityInterval density_interval(const NumberRange& range) {
  const double half = half_step(range);
  if (range.is_log) return {std::log(range.low - half), std::log(range.high + half)};
  if (half == 0) return {range.low, range.high};
  const double last = range.low + 2 * half * std::floor((range.high - range.low) / (2 * half) + 1e-9);
  return {range.low - half, last + half};
}

double position_of(const NumberRange& range, double number) {
  return range.is_log ? std::log(number) : number;
}

double number_at(const NumberRange& range, double position) {
  double number = range.is_log ? std::exp(position) : position;
  const double step = 2 * half_step(range);
  if (step > 0) {
    const double last = std::floor((range.high - range.low) / step + 1e-9);
    number = range.low + step * std::clamp(std::round((number - range.low) / step), 0.0, last);
    if (!range.is_integer) number = rounded_decimal(number, 15);
  } else if (range.low < range.high) {
    number = readable(range, number);
  }
  return std::clamp(number, range.low, range.high);
}

bool is_same_point(const Coordinates& a, const Coordinates& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

std::optional<std::uint64_t> value_count(const Parameter& parameter) {
  if (const auto* const choices = std::get_if<Choices>(&parameter.domain)) return choices->values.size();
  const NumberRange& range = std::get<NumberRange>(parameter.domain);
  if (range.low == range.high) return 1;
  const double step = 2 * half_step(range);
  if (step == 0) return std::nullopt;
  const double count = std::floor((range.high - range.low) / step + 1e-9) + 1;
  if (count > static_cast<double>(kMostCounted)) return std::nullopt;
  return static_cast<std::uint64_t>(count);
}

Result<Space> Space::create(std::vector<Parameter> parameters, std::vector<Expression> constraints) {
  Space space;
  space.parameters_ = std::move(parameters);
  space.constraints_ = std::move(constraints);
  for (std::size_t i = 0; i < space.parameters_.size(); ++i) {
    Parameter& parameter = space.parameters_[i];
    if (parameter.name.empty()) return invalid("space: a parameter without a name");
    if (space.find(parameter.name) != i) return invalid("parameter {}: is there twice", parameter.name);
    if (const auto* const range = std::get_if<NumberRange>(&parameter.domain)) {
      STOKER_RETURN_IF_ERROR(check_range(parameter.name, *range));
    } else {
      STOKER_RETURN_IF_ERROR(check_choices(parameter.name, std::get<Choices>(parameter.domain)));
    }
  }
  for (const Parameter& parameter : space.parameters_) {
    if (!parameter.when) continue;
    const auto other = space.find(parameter.when->parameter);
    if (!other)
      return invalid("parameter {}: when: {} is no parameter", parameter.name, parameter.when->parameter);
    for (const Value& value : parameter.when->values) {
      if (auto coordinate = coordinate_of(space.parameters_[*other], value); !coordinate)
        return std::move(coordinate).error().with_context(format("parameter {}: when", parameter.name));
    }
  }
  STOKER_ASSIGN_OR_RETURN(order, dependency_order(space.parameters_));
  space.order_ = std::move(order);
  for (const Expression& constraint : space.constraints_) {
    for (const std::string& name : constraint.names()) {
      if (!space.find(name)) return invalid("constraint '{}': {} is no parameter", constraint.text(), name);
    }
    // Text where a number is expected shows with any point.
    const auto first_value = [&](std::string_view name) -> std::optional<Value> {
      const Parameter& parameter = space.parameters_[*space.find(name)];
      return value_at(parameter, normalized_coordinate(parameter, kInactive));
    };
    if (auto checked = constraint.holds(first_value); !checked) return std::move(checked).error();
  }
  return space;
}

std::optional<std::size_t> Space::find(std::string_view name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const Parameter& parameter) { return parameter.name == name; });
  if (found == parameters_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parameters_.begin());
}

bool Space::is_active(std::size_t parameter, const Coordinates& point) const {
  const std::optional<Activation>& when = parameters_[parameter].when;
  if (!when) return true;
  const std::size_t other = *find(when->parameter);
  if (std::isnan(point[other])) return false;
  const Value actual = value_at(parameters_[other], point[other]);
  return std::any_of(when->values.begin(), when->values.end(),
                     [&](const Value& value) { return is_same_value(value, actual); });
}

bool Space::is_feasible(const Coordinates& point) const {
  const auto value_of = [&](std::string_view name) -> std::optional<Value> {
    const std::size_t parameter = *find(name);
    if (std::isnan(point[parameter])) return std::nullopt;
    return value_at(parameters_[parameter], point[parameter]);
  };
  return std::all_of(constraints_.begin(), constraints_.end(), [&](const Expression& constraint) {
    const auto holds = constraint.holds(value_of);
    return holds.ok() && holds->value_or(true);
  });
}

Coordinates Space::normalized(Coordinates point) const {
  for (const std::size_t parameter : order_) {
    point[parameter] = is_active(parameter, point)
                           ? normalized_coordinate(parameters_[parameter], point[parameter])
                           : kInactive;
  }
  return point;
}

Assignment Space::decode(const Coordinates& point) const {
  Assignment values;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!std::isnan(point[i])) values.emplace_back(parameters_[i].name, value_at(parameters_[i], point[i]));
  }
  return values;
}

Result<Coordinates> Space::encode(const Assignment& values) const {
  Coordinates point(parameters_.size(), kInactive);
  for (const auto& [name, value] : values) {
    const auto parameter = find(name);
    if (!parameter) return invalid("{} is no parameter of the space", name);
    STOKER_ASSIGN_OR_RETURN(coordinate, coordinate_of(parameters_[*parameter], value));
    point[*parameter] = coordinate;
  }
  for (const std::size_t parameter : order_) {
    if (!is_active(parameter, point)) point[parameter] = kInactive;
  }
  return point;
}

std::optional<std::uint64_t> Space::count() const {
  std::uint64_t total = 1;
  // Of an inactive parameter no value counts: the grid enumerates and drops repetitions.
  for (const Parameter& parameter : parameters_) {
    const auto count = value_count(parameter);
    if (!count || total > kMostCounted / *count) return std::nullopt;
    total *= *count;
  }
  return total;
}

}  // namespace stoker::sweep
