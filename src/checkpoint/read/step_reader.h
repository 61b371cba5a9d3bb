// Reads the files of a step and checks every byte on the way: block by block, several threads, each block
// against its CRC-32C before anybody sees it. Used by load and by verify. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "checkpoint/manifest.h"

namespace stoker::checkpoint {

/// One thing wrong with a step.
struct Damage {
  std::string file;  ///< relative to the step folder
  std::string what;

  std::string text() const { return file + ": " + what; }
  bool operator==(const Damage&) const = default;
};

/// Where bytes [begin, end) of a piece go; `begin` goes to `to`. Nowhere when there are none.
struct Destination {
  std::byte* to = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
/// By file and piece, as in the manifest.
using Destinations = std::vector<std::vector<Destination>>;

/// Which parts of a step to look at.
struct PartFilter {
  bool model = true;
  bool optimizer = true;
  bool includes(Part part) const { return part == Part::model ? model : optimizer; }
};

/// What can be seen without reading data: files that are missing, of another length, or not listed (PyTorch's
/// reader would open those).
std::vector<Damage> check_files(const Path& folder, const Manifest& manifest, PartFilter parts = {});

/// check_files(), and if nothing is wrong there reads and checks all data. At most one damage a file. When
/// `progress` asks to stop, what was found until then: ask it before trusting that nothing was.
std::vector<Damage> verify_files(const Path& folder, const Manifest& manifest, PartFilter parts,
                                 Progress& progress);

/// The same, straight into `places`, which hold unchecked bytes until the return. Of files without a place
/// nothing is looked at, of the others the header and the blocks that hold what is wanted.
std::vector<Damage> read_files(const Path& folder, const Manifest& manifest, const Destinations& places,
                               Progress& progress);

/// The manifest of a step that somebody wants to read: not_found when there is no such folder, corrupt when
/// it has none.
Result<Manifest> manifest_of_step(const Path& folder);

/// Corrupt "<folder>: <first damage> (and 1 more files)", with the command that names them all.
Status damage_error(const Path& folder, const std::vector<Damage>& damages);

}  // namespace stoker::checkpoint
