#include "report/study/scale.h"

#include <algorithm>
#include <cmath>

#include "stoker/text.h"

namespace stoker::report::study {

namespace {

constexpr double kMargin = 0.03;
constexpr double kFactorForLogarithm = 50;
// A value is far outside when it is this many times further from the best than 95 % of all values.
constexpr double kFarOutside = 4;
constexpr std::size_t kLeastToLeaveOut = 20;
constexpr std::size_t kLongestLabel = 12;

std::string number_label(double value) {
  if (value == std::round(value) && std::fabs(value) < 1e6)
    return (value < 0 ? "-" : "") + grouped(static_cast<std::uint64_t>(std::fabs(value)));
  return format("{:.4g}", value);
}

// 1, 2 or 5 times a power of ten.
double round_step(double raw) {
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double digit = raw / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

std::vector<double> round_numbers(double low, double high, std::size_t wanted) {
  const double step = round_step((high - low) / static_cast<double>(wanted));
  std::vector<double> numbers;
  for (double at = std::ceil(low / step - 1e-9) * step; at <= high + step * 1e-9 && numbers.size() < 12;
       at += step)
    numbers.push_back(std::fabs(at) < step * 1e-9 ? 0 : at);
  return numbers;
}

// Powers of ten; within one or two of them also 2 and 5 times each.
std::vector<double> round_powers(double low, double high, std::size_t wanted) {
  const double decades = high - low;
  const int step = std::max(1, static_cast<int>(std::ceil(decades / static_cast<double>(wanted + 1))));
  std::vector<double> numbers;
  for (int power = static_cast<int>(std::floor(low)); power <= static_cast<int>(std::ceil(high));
       power += step) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit > 1 && decades > 1.5) continue;
      const double at = power + std::log10(digit);
      if (at >= low - 1e-9 && at <= high + 1e-9) numbers.push_back(std::pow(10, power) * digit);
    }
  }
  return numbers;
}

std::string short_label(const std::string& text) { return clipped(printable(text), kLongestLabel); }

}  // namespace

Scale Scale::numbers(double low, double high, Spacing spacing) {
  Scale scale;
  scale.spacing_ = spacing;
  low = scale.position(low);
  high = scale.position(high);
  if (!(high > low)) {
    const double half = low == 0 ? 1 : std::fabs(low) * 0.1;
    low -= half;
    high += half;
  }
  const double margin = kMargin * (high - low);
  scale.low_ = low - margin;
  scale.high_ = high + margin;
  return scale;
}

Scale Scale::categories(std::vector<std::string> names) {
  Scale scale;
  scale.low_ = -0.5;
  scale.high_ = static_cast<double>(names.size()) - 0.5;
  scale.names_ = std::move(names);
  return scale;
}

Scale Scale::of(const sweep::Parameter& parameter) {
  if (const auto* const range = std::get_if<sweep::NumberRange>(&parameter.domain))
    return numbers(range->low, range->high, range->is_log ? Spacing::logarithmic : Spacing::linear);
  std::vector<std::string> names;
  for (const sweep::Value& value : std::get<sweep::Choices>(parameter.domain).values)
    names.push_back(sweep::to_text(value));
  return categories(std::move(names));
}

Scale Scale::of_values(std::span<const double> values, sweep::Goal goal) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value) && std::fabs(value) < 1e150; });
  if (finite.empty()) return numbers(0, 1, Spacing::linear);
  std::sort(finite.begin(), finite.end());
  const bool is_log = finite.front() > 0 && finite.back() / finite.front() >= kFactorForLogarithm;
  Scale scale;
  scale.spacing_ = is_log ? Spacing::logarithmic : Spacing::linear;
  if (goal == sweep::Goal::maximize) std::reverse(finite.begin(), finite.end());
  const double best = scale.position(finite.front());
  const double most = scale.position(finite[(finite.size() - 1) * 19 / 20]);
  double worst = scale.position(finite.back());
  if (finite.size() >= kLeastToLeaveOut && most != best &&
      std::fabs(worst - best) > kFarOutside * std::fabs(most - best))
    worst = most + (most - best) / 4;
  const double low = std::min(best, worst), high = std::max(best, worst);
  return is_log ? numbers(std::pow(10, low), std::pow(10, high), Spacing::logarithmic)
                : numbers(low, high, Spacing::linear);
}

double Scale::position(double value) const {
  return spacing_ == Spacing::logarithmic ? std::log10(std::max(value, 1e-300)) : value;
}

double Scale::fraction(double value) const {
  return std::isnan(value) ? value : std::clamp((position(value) - low_) / (high_ - low_), 0.0, 1.0);
}

bool Scale::contains(double value) const {
  return !std::isnan(value) && position(value) >= low_ && position(value) <= high_;
}

std::vector<ScaleTick> Scale::ticks(std::size_t wanted) const {
  std::vector<ScaleTick> result;
  if (!names_.empty()) {
    const std::size_t step = 1 + (names_.size() - 1) / (2 * wanted);
    for (std::size_t i = 0; i < names_.size(); i += step)
      result.push_back({fraction(static_cast<double>(i)), short_label(names_[i])});
    return result;
  }
  const bool is_log = spacing_ == Spacing::logarithmic;
  for (const double number : is_log ? round_powers(low_, high_, wanted) : round_numbers(low_, high_, wanted))
    result.push_back({fraction(number), number_label(number)});
  return result;
}

double Scale::category_width() const { return names_.empty() ? 0 : 1 / static_cast<double>(names_.size()); }

}  // namespace stoker::report::study
