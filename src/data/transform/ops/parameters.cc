#include "data/transform/ops/parameters.h"

#include <algorithm>
#include <cmath>

namespace stoker::data {
namespace {

constexpr Range kSides{1, 16384};

std::string lengths_text(std::initializer_list<std::size_t> lengths) {
  std::vector<std::string> parts;
  for (std::size_t length : lengths) parts.push_back(format("{}", length));
  return join(parts, " or ");
}

}  // namespace

Parameters::Parameters(const Operation& operation)
    : operation_(operation), name_(canonical_name(operation.name)) {}

bool Parameters::has(std::string_view key) const { return operation_.parameters.contains(std::string(key)); }

const Parameter* Parameters::find(std::string_view key) {
  asked_.emplace(key);
  const auto found = operation_.parameters.find(std::string(key));
  return found == operation_.parameters.end() ? nullptr : &found->second;
}

void Parameters::refuse(Status why) {
  if (problem_.ok()) problem_ = std::move(why);
}

bool Parameters::flag(std::string_view key, bool otherwise) {
  const Parameter* given = find(key);
  if (!given) return otherwise;
  if (const bool* value = std::get_if<bool>(given)) return *value;
  refuse(invalid("transform: {}: {} is not true or false", name_, key));
  return otherwise;
}

std::vector<double> Parameters::numbers(std::string_view key, std::vector<double> otherwise,
                                        const Range& range, std::initializer_list<std::size_t> lengths) {
  const Parameter* given = find(key);
  if (!given) return otherwise;
  std::vector<double> values;
  if (const auto* one = std::get_if<double>(given)) {
    values = {*one};
  } else if (const auto* several = std::get_if<std::vector<double>>(given)) {
    values = *several;
  }
  if (std::find(lengths.begin(), lengths.end(), values.size()) == lengths.end()) {
    refuse(invalid("transform: {}: {} is not {} {}", name_, key, lengths_text(lengths),
                   lengths.size() == 1 && *lengths.begin() == 1 ? "number" : "numbers"));
    return otherwise;
  }
  for (double value : values) {
    if (value >= range.least && value <= range.most) continue;
    refuse(
        invalid("transform: {}: {} {} is not between {} and {}", name_, key, value, range.least, range.most));
    return otherwise;
  }
  return values;
}

double Parameters::number(std::string_view key, double otherwise, const Range& range) {
  return numbers(key, {otherwise}, range, {1})[0];
}

std::int64_t Parameters::count(std::string_view key, std::int64_t otherwise, const Range& range) {
  const double value = number(key, static_cast<double>(otherwise), range);
  if (value == std::floor(value)) return static_cast<std::int64_t>(value);
  refuse(invalid("transform: {}: {} {} is not a whole number", name_, key, value));
  return otherwise;
}

std::string Parameters::word(std::string_view key, std::string_view otherwise,
                             std::span<const std::string_view> known) {
  const Parameter* given = find(key);
  if (!given) return std::string(otherwise);
  const auto* text = std::get_if<std::string>(given);
  if (text && std::find(known.begin(), known.end(), *text) != known.end()) return *text;
  if (text) {
    refuse(invalid("transform: {}: {} '{}' is unknown{}", name_, key, *text, suggestion(*text, known)));
  } else {
    refuse(invalid("transform: {}: {} is not a word", name_, key));
  }
  return std::string(otherwise);
}

Size Parameters::size() {
  if (!find("size")) {
    refuse(invalid("transform: {}: size is missing", name_));
    return {1, 1};
  }
  const std::vector<double> sides = numbers("size", {1}, kSides, {1, 2});
  for (double side : sides) {
    if (side != std::floor(side))
      refuse(invalid("transform: {}: size {} is not a whole number", name_, side));
  }
  return {static_cast<std::uint32_t>(sides.back()), static_cast<std::uint32_t>(sides.front())};
}

Filter Parameters::filter(Filter otherwise) {
  constexpr std::string_view kNames[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};
  const std::string name = word("interpolation", kNames[static_cast<int>(otherwise)], kNames);
  return static_cast<Filter>(std::find(std::begin(kNames), std::end(kNames), name) - std::begin(kNames));
}

Rgb Parameters::fill() {
  const std::vector<double> values = numbers("fill", {0}, {0, 255}, {1, 3});
  Rgb colour;
  for (std::size_t c = 0; c < 3; ++c)
    colour[c] = static_cast<std::uint8_t>(values.size() == 3 ? values[c] : values[0]);
  return colour;
}

// A name that is unknown comes first: it may be why another parameter is missing.
Status Parameters::status() const {
  for (const auto& [key, value] : operation_.parameters) {
    if (asked_.contains(key)) continue;
    const std::vector<std::string_view> known(asked_.begin(), asked_.end());
    return invalid("transform: {}: no parameter is called '{}'{}", name_, key, suggestion(key, known));
  }
  return problem_;
}

}  // namespace stoker::data
