// Names with several dots. A sample's key ends at the first dot of its files' names, as WebDataset has it: of
// images called 2021.07.12.jpg the key would be 2021. They are packed as 2021_07_12.jpg instead. Used where
// the files of folders and lists are listed. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/pack/source.h"

namespace stoker::data {

/// How Source::not_carried has samples whose names were changed so.
constexpr std::string_view kDotsBecome = "names as they are: dots become _";

/// Gives files of one folder, sorted by their names, other names where those have dots too many, keeps their
/// own ones in `own_names`, and sorts them again. Files of an image that has but one dot in its name stay as
/// they are: they are one sample. So do those for which both is possible. Invalid, beginning with `where`,
/// when two samples would have one key.
Status join_dots(std::vector<SourceFile>& files, std::string_view where, std::vector<std::string>& own_names);

/// The same for an image that is a sample by itself, whatever lies beside it.
void join_dots(SourceFile& image, std::vector<std::string>& own_names);

/// Hands own names over to the source, whose tree then finds files by them. REQUIRES: a tree.
void keep_own_names(std::vector<std::string> own_names, Source& source);

}  // namespace stoker::data
