// The files that the nodes of a job stage together. The first node lists them, and its peers get the list
// from it, so that one node asks the shared filesystem for each file. Layout: docs/formats/broadcast.md.
// Values; functions without state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stage/listing.h"
#include "stage/node.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

/// `data_position` of a file: where its bytes are in the concatenation of all files.
struct TreeList {
  std::vector<ArchiveEntry> copies;    ///< as in the staged folder
  std::vector<ArchiveEntry> archives;  ///< not unpacked; named by archive_name()
  std::uint64_t bytes = 0;             ///< of all files
};

/// The sources of a request by the names that their entries have, or begin with and "/". Exists if two
/// sources have the same name.
Result<std::map<std::string, Path>> tree_sources(const StageRequest& request);

/// Name in a list of an archive of the request.
std::string archive_name(const StageRequest& request, std::size_t archive);

/// Whether an entry has such a name.
bool is_listed_archive(const ArchiveEntry& entry);

/// Lists all sources. NotFound if one does not exist, Invalid as unpack() for what is no archive; Cancelled.
Result<TreeList> list_request(const StageRequest& request, Progress& progress);

/// The source of an entry, of tree_sources(). NotFound for an entry of none of them.
Result<Path> source_in(const std::map<std::string, Path>& sources, const ArchiveEntry& entry);

std::string encode_tree_list(const TreeList& list);
/// Corrupt for anything that encode_tree_list() does not make, such as names that point outside the folder,
/// and entries below a link.
Result<TreeList> parse_tree_list(std::string_view text);

}  // namespace stoker::stage
