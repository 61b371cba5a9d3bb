// Finds the splits and classes of a source by its folders. Used to list sources; found and walked once, by
// one thread and its helpers. Plain values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sources/files/tree.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

/// A folder to walk recursively: a class, or a split's root without classes.
struct FolderWalk {
  SourceFolder top;
  std::string class_name;  ///< empty: no class
  bool is_deep = true;
  std::map<std::string, Listing> listed;  ///< already listed while finding the layout
  std::vector<SourceFolder> folders;
  std::vector<LeftOut> left_out;
  Status status;
};

/// The layout of a source, found by listing its first levels.
struct FolderLayout {
  std::string root;       ///< the folder with the splits or classes; "": the source itself
  bool is_guess = false;  ///< `root` holds only if each of its folders has images
  std::vector<std::string> splits;
  std::vector<std::string> paths;  ///< of the splits
  std::vector<FolderWalk> walks;
  std::set<std::string> classes;
  std::vector<LeftOut> left_out;
};

/// Whether the folder name is a split, case-insensitive: train, val, test, valid, validation.
bool is_split_name(std::string_view name);

/// Finds the layout and walks its folders. Invalid if two readings are possible, Cancelled on
/// stop_requested().
Result<FolderLayout> walk_layout(const SourceTree& tree, const SourceOptions& options,
                                 const Progress& progress);

}  // namespace stoker::sources
