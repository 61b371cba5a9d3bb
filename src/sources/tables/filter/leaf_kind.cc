#include "sources/tables/filter/leaf_kind.h"

#include <chrono>
#include <limits>
#include <string_view>

#include "stoker/text.h"

namespace stoker::sources {

namespace {

using Type = parquet::ParquetLeaf::Type;

constexpr std::int64_t kSecondsADay = 86'400;
constexpr std::int64_t kBillion = 1'000'000'000;

// Parses `count` digits; nullopt otherwise.
std::optional<std::int64_t> digits(std::string_view text, std::size_t from, std::size_t count) {
  std::uint64_t value = 0;
  if (text.size() < from + count || !parse_number(text.substr(from, count), &value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// "2026-11-23" as days since 1970.
std::optional<std::int64_t> days_of(std::string_view text) {
  const auto year = digits(text, 0, 4);
  const auto month = digits(text, 5, 2);
  const auto day = digits(text, 8, 2);
  if (!year || !month || !day || text[4] != '-' || text[7] != '-') return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// "14:05", "14:05:06", "14:05:06.25" as nanoseconds.
std::optional<std::int64_t> time_of(std::string_view text) {
  const auto hours = digits(text, 0, 2);
  const auto minutes = digits(text, 3, 2);
  if (!hours || !minutes || text[2] != ':' || *hours > 23 || *minutes > 59) return std::nullopt;
  std::int64_t seconds = 0;
  std::int64_t fraction = 0;
  if (text.size() > 5) {
    const auto found = digits(text, 6, 2);
    if (!found || text[5] != ':' || *found > 59) return std::nullopt;
    seconds = *found;
  }
  if (text.size() > 8) {
    const std::string_view places = text.substr(9);
    const auto found = digits(places, 0, places.size());
    if (text[8] != '.' || !found || places.size() > 9) return std::nullopt;
    fraction = *found;
    for (std::size_t i = places.size(); i < 9; ++i) fraction *= 10;
  }
  return ((*hours * 60 + *minutes) * 60 + seconds) * kBillion + fraction;
}

}  // namespace

bool is_text(const parquet::ParquetLeaf& leaf) {
  if (leaf.type != Type::bytes) return false;
  for (const std::string_view logical : {"", "text", "json", "enum"}) {
    if (leaf.logical == logical) return true;
  }
  return false;
}

std::string type_name(const parquet::ParquetLeaf& leaf) {
  std::string text = leaf.logical.empty() ? std::string(to_text(leaf.type)) : leaf.logical;
  for (unsigned i = 0; i < leaf.lists; ++i) text = "list of " + text;
  return text;
}

std::optional<std::int64_t> units_per_day(const parquet::ParquetLeaf& leaf) {
  if (leaf.logical == "date") return 1;
  for (const auto& [name, units] : {std::pair<std::string_view, std::int64_t>{"timestamp[ms", 1'000},
                                    {"timestamp[us", 1'000'000},
                                    {"timestamp[ns", kBillion}}) {
    if (leaf.logical.starts_with(name)) return kSecondsADay * units;
  }
  return std::nullopt;
}

std::optional<parquet::Number> parse_timestamp(std::string_view text, std::int64_t units_per_day) {
  const auto days = days_of(text);
  if (!days) return std::nullopt;
  std::int64_t nanoseconds = 0;
  if (text.size() > 10) {
    if (text[10] != ' ' && text[10] != 'T') return std::nullopt;
    std::string_view time = text.substr(11);
    if (time.ends_with('Z')) time.remove_suffix(1);
    const auto found = time_of(time);
    if (!found) return std::nullopt;
    nanoseconds = *found;
  }
  const std::int64_t a_day = kSecondsADay * kBillion;
  const std::int64_t furthest = std::numeric_limits<std::int64_t>::max() / units_per_day - 1;
  if (*days > furthest || *days < -furthest) return std::nullopt;
  const std::int64_t per_unit = a_day / units_per_day;
  const std::int64_t whole = *days * units_per_day + nanoseconds / per_unit;
  if (nanoseconds % per_unit == 0) return parquet::Number(whole);
  return parquet::Number(static_cast<double>(whole) + 0.5);
}

parquet::Number number_at(const parquet::ParquetValues& values, const parquet::ParquetLeaf& leaf,
                          std::uint64_t slot) {
  const DType type = number_type(leaf).value_or(DType::u8);
  return parquet::load_number(type, values.numbers.data() + slot * size_of(type));
}

}  // namespace stoker::sources
