// Names with several dots. A sample's key ends at the first dot, as in WebDataset: images named
// 2021.07.12.jpg would all have the key 2021. They are packed as 2021_07_12.jpg instead. Used when listing
// folders and lists. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sources/source.h"
#include "stoker/status.h"

namespace stoker::sources {

/// The entry of PackSource::skipped_fields for renamed samples.
constexpr std::string_view kDotsReplaced = "original file names (dots become _)";

/// Renames files with too many dots in a folder's sorted files, stores their names in `original_names`, and
/// sorts the files again. Files next to an image with a single dot are not renamed: they are one sample.
/// Neither are ambiguous names. Invalid, beginning with `where`, if two samples would have one key.
Status replace_dots(std::vector<SourceFile>& files, std::string_view where,
                    std::vector<std::string>& original_names);

/// The same for an image that is a sample regardless of its neighbours.
void replace_dots(SourceFile& image, std::vector<std::string>& original_names);

/// Moves the original names to the source, whose tree then finds files by them. REQUIRES: a tree.
void set_original_names(std::vector<std::string> original_names, PackSource& source);

}  // namespace stoker::sources
