#include "base/csv.h"

#include <algorithm>

#include "stoker/text.h"

namespace stoker {
namespace {

constexpr std::size_t kMostCells = 1000;

}  // namespace

Result<std::vector<std::string>> next_csv_row(std::string_view name, std::string_view& text,
                                              std::size_t* line) {
  const std::size_t begin = *line;
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (is_quoted) {
      if (c == '\n') ++*line;
      if (c != '"') {
        cells.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        cells.back() += text[++at];
      } else {
        is_quoted = false;
      }
    } else if (c == '"' && cells.back().empty()) {
      is_quoted = true;
    } else if (c == ',') {
      if (cells.size() >= kMostCells) return invalid("{}:{}: more than {} cells", name, begin, kMostCells);
      cells.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (is_quoted) return invalid("{}:{}: a quote is not closed", name, begin);
  text.remove_prefix(std::min(at + 1, text.size()));
  ++*line;
  for (std::string& cell : cells) cell = std::string(trim(cell));
  return cells;
}

}  // namespace stoker
