#include "stoker/bytes.h"

#include <array>
#include <cmath>

namespace stoker {
namespace {

struct ByteUnit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array kUnits = {
    ByteUnit{"PiB", 1ull << 50}, ByteUnit{"PB", 1'000'000'000'000'000ull},
    ByteUnit{"TiB", 1ull << 40}, ByteUnit{"TB", 1'000'000'000'000ull},
    ByteUnit{"GiB", 1ull << 30}, ByteUnit{"GB", 1'000'000'000ull},
    ByteUnit{"MiB", 1ull << 20}, ByteUnit{"MB", 1'000'000ull},
    ByteUnit{"KiB", 1ull << 10}, ByteUnit{"kB", 1'000ull},
    ByteUnit{"B", 1ull},
};

const ByteUnit* unit_named(std::string_view name) {
  for (const ByteUnit& unit : kUnits) {
    if (to_lower(unit.name) == to_lower(name)) return &unit;
  }
  return nullptr;
}

}  // namespace

Result<ByteCount> parse_bytes(std::string_view text) {
  const Status not_bytes = invalid("'{}' is not a byte count (such as 64GB or 4MiB)", printable(text));
  std::size_t digits = 0;
  while (digits < text.size() && ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.'))
    ++digits;
  const std::string_view number = text.substr(0, digits);
  const std::string_view name = trim(text.substr(digits));
  double amount = 0;
  if (number.empty() || !parse_number(number, &amount)) return not_bytes;
  if (name.empty()) return invalid("'{}' has no unit (write {}GB, {}MiB, ...)", text, number, number);
  const ByteUnit* unit = unit_named(name);
  if (unit == nullptr) return not_bytes;
  const double total = amount * static_cast<double>(unit->bytes);
  if (!(total < 9.2e18)) return invalid("'{}' exceeds the address space", text);
  if (std::uint64_t whole = 0; parse_number(number, &whole)) return ByteCount{whole * unit->bytes};
  return ByteCount{static_cast<std::uint64_t>(std::llround(total))};
}

std::string to_text(ByteCount bytes) {
  for (const ByteUnit& unit : kUnits) {
    if (bytes.value >= unit.bytes && bytes.value % unit.bytes == 0) {
      return format("{}{}", bytes.value / unit.bytes, unit.name);
    }
  }
  return format("{}B", bytes.value);
}

std::string rounded(ByteCount bytes) {
  constexpr std::array kNames = {"B", "kB", "MB", "GB", "TB", "PB"};
  double amount = static_cast<double>(bytes.value);
  std::size_t unit = 0;
  while (amount >= 999.5 && unit + 1 < kNames.size()) {
    amount /= 1000;
    ++unit;
  }
  if (unit == 0) return format("{} B", bytes.value);
  const int decimals = amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0;
  return format("{:.{}f} {}", amount, decimals, kNames[unit]);
}

}  // namespace stoker
