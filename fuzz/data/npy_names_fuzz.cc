// npy_sets and npy_grids on any file names, one per line: each .npy file in at most one shard, with arrays of
// different names, or an error. Without archives, which would be opened.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "sources/arrays/grid.h"
#include "sources/arrays/npy_sets.h"
#include "sources/shard_scan.h"
#include "stoker/text.h"

namespace {

using Names = std::vector<std::string>;

void check_sets(const Names& names) {
  const auto sets = stoker::sources::npy_sets("/nowhere", names);
  if (!sets.ok()) return;
  std::set<std::string> seen;
  for (const auto& set : *sets) {
    std::set<std::string> arrays;
    if (set.arrays.empty() || set.arrays.size() != sets->front().arrays.size()) std::abort();
    for (const auto& array : set.arrays) {
      const bool is_there = std::find(names.begin(), names.end(), array.file) != names.end();
      if (!is_there || array.name.empty() || !arrays.insert(array.name).second ||
          !seen.insert(array.file).second)
        std::abort();
    }
  }
}

void check_grids(const Names& names, const Names& variables) {
  for (const std::string& file : stoker::sources::npy_grids(names, variables)) {
    const std::string_view before = stoker::sources::before_variable(file, variables);
    if (!file.starts_with(before) || std::find(names.begin(), names.end(), file) == names.end()) std::abort();
    if (!variables.empty() && file != std::string(before) + variables[0] + ".npy") std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Names names;
  for (const std::string_view line : stoker::split({reinterpret_cast<const char*>(data), size}, '\n')) {
    const std::string name(line);
    // File names in a folder are unique.
    if (name.empty() || stoker::sources::is_npz(name) ||
        std::find(names.begin(), names.end(), name) != names.end())
      continue;
    names.push_back(name);
  }
  check_sets(names);
  check_grids(names, {});
  if (!names.empty()) check_grids(names, {names[0]});
  return 0;
}
