#include "image/transform/ops/parameters.h"

#include <algorithm>
#include <cmath>

namespace stoker::image {
namespace {

constexpr Range kSides{1, 16384};

std::string lengths_text(std::initializer_list<std::size_t> lengths) {
  std::vector<std::string> parts;
  for (std::size_t length : lengths) parts.push_back(format("{}", length));
  return join(parts, " or ");
}

}  // namespace

Parameters::Parameters(const TransformOperation& operation)
    : operation_(operation), name_(canonical_name(operation.name)) {}

bool Parameters::has(std::string_view key) const { return operation_.parameters.contains(std::string(key)); }

const Parameter* Parameters::find(std::string_view key) {
  known_.emplace(key);
  const auto found = operation_.parameters.find(std::string(key));
  return found == operation_.parameters.end() ? nullptr : &found->second;
}

void Parameters::report(Status why) {
  if (problem_.ok()) problem_ = std::move(why);
}

bool Parameters::flag(std::string_view key, bool fallback) {
  const Parameter* given = find(key);
  if (!given) return fallback;
  if (const bool* value = std::get_if<bool>(given)) return *value;
  report(invalid("transform: {}: {} is not true or false", name_, key));
  return fallback;
}

std::vector<double> Parameters::numbers(std::string_view key, std::vector<double> fallback,
                                        const Range& range, std::initializer_list<std::size_t> lengths) {
  const Parameter* given = find(key);
  if (!given) return fallback;
  std::vector<double> values;
  if (const auto* one = std::get_if<double>(given)) {
    values = {*one};
  } else if (const auto* several = std::get_if<std::vector<double>>(given)) {
    values = *several;
  }
  if (std::find(lengths.begin(), lengths.end(), values.size()) == lengths.end()) {
    report(invalid("transform: {}: {} is not {} {}", name_, key, lengths_text(lengths),
                   lengths.size() == 1 && *lengths.begin() == 1 ? "number" : "numbers"));
    return fallback;
  }
  for (double value : values) {
    if (value >= range.least && value <= range.most) continue;
    report(
        invalid("transform: {}: {} {} is not between {} and {}", name_, key, value, range.least, range.most));
    return fallback;
  }
  return values;
}

double Parameters::number(std::string_view key, double fallback, const Range& range) {
  return numbers(key, {fallback}, range, {1})[0];
}

std::int64_t Parameters::count(std::string_view key, std::int64_t fallback, const Range& range) {
  const double value = number(key, static_cast<double>(fallback), range);
  if (value == std::floor(value)) return static_cast<std::int64_t>(value);
  report(invalid("transform: {}: {} {} is not a whole number", name_, key, value));
  return fallback;
}

std::string Parameters::choice(std::string_view key, std::string_view fallback,
                               std::span<const std::string_view> known) {
  const Parameter* given = find(key);
  if (!given) return std::string(fallback);
  const auto* text = std::get_if<std::string>(given);
  if (text && std::find(known.begin(), known.end(), *text) != known.end()) return *text;
  if (text) {
    report(invalid("transform: {}: {} '{}' is unknown{}", name_, key, *text, suggestion(*text, known)));
  } else {
    report(invalid("transform: {}: {} is not a string", name_, key));
  }
  return std::string(fallback);
}

Size Parameters::size() {
  if (!find("size")) {
    report(invalid("transform: {}: size is missing", name_));
    return {1, 1};
  }
  const std::vector<double> sides = numbers("size", {1}, kSides, {1, 2});
  for (double side : sides) {
    if (side != std::floor(side))
      report(invalid("transform: {}: size {} is not a whole number", name_, side));
  }
  return {static_cast<std::uint32_t>(sides.back()), static_cast<std::uint32_t>(sides.front())};
}

ResizeFilter Parameters::filter(ResizeFilter fallback) {
  constexpr std::string_view kNames[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};
  const std::string name = choice("interpolation", kNames[static_cast<int>(fallback)], kNames);
  return static_cast<ResizeFilter>(std::find(std::begin(kNames), std::end(kNames), name) -
                                   std::begin(kNames));
}

Rgb Parameters::fill() {
  const std::vector<double> values = numbers("fill", {0}, {0, 255}, {1, 3});
  Rgb colour;
  for (std::size_t c = 0; c < 3; ++c)
    colour[c] = static_cast<std::uint8_t>(values.size() == 3 ? values[c] : values[0]);
  return colour;
}

// An unknown name comes first: it may be the reason that a required parameter is missing.
Status Parameters::status() const {
  for (const auto& [key, value] : operation_.parameters) {
    if (known_.contains(key)) continue;
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    return invalid("transform: {}: unknown parameter '{}'{}", name_, key, suggestion(key, known));
  }
  return problem_;
}

}  // namespace stoker::image
