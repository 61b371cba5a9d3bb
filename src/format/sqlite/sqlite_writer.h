// Writes SQLite 3 databases front to back, without SQLite: tables whose rows get the numbers 1, 2, ..., and
// indexes whose entries come in order. For what other tools want to look things up in; the same rows give the
// same bytes. Used by `stoker data index --export energon`. Thread-compatible.
// Format: https://sqlite.org/fileformat2.html
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/file.h"
#include "base/status.h"

namespace stoker::formats {

/// A whole number, or text in UTF-8.
using SqliteValue = std::variant<std::int64_t, std::string_view>;

/// What a table or index is called in the database's schema.
struct SqliteName {
  std::string name;
  std::string table;  ///< whose index it is; a table's own name
  std::string sql;    ///< the statement that would make it
};

class SqliteWriter {
 public:
  /// Creates or truncates the file.
  static Result<SqliteWriter> create(const Path& path);
  SqliteWriter(SqliteWriter&&) noexcept;
  SqliteWriter& operator=(SqliteWriter&&) noexcept;
  ~SqliteWriter();

  /// The number by which rows and entries name it.
  std::size_t add_table(SqliteName name);
  std::size_t add_index(SqliteName name);

  /// Invalid for a row of over 4 kB.
  Status add_row(std::size_t table, std::span<const SqliteValue> values);
  /// An entry for row number `row`, from 1. REQUIRES: entries come in the order of their values, then rows:
  /// numbers by size, texts by bytes.
  Status add_entry(std::size_t index, std::span<const SqliteValue> values, std::int64_t row);

  /// Writes the schema, syncs and closes. Until then the file is no database.
  Status finish();

 private:
  struct Parts;
  explicit SqliteWriter(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace stoker::formats
