// Addresses of studies in storages of Optuna: "journal:///path/to/studies.log#name",
// "sqlite:////path/to/studies.db#name", "postgresql://user@host/database#name". Pure functions, but for the
// check of a filesystem.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stoker/status.h"

namespace stoker::sweep {

/// An address.
struct StorageUrl {
  std::string url;    ///< without the study's name
  std::string study;  ///< empty if the address has none
  Path file;          ///< of a journal or SQLite database; else empty
};

/// Whether the text is an address and not a path: it has "://".
bool is_storage_url(std::string_view text);
/// Invalid for another scheme, and for a file that is not absolute.
Result<StorageUrl> parse_storage_url(std::string_view text);
/// For messages: with "***" in place of a password.
std::string shown_url(std::string_view url);

/// Invalid for an SQLite database on a filesystem that several nodes share: its locks do not hold there.
Status check_storage(const StorageUrl& url);

}  // namespace stoker::sweep
