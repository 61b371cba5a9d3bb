// A Zarr hierarchy in a folder or a zip archive: which arrays and groups it holds, and their metadata,
// consolidated or not. Used by readers and writers of arrays. Thread-safe: every call looks at the files
// anew.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/zarr/files.h"
#include "format/zarr/metadata.h"

namespace stoker::formats {

/// A node of a hierarchy.
struct ZarrNode {
  enum class Kind { group, array };
  std::string path;  ///< from the root: "", "train/images"
  Kind kind = Kind::array;
  int version = 3;
  bool operator==(const ZarrNode&) const = default;
};

/// Why a node's path is refused, or "": it is absolute, has an empty, "." or ".." part, a control byte, or is
/// too long. What passes stays below the store's folder.
std::string_view unsafe_node(std::string_view path);

/// The metadata of the array at `path` ("" for the store itself): its own file, else the store's consolidated
/// metadata. NotFound if there is neither, Invalid for a group or an unsafe path. `subject` of errors is the
/// file's name.
Result<ZarrMetadata> read_zarr_metadata(const Path& store, std::string_view path);
Result<ZarrMetadata> read_zarr_metadata(const ZarrFiles& files, std::string_view path);

/// All nodes, sorted by path: from the consolidated metadata where there is such, else by looking through the
/// folders (not into those of chunks). NotFound if the folder holds no hierarchy.
Result<std::vector<ZarrNode>> list_zarr(const Path& store);
Result<std::vector<ZarrNode>> list_zarr(const ZarrFiles& files);

/// Writes a group's metadata if it is not there. Parents are not made into groups.
Status write_zarr_group(const Path& folder, int version, std::string_view attributes = "{}");
/// Gathers the metadata of all nodes into the root group's, where readers look first. Invalid if the root is
/// no group.
Status consolidate_zarr(const Path& store);

}  // namespace stoker::formats
