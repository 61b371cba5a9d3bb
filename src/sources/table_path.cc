#include "sources/table_path.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace stoker::sources {

namespace {

constexpr std::string_view kMissing = "__HIVE_DEFAULT_PARTITION__";

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// "100%25" as "100%"; keeps a percent sign without two digits.
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : digit_of(text[i + 2]);
    if (low < 0) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return plain;
}

std::string bytes_of(const PartitionColumn& column) {
  const auto type = number_type(column.leaf);
  if (!type) return column.text.value_or("");
  return {reinterpret_cast<const char*>(&column.number), size_of(*type)};  // little-endian
}

}  // namespace

void put_values(const PartitionColumn& column, std::uint64_t rows, parquet::ParquetValues& values) {
  values.clear();
  values.rows = rows;
  values.slots = rows;
  if (!column.text) values.present.assign(rows, 0);
  std::string value = bytes_of(column);
  if (number_type(column.leaf)) {
    values.numbers.resize(rows * value.size());
    for (std::uint64_t row = 0; row < rows; ++row)
      std::memcpy(values.numbers.data() + row * value.size(), value.data(), value.size());
    return;
  }
  constexpr std::uint64_t kAtOnce = 4096;
  const std::size_t size = value.size();
  value.resize(size + parquet::kReadPadding);
  const std::vector<std::string_view> texts(std::min(rows, kAtOnce), std::string_view(value).substr(0, size));
  for (std::uint64_t row = 0; row < rows; row += kAtOnce)
    values.texts.append(std::span(texts).first(std::min(kAtOnce, rows - row)));
}

parquet::ParquetRange range_of(const PartitionColumn& column, std::uint64_t rows) {
  parquet::ParquetRange range;
  range.null_count = column.text ? 0 : rows;
  if (!column.text) return range;
  range.min = bytes_of(column);
  range.max = range.min;
  return range;
}

std::optional<PartitionKey> parse_partition_key(std::string_view folder) {
  const std::size_t equals = folder.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  PartitionKey key{.name = decoded(folder.substr(0, equals)), .value = decoded(folder.substr(equals + 1))};
  if (key.value == kMissing) key.value.reset();
  return key;
}

}  // namespace stoker::sources
