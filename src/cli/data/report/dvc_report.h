// Output about .dvc files: of a dataset's source, and of the dataset itself. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "base/json/json.h"
#include "dataset/manifest.h"
#include "pack/dvc/dvc.h"
#include "stoker/progress.h"

namespace stoker::cli {

/// "images.dvc, MD5 23ec60fe, 4 files of 10 B".
std::string version_text(const dataset::SourceVersion& version);
/// `dvc`, `md5`, `bytes`, `files`; null for none.
nlohmann::ordered_json version_json(const std::optional<dataset::SourceVersion>& version);

/// The DVC version of a dataset, and its differences.
struct DvcState {
  std::optional<dataset::SourceVersion> version;  ///< empty: no DVC file
  pack::DvcComparison compared;
  std::string cure;  ///< for a difference
};
Result<DvcState> dvc_state(const Path& dataset, pack::DvcDepth depth, int threads, Progress& progress);
/// The fields of version_json(), `is_compared`, and `difference`: text or null.
nlohmann::ordered_json to_json(const DvcState& state);

}  // namespace stoker::cli
