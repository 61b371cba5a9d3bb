// The functions of libsqlite3 that are called. Their C interface is stable for all versions 3, and building
// needs no header of it: sqlite_test compares the prototypes where the header is installed. Internal to this
// folder. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "stoker/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stoker::inspect {

// F(result, name, parameters)
#define STOKER_SQLITE_FUNCTIONS(F)                                                                     \
  F(int, sqlite3_open_v2, (const char* path, sqlite3** database, int flags, const char* vfs))          \
  F(int, sqlite3_close_v2, (sqlite3 * database))                                                       \
  F(int, sqlite3_exec,                                                                                 \
    (sqlite3 * database, const char* sql, int (*row)(void*, int, char**, char**), void* argument,      \
     char** error))                                                                                    \
  F(int, sqlite3_prepare_v2,                                                                           \
    (sqlite3 * database, const char* sql, int bytes, sqlite3_stmt** statement, const char** rest))     \
  F(int, sqlite3_bind_int64, (sqlite3_stmt * statement, int parameter, long long value))               \
  F(int, sqlite3_bind_text,                                                                            \
    (sqlite3_stmt * statement, int parameter, const char* text, int bytes, void (*destructor)(void*))) \
  F(int, sqlite3_step, (sqlite3_stmt * statement))                                                     \
  F(int, sqlite3_reset, (sqlite3_stmt * statement))                                                    \
  F(int, sqlite3_finalize, (sqlite3_stmt * statement))                                                 \
  F(const unsigned char*, sqlite3_column_text, (sqlite3_stmt * statement, int column))                 \
  F(int, sqlite3_errcode, (sqlite3 * database))                                                        \
  F(const char*, sqlite3_errmsg, (sqlite3 * database))                                                 \
  F(int, sqlite3_system_errno, (sqlite3 * database))

struct SqliteApi {
#define STOKER_SQLITE_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  STOKER_SQLITE_FUNCTIONS(STOKER_SQLITE_MEMBER)
#undef STOKER_SQLITE_MEMBER
};

// SQLITE_OK and so on.
constexpr int kSqliteOk = 0;
constexpr int kSqliteFull = 13;
constexpr int kSqliteRow = 100;
constexpr int kSqliteDone = 101;
constexpr int kSqliteOpenReadWrite = 2;
constexpr int kSqliteOpenCreate = 4;

}  // namespace stoker::inspect
