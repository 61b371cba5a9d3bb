// Reads the files of a step and verifies every byte: several threads check each block against its CRC-32C
// before it is used. Used by load and by verify. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::checkpoint {

/// One damage of a step.
struct StepDamage {
  std::string file;  ///< relative to the step folder
  std::string what;

  std::string text() const { return file + ": " + what; }
  bool operator==(const StepDamage&) const = default;
};

/// Destination of bytes [begin, end) of a piece; `begin` goes to `to`. Empty for none. Without `to` the bytes
/// are verified only.
struct Destination {
  std::byte* to = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
/// By file and piece, as in the manifest.
using Destinations = std::vector<std::vector<Destination>>;

/// Parts of a step to read.
struct PartFilter {
  bool model = true;
  bool optimizer = true;
  bool includes(StepPart part) const { return part == StepPart::model ? model : optimizer; }
};

/// Checks without reading data: files that are missing, have a wrong length or are not listed (PyTorch's
/// reader would open those).
std::vector<StepDamage> check_files(const Path& folder, const StepManifest& manifest, PartFilter parts = {});

/// check_files(); if it finds nothing, reads and verifies all data. At most one damage per file. After a stop
/// by `progress` the result is incomplete.
std::vector<StepDamage> verify_files(const Path& folder, const StepManifest& manifest, PartFilter parts,
                                     Progress& progress);

/// The same, directly into `places`, which contain unverified bytes until the return. Files without a
/// destination are skipped; of the remaining files only the header and the required blocks are read.
/// `opened` receives the files, for fill_files().
std::vector<StepDamage> read_files(const Path& folder, const StepManifest& manifest,
                                   const Destinations& places, Progress& progress, std::vector<File>& opened);

/// After read_files(): reads the blocks of `places` again, from the same open files, which remain readable
/// when the step is removed meanwhile.
std::vector<StepDamage> fill_files(const Path& folder, const StepManifest& manifest,
                                   const Destinations& places, Progress& progress, std::vector<File> opened);

/// The manifest of a step: not_found if there is no such folder, corrupt without a manifest.
Result<StepManifest> read_step_manifest(const Path& folder);

/// Corrupt "<folder>: <first damage> (and 1 more files)", with the verify command as cure.
Status damage_error(const Path& folder, const std::vector<StepDamage>& damages);

}  // namespace stoker::checkpoint
