#include "cli/data/pack_arguments.h"

#include <cstdint>
#include <string>

namespace stoker::cli {

std::optional<double> parse_percent(std::string_view text) {
  double value = 0;
  if (!text.ends_with('%') || !parse_number(trim(text.substr(0, text.size() - 1)), &value))
    return std::nullopt;
  return value >= 0 && value <= 100 ? std::optional(value) : std::nullopt;
}

Result<double> parse_max_left_out(std::string_view text) {
  if (const std::optional<double> value = parse_percent(text)) return *value;
  return invalid("data pack: --max-left-out: '{}' is not a percentage (as in 1% or 0.5%)", printable(text));
}

Result<std::vector<sources::SplitShare>> parse_split_shares(std::string_view text) {
  std::vector<sources::SplitShare> shares;
  if (text.empty()) return shares;
  double sum = 0;
  for (std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = trim(part.substr(0, equals));
    const std::string_view number = equals == std::string_view::npos ? "" : trim(part.substr(equals + 1));
    double share = 0;
    const bool is_share = parse_number(number, &share) && share >= 0 && share <= 1;
    const std::optional<double> hundredths = parse_percent(number);
    const bool is_name = !name.empty() && name.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789_-") == std::string_view::npos;
    if (!is_name || (!is_share && !hundredths)) {
      return invalid("data pack: --split: '{}' is not NAME=SHARE (as in train=90%,val=10%)", printable(part));
    }
    for (const sources::SplitShare& other : shares) {
      if (other.name == name) return invalid("data pack: --split: '{}' appears twice", name);
    }
    shares.push_back({std::string(name), hundredths ? *hundredths / 100 : share});
    sum += shares.back().share;
  }
  if (sum < 0.999999 || sum > 1.000001) {
    return invalid("data pack: --split: the shares add up to {:.4g} %, not to 100 %", 100 * sum);
  }
  return shares;
}

Result<std::optional<pack::PackPart>> parse_part(std::string_view text) {
  if (text.empty()) return std::optional<pack::PackPart>();
  const std::size_t slash = text.find('/');
  std::int64_t number = 0;
  std::int64_t of = 0;
  if (slash == std::string_view::npos || !parse_number(text.substr(0, slash), &number) ||
      !parse_number(text.substr(slash + 1), &of) || number < 1 || of < number || of > 9999) {
    return invalid("data pack: --part: '{}' is not I/N with I from 1 to N (as in 2/8)", printable(text));
  }
  return std::optional(
      pack::PackPart{.number = static_cast<std::uint32_t>(number), .count = static_cast<std::uint32_t>(of)});
}

}  // namespace stoker::cli
