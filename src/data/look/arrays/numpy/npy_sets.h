// Which arrays of NumPy's files (.npy, .npz) have rows that belong together: a shard each. What is a split
// and what an array is told by the names. Used where shards are found, by data index and by pack. Blocks on
// the storage: archives are opened. Thread-safe: no state.
// Rules: docs/formats/sample-arrays.md#numpys-files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/zip.h"

namespace stoker::data {

struct NpySet {
  struct Array {
    std::string name;
    std::string file;
    std::string member;  ///< of an archive
  };
  std::string file;  ///< the shard is called by: its first one
  std::string split;
  std::string stem;  ///< begins the keys of its samples
  std::vector<Array> arrays;
};

/// Those of these files of a folder that are called `.npy` or `.npz`, by the names of their shards. Invalid
/// where they are of both kinds, for arrays that one set has and another lacks, and for archives that hold
/// none; Corrupt for damaged ones.
Result<std::vector<NpySet>> npy_sets(const Path& folder, const std::vector<std::string>& files);

/// The same of files that are read where they lie, a set each. Invalid, with a cure, for an archive that
/// holds several splits.
Result<std::vector<NpySet>> npy_shards(const Path& folder, const std::vector<std::string>& files);

/// An archive, and the file it reads.
struct NpzArchive {
  std::shared_ptr<const File> file;  ///< shared with `zip`
  formats::ZipReader zip;
};
Result<NpzArchive> open_npz(const Path& file);

}  // namespace stoker::data
