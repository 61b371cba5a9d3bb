// Comma-separated values as in RFC 4180: quotes, doubled quotes, line ends inside quotes; also with tabs.
// Used for lists of files. Thread-safe: no state but the reader's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::codec {

class CsvReader {
 public:
  /// Views `text`. `subject` starts every error: "<subject>:7: ...".
  CsvReader(std::string_view text, char separator, std::string subject);

  /// The next non-empty row; nullopt at the end. Invalid for a quote inside a bare field, text after a
  /// closing quote, an unclosed quote, a NUL byte. After an error the reader stays at the end.
  Result<std::optional<std::vector<std::string>>> next();
  /// The line where the last row began, from 1.
  std::uint64_t line() const { return row_line_; }

 private:
  Result<std::string> field();
  Status wrong(std::string_view what);

  std::string_view left_;
  char separator_;
  std::string subject_;
  std::uint64_t line_ = 1;
  std::uint64_t row_line_ = 0;
};

}  // namespace stoker::codec
