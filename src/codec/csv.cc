#include "codec/csv.h"

#include <algorithm>

namespace stoker::codec {

CsvReader::CsvReader(std::string_view text, char separator, std::string subject)
    : left_(text), separator_(separator), subject_(std::move(subject)) {
  if (left_.starts_with("\xEF\xBB\xBF")) left_.remove_prefix(3);  // a byte order mark
}

Status CsvReader::wrong(std::string_view what) {
  left_ = {};
  return invalid("{}:{}: {}", subject_, line_, what);
}

Result<std::optional<std::vector<std::string>>> CsvReader::next() {
  while (left_.starts_with('\n') || left_.starts_with("\r\n")) {
    left_.remove_prefix(left_.front() == '\n' ? 1 : 2);
    ++line_;
  }
  if (left_.empty()) return std::optional<std::vector<std::string>>();
  row_line_ = line_;
  std::vector<std::string> row;
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(text, field());
    row.push_back(std::move(text));
    if (left_.empty()) break;
    const char end = left_.front();
    left_.remove_prefix(end == '\r' && left_.size() > 1 ? 2 : 1);
    if (end == separator_) continue;
    ++line_;
    break;
  }
  return std::optional(std::move(row));
}

// Leaves left_ at the separator, the line end, or the end of the text.
Result<std::string> CsvReader::field() {
  if (!left_.starts_with('"')) {
    const std::size_t end = left_.find_first_of(std::string{separator_, '\n', '"', '\0'});
    std::string_view text = left_.substr(0, end);
    if (end != std::string_view::npos && left_[end] == '"')
      return wrong("a quote inside a field without quotes");
    if (end != std::string_view::npos && left_[end] == '\0') return wrong("a NUL byte");
    left_.remove_prefix(text.size());
    if (text.ends_with('\r') && !left_.starts_with(separator_)) text.remove_suffix(1);
    return std::string(text);
  }
  left_.remove_prefix(1);
  std::string text;
  for (;;) {
    const std::size_t quote = left_.find('"');
    if (quote == std::string_view::npos) {
      left_ = {};
      return invalid("{}:{}: a quote is never closed", subject_, row_line_);
    }
    const std::string_view part = left_.substr(0, quote);
    if (part.find('\0') != std::string_view::npos) return wrong("a NUL byte");
    line_ += static_cast<std::uint64_t>(std::count(part.begin(), part.end(), '\n'));
    text += part;
    left_.remove_prefix(quote + 1);
    if (!left_.starts_with('"')) break;
    text += '"';
    left_.remove_prefix(1);
  }
  if (!left_.empty() && left_.front() != separator_ && left_.front() != '\n' && !left_.starts_with("\r\n")) {
    return wrong("text after a closing quote");
  }
  return text;
}

}  // namespace stoker::codec
