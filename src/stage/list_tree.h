// Lists a file, or a folder with its contents, as entries to copy. Used by copy and by the broadcast of
// staged files. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "stage/listing.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Whether programs change the tree while it is listed: then files that vanish are left out, and each name of
/// a file with several is a file.
enum class TreeUse { read_only, in_use };

/// `source` and what is below it, a folder before its contents. `name`: its name in the target folder. Links
/// are kept, and a file that has several names is listed once; its other names are hard links. Devices and
/// pipes are skipped.
Result<std::vector<ArchiveEntry>> list_tree(const Path& source, const std::string& name, Progress& progress,
                                            TreeUse use = TreeUse::read_only);

/// The path of an entry that list_tree() named.
Path source_of(const ArchiveEntry& entry, const Path& source, const std::string& name);

/// Ok if the open file has the size and time of its entry.
Status check_unchanged(const File& file, const ArchiveEntry& entry);

}  // namespace stoker::stage
