// Writes a new SQLite 3 database through libsqlite3, which is loaded at the first use. Used by `stoker data
// index --export energon`. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::inspect {

/// An integer, or text in UTF-8.
using SqliteValue = std::variant<std::int64_t, std::string_view>;

class SqliteDatabase {
 public:
  /// Creates the file, replacing an existing one, and starts a transaction. Unavailable, with a cure, without
  /// libsqlite3.
  static Result<SqliteDatabase> create(const Path& path);
  SqliteDatabase(SqliteDatabase&&) noexcept;
  SqliteDatabase& operator=(SqliteDatabase&&) noexcept;
  ~SqliteDatabase();

  Status execute(const std::string& sql);
  /// Prepares a statement for insert(); returns its number.
  Result<std::size_t> prepare(const std::string& sql);
  Status insert(std::size_t statement, std::span<const SqliteValue> values);
  /// The first column of the first row, if there is one.
  Result<std::optional<std::string>> first_text(const std::string& sql);

  /// Commits, closes and syncs the file. Nothing else may be called afterwards.
  Status finish();

 private:
  struct Connection;
  explicit SqliteDatabase(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace stoker::inspect
