// A Zarr hierarchy in a folder or a zip archive: its arrays and groups, and their metadata, consolidated or
// not. Used by readers and writers of arrays. Thread-safe: every call reads the files again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/zarr/files.h"
#include "arrays/zarr/metadata.h"
#include "base/file.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// A node of a hierarchy.
struct ZarrNode {
  enum class Kind { group, array };
  std::string path;  ///< from the root: "", "train/images"
  Kind kind = Kind::array;
  int version = 3;
  bool operator==(const ZarrNode&) const = default;
};

/// The reason that a node's path is refused, or "": it is absolute, has an empty, "." or ".." part, a
/// control byte, or is too long. A valid path stays below the store's folder.
std::string_view unsafe_node(std::string_view path);

/// The metadata of the array at `path` ("" for the store itself), from its own file or the store's
/// consolidated metadata. NotFound without either, Invalid for a group or an unsafe path. Errors begin with
/// the file's name.
Result<ZarrMetadata> read_zarr_metadata(const Path& store, std::string_view path);
Result<ZarrMetadata> read_zarr_metadata(const ZarrFiles& files, std::string_view path);

/// All nodes, sorted by path: from the consolidated metadata, else by walking the folders (not into chunk
/// folders). NotFound if the folder holds no hierarchy.
Result<std::vector<ZarrNode>> list_zarr(const Path& store);
Result<std::vector<ZarrNode>> list_zarr(const ZarrFiles& files);

/// Writes a group's metadata unless it exists. Parents do not become groups.
Status write_zarr_group(const Path& folder, int version, std::string_view attributes = "{}");
/// Consolidates the metadata of all nodes in the root group's, which readers read first. Invalid if the root
/// is not a group.
Status consolidate_zarr(const Path& store);

}  // namespace stoker::arrays
