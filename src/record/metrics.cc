#include "record/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/language/counted.h"
#include "record/lines.h"

namespace stoker::record {

namespace {

void append_number(std::string& line, double value) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  STOKER_CHECK(error == std::errc());
  line.append(digits.data(), end);
}

// Decimal numbers with at most 19 digits whose value fits in 53 bits and whose power of ten is exact need a
// single correctly rounded operation (Clinger 1990); all others use the slow path.
bool parse_short_decimal(std::string_view text, double* out) {
  constexpr std::array<double, 23> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) i = 1;
  std::uint64_t digits = 0;
  std::size_t count = 0;
  std::size_t fraction = 0;
  bool seen_point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !seen_point) {
      seen_point = true;
    } else if (c >= '0' && c <= '9') {
      digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
      if (++count > 18) return false;
      if (seen_point) ++fraction;
    } else {
      return false;
    }
  }
  if (count == 0 || digits > (1ull << 53) || fraction >= kPowers.size()) return false;
  const double magnitude = static_cast<double>(digits) / kPowers[fraction];
  *out = negative ? -magnitude : magnitude;
  return true;
}

bool parse_cell(std::string_view cell, double* out) {
  if (cell.empty()) {
    *out = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  return parse_short_decimal(cell, out) || parse_number(cell, out);
}

bool is_column_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-' || c == '%' || c == ' ';
  });
}

Status parse_header(std::string_view name, std::string_view line, const MetricLimits& limits,
                    MetricTable& table) {
  const std::vector<std::string_view> names = split(line, ',');
  if (names.size() > limits.columns) {
    return corrupt("{}: {} in its first line, at most {} are read", name, counted(names.size(), "column"),
                   limits.columns);
  }
  for (std::string_view column : names) {
    if (!is_column_name(column)) {
      return corrupt("{}: '{}' in its first line is not a column name", name,
                     printable(column.substr(0, 40)));
    }
    if (table.has(column)) return corrupt("{}: column '{}' twice in its first line", name, column);
    table.columns.emplace_back(column);
  }
  table.values.resize(table.columns.size());
  return {};
}

/// Builds the table line by line.
class TableBuilder {
 public:
  TableBuilder(std::string_view name, const MetricLimits& limits) : name_(name), limits_(limits) {}

  bool add_line(std::string_view line, LineKind kind) {
    if (table_.columns.empty()) return add_header(line, kind);
    if (kind == LineKind::torn) {
      table_.torn = true;
      return true;
    }
    if (table_.rows() == limits_.rows) {
      table_.truncated = true;
      return false;
    }
    if (line.empty() && kind == LineKind::whole) return true;  // ends a damaged line, see lines.h
    if (kind == LineKind::too_long || !add_row(line)) ++table_.damaged;
    return true;
  }

  Result<MetricTable> finish() && {
    if (!status_.ok()) return status_;
    if (table_.columns.empty()) return corrupt("{}: empty: the line of column names is missing", name_);
    return std::move(table_);
  }

 private:
  bool add_header(std::string_view line, LineKind kind) {
    if (kind != LineKind::whole) {
      status_ = corrupt("{}: its first line has no end", name_);
    } else {
      status_ = parse_header(name_, line, limits_, table_);
    }
    return status_.ok();
  }

  bool add_row(std::string_view line) {
    row_.clear();
    for (std::string_view cell : split(line, ',')) {
      double value = 0;
      if (!parse_cell(cell, &value)) return false;
      row_.push_back(value);
    }
    if (row_.size() != table_.columns.size()) return false;
    for (std::size_t i = 0; i < row_.size(); ++i) table_.values[i].push_back(row_[i]);
    return true;
  }

  std::string name_;
  MetricLimits limits_;
  MetricTable table_;
  Status status_;
  std::vector<double> row_;
};

}  // namespace

namespace {

std::string header_of(std::span<const std::string_view> columns) {
  std::string header;
  for (std::string_view column : columns) {
    STOKER_CHECK(is_column_name(column));
    if (!header.empty()) header += ',';
    header += column;
  }
  return header + '\n';
}

}  // namespace

Result<MetricWriter> MetricWriter::create(const Path& file, std::span<const std::string_view> columns) {
  const std::string header = header_of(columns);
  STOKER_RETURN_IF_ERROR(File::create_new(file).status());
  STOKER_ASSIGN_OR_RETURN(appending, File::open_append(file));
  MetricWriter writer(std::move(appending), columns.size());
  STOKER_RETURN_IF_ERROR(append_record(writer.file_, header, writer.mid_line_));
  return writer;
}

Result<MetricWriter> MetricWriter::reopen(const Path& file, std::span<const std::string_view> columns) {
  const std::string header = header_of(columns);
  STOKER_ASSIGN_OR_RETURN(existing, File::open_regular(file));
  STOKER_ASSIGN_OR_RETURN(size, existing.size());
  std::string begin(std::min<std::uint64_t>(size, header.size()), '\0');
  STOKER_RETURN_IF_ERROR(existing.read_at(0, std::as_writable_bytes(std::span(begin))));
  if (begin != header) return invalid("{}: has other columns", printable(file.string()));
  char last = '\n';
  STOKER_RETURN_IF_ERROR(existing.read_at(size - 1, std::as_writable_bytes(std::span(&last, 1))));
  STOKER_ASSIGN_OR_RETURN(appending, File::open_append(file));
  MetricWriter writer(std::move(appending), columns.size());
  writer.mid_line_ = last != '\n';
  return writer;
}

Status MetricWriter::append(std::span<const double> values) {
  if (file_.fd() < 0) return {};
  STOKER_CHECK(values.size() == columns_);
  line_.clear();
  for (double value : values) {
    if (!line_.empty()) line_ += ',';
    append_number(line_, value);
  }
  line_ += '\n';
  return append_record(file_, line_, mid_line_);
}

std::span<const double> MetricTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return {};
  return values[static_cast<std::size_t>(found - columns.begin())];
}

bool MetricTable::has(std::string_view name) const {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

Result<MetricTable> read_metrics(const Path& file, const MetricLimits& limits) {
  TableBuilder builder(printable(file.string()), limits);
  STOKER_RETURN_IF_ERROR(visit_lines(file, limits.line_bytes, [&](std::string_view line, LineKind kind) {
    return builder.add_line(line, kind);
  }));
  return std::move(builder).finish();
}

Result<MetricTable> parse_metrics(std::string_view name, std::string_view text, const MetricLimits& limits) {
  TableBuilder builder(name, limits);
  visit_text(text, limits.line_bytes,
             [&](std::string_view line, LineKind kind) { return builder.add_line(line, kind); });
  return std::move(builder).finish();
}

}  // namespace stoker::record
