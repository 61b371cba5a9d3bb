// What an archive would put where, decided before a single byte is written: names that lead out of the
// folder, links that do, files below links, things that are no files are refused, of several members with one
// name the last counts. Used by unpack. Values; functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::stage {

enum class Kind { file, folder, symbolic_link, hard_link };

/// One member as it will lie in the folder.
struct Entry {
  std::string name;  ///< relative, without "." and ".."
  Kind kind = Kind::file;
  std::uint64_t bytes = 0;
  std::uint64_t place = 0;  ///< offset of its data, or its number in a zip
  std::string link;         ///< of a hard link relative to the folder as `name`, of a symbolic one as stored
  std::uint32_t mode = 0644;
  std::int64_t mtime = 0;  ///< 0: not known
};

/// What may lead out of the folder.
enum class OutsideLinks { refused, kept };

/// "a/./b/" as "a/b", "" for the folder itself; Invalid, with `subject` before, for a name that leads out of
/// it.
Result<std::string> clean_name(std::string_view subject, std::string_view name);

/// Whether a symbolic link of that clean name and target stays inside, whatever the other links are.
bool stays_inside(std::string_view name, std::string_view target);

/// The entries of which nothing is lost by writing them in any order: doubles resolved, folders above files
/// added by whoever writes. Invalid for what must not be written.
Result<std::vector<Entry>> resolve(std::string_view subject, std::vector<Entry> entries, OutsideLinks links);

}  // namespace stoker::stage
