#include "base/table.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace stoker {
namespace {

// "12.9 MB", "00:01:40", "5 000": aligned to the right.
bool is_numeric_cell(std::string_view cell) {
  if (cell.empty() || cell == "-") return true;
  const std::string_view first = cell.substr(0, cell.find(' '));
  return first.find_first_not_of("0123456789.,:%") == std::string_view::npos;
}

// Display width: bytes that do not continue a UTF-8 sequence.
std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string table_text(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t column = 0; column < header.size(); ++column) {
    widths.push_back(display_width(header[column]));
    right.push_back(!rows.empty());
    for (const auto& row : rows) {
      widths[column] = std::max(widths[column], display_width(row[column]));
      right[column] = right[column] && is_numeric_cell(row[column]);
    }
  }
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t column = 0; column < header.size(); ++column) {
      const std::string padding(widths[column] - display_width(cells[column]), ' ');
      line +=
          (column == 0 ? "" : "   ") + (right[column] ? padding + cells[column] : cells[column] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(header);
  for (const auto& row : rows) add(row);
  return text;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace stoker
