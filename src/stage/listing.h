// Plans the result of unpacking an archive before a byte is written: refuses names and links that point
// outside the folder, files below links, and entries that are not files; of several members with the same
// name the last counts. Used by unpack. Values; functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::stage {

enum class EntryKind { file, folder, symbolic_link, hard_link };

/// A member, as it will be stored in the folder.
struct ArchiveEntry {
  std::string name;  ///< relative, without "." and ".."
  EntryKind kind = EntryKind::file;
  std::uint64_t bytes = 0;
  std::uint64_t data_position = 0;  ///< offset of its data, or index in a zip
  std::string link;  ///< for a hard link relative to the folder like `name`, for a symbolic link as stored
  std::uint32_t mode = 0644;
  std::int64_t mtime = 0;  ///< 0: unknown
  std::uint32_t mtime_ns = 0;
};

/// Policy for links that point outside the folder.
enum class OutsideLinks { refused, kept };

/// "a/b" for "a/./b/", "" for the folder itself; Invalid, prefixed with `subject`, for a name that points
/// outside it.
Result<std::string> clean_name(std::string_view subject, std::string_view name);

/// Whether a symbolic link with that cleaned name and target stays inside, whatever the other links are.
bool stays_inside(std::string_view name, std::string_view target);

/// Entries that can be written in any order without loss: duplicates are resolved; the writer adds parent
/// folders. Invalid for entries that must not be written.
Result<std::vector<ArchiveEntry>> resolve(std::string_view subject, std::vector<ArchiveEntry> entries,
                                          OutsideLinks links);

}  // namespace stoker::stage
