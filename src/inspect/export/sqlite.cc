#include "inspect/export/sqlite.h"

#include <dlfcn.h>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "inspect/export/sqlite_api_internal.h"
#include "stoker/text.h"

namespace stoker::inspect {

namespace {

constexpr const char* kSqliteLibrary = "libsqlite3.so.0";
// The file is private until it is renamed, so it needs no locks, which some network filesystems lack.
constexpr const char* kVfsWithoutLocks = "unix-none";
// The file is written once and synced at the end. A crash leaves only the temporary file.
constexpr const char* kBegin =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-16000; BEGIN";

Result<SqliteApi> load_sqlite() {
  void* library = ::dlopen(kSqliteLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return unavailable("SQLite: libsqlite3 is missing ({})", std::string_view(::dlerror()))
        .cure("apt-get install libsqlite3-0, or dnf install sqlite-libs");
  SqliteApi api;
#define STOKER_SQLITE_FIND(result, name, parameters)                        \
  api.name = reinterpret_cast<decltype(api.name)>(::dlsym(library, #name)); \
  if (api.name == nullptr) return unavailable("SQLite: {} has no {}: it is too old", kSqliteLibrary, #name);
  STOKER_SQLITE_FUNCTIONS(STOKER_SQLITE_FIND)
#undef STOKER_SQLITE_FIND
  return api;
}

Result<const SqliteApi*> sqlite_api() {
  static Mutex mutex;
  static std::unique_ptr<const SqliteApi> loaded;
  const MutexLock lock(mutex);
  if (!loaded) {
    STOKER_ASSIGN_OR_RETURN(api, load_sqlite());
    loaded = std::make_unique<const SqliteApi>(api);
  }
  return loaded.get();
}

}  // namespace

struct SqliteDatabase::Connection {
  const SqliteApi& api;
  Path path;
  sqlite3* database = nullptr;
  std::vector<sqlite3_stmt*> statements;

  Connection(const SqliteApi& functions, Path file) : api(functions), path(std::move(file)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(); }

  int close() {
    for (sqlite3_stmt* statement : statements) api.sqlite3_finalize(statement);
    statements.clear();
    return api.sqlite3_close_v2(std::exchange(database, nullptr));
  }

  Status error() const {
    const std::string subject = printable(path.string());
    if (database == nullptr) return no_space("{}: SQLite: out of memory", subject);
    const int number = api.sqlite3_system_errno(database);
    if ((api.sqlite3_errcode(database) & 0xFF) == kSqliteFull)
      return no_space("{}: no space left on the device", subject);
    if (number != 0) return posix_error(subject, number);
    return internal("{}: SQLite: {}", subject, printable(api.sqlite3_errmsg(database)));
  }
};

SqliteDatabase::SqliteDatabase(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
SqliteDatabase::SqliteDatabase(SqliteDatabase&&) noexcept = default;
SqliteDatabase& SqliteDatabase::operator=(SqliteDatabase&&) noexcept = default;
SqliteDatabase::~SqliteDatabase() = default;

Result<SqliteDatabase> SqliteDatabase::create(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(api, sqlite_api());
  if (path_exists(path)) STOKER_RETURN_IF_ERROR(remove_file(path));
  auto connection = std::make_unique<Connection>(*api, path);
  const int flags = kSqliteOpenReadWrite | kSqliteOpenCreate;
  if (api->sqlite3_open_v2(path.c_str(), &connection->database, flags, kVfsWithoutLocks) != kSqliteOk)
    return connection->error();
  SqliteDatabase database(std::move(connection));
  STOKER_RETURN_IF_ERROR(database.execute(kBegin));
  return database;
}

Status SqliteDatabase::execute(const std::string& sql) {
  const int code =
      connection_->api.sqlite3_exec(connection_->database, sql.c_str(), nullptr, nullptr, nullptr);
  return code == kSqliteOk ? Status() : connection_->error();
}

Result<std::size_t> SqliteDatabase::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (connection_->api.sqlite3_prepare_v2(connection_->database, sql.c_str(), -1, &statement, nullptr) !=
      kSqliteOk)
    return connection_->error();
  connection_->statements.push_back(statement);
  return connection_->statements.size() - 1;
}

Status SqliteDatabase::insert(std::size_t number, std::span<const SqliteValue> values) {
  const SqliteApi& api = connection_->api;
  sqlite3_stmt* const statement = connection_->statements[number];
  int code = kSqliteOk;
  for (std::size_t i = 0; i < values.size() && code == kSqliteOk; ++i) {
    const int parameter = static_cast<int>(i) + 1;
    if (const auto* const text = std::get_if<std::string_view>(&values[i])) {
      code = api.sqlite3_bind_text(statement, parameter, text->data(), static_cast<int>(text->size()),
                                   /*destructor=*/nullptr);
    } else {
      code = api.sqlite3_bind_int64(statement, parameter, std::get<std::int64_t>(values[i]));
    }
  }
  if (code == kSqliteOk) code = api.sqlite3_step(statement);
  const Status status = code == kSqliteDone ? Status() : connection_->error();
  api.sqlite3_reset(statement);
  return status;
}

Result<std::optional<std::string>> SqliteDatabase::first_text(const std::string& sql) {
  const SqliteApi& api = connection_->api;
  STOKER_ASSIGN_OR_RETURN(number, prepare(sql));
  sqlite3_stmt* const statement = connection_->statements[number];
  const int code = api.sqlite3_step(statement);
  Result<std::optional<std::string>> found = std::optional<std::string>();
  if (code == kSqliteRow) {
    const unsigned char* const text = api.sqlite3_column_text(statement, 0);
    found = std::optional<std::string>(text == nullptr ? "" : reinterpret_cast<const char*>(text));
  } else if (code != kSqliteDone) {
    found = connection_->error();
  }
  api.sqlite3_reset(statement);
  return found;
}

Status SqliteDatabase::finish() {
  STOKER_RETURN_IF_ERROR(execute("COMMIT"));
  if (connection_->close() != kSqliteOk)
    return internal("{}: SQLite: cannot be closed", printable(connection_->path.string()));
  STOKER_ASSIGN_OR_RETURN(file, File::open_read_write(connection_->path));
  return file.sync();
}

}  // namespace stoker::inspect
