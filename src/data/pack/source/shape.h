// Which splits and classes a source has by its folders. Used where sources are listed; found and walked once,
// by one thread and its helpers. Plain values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "data/pack/source/tree.h"

namespace stoker::data {

/// One folder to be walked with all below it: a class, or a split's root without its classes.
struct FolderWalk {
  SourceFolder top;
  std::string class_name;  ///< empty: no class
  bool is_deep = true;
  std::map<std::string, Listing> listed;  ///< folders that were listed to find the shape: once is enough
  std::vector<SourceFolder> folders;
  std::vector<LeftOut> left_out;
  Status status;
};

/// A source's shape, found by listing its first levels.
struct SourceShape {
  std::string root;       ///< the folder that splits or classes lie in; "": the source itself
  bool is_guess = false;  ///< the root is one if there are images in each of its folders
  std::vector<std::string> splits;
  std::vector<std::string> paths;  ///< of the splits
  std::vector<FolderWalk> walks;
  std::set<std::string> classes;
  std::vector<LeftOut> left_out;
};

/// Finds the shape and walks its folders. Invalid where two readings are possible, Cancelled when `progress`
/// says stop.
Result<SourceShape> walk_shape(const SourceTree& tree, const SourceOptions& options,
                               const Progress& progress);

}  // namespace stoker::data
