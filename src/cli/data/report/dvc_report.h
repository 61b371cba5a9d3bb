// What commands print of .dvc files: of what a dataset was packed from, and beside the dataset itself.
// Thread-safe: no state.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "base/json/json.h"
#include "base/progress.h"
#include "data/pack/dvc/dvc.h"
#include "format/manifest.h"

namespace stoker::cli {

/// "images.dvc, MD5 23ec60fe, 4 files of 10 B".
std::string version_text(const formats::SourceVersion& version);
/// `dvc`, `md5`, `bytes`, `files`; null for none.
nlohmann::ordered_json version_json(const std::optional<formats::SourceVersion>& version);

/// What DVC says of a dataset, and how the dataset differs from it.
struct DvcState {
  std::optional<formats::SourceVersion> version;  ///< none: it says nothing
  data::DvcComparison compared;
  std::string cure;  ///< of a difference
};
Result<DvcState> dvc_state(const Path& dataset, data::DvcDepth depth, int threads, Progress& progress);
/// What version_json() has, `is_compared`, and `difference`: text or null.
nlohmann::ordered_json to_json(const DvcState& state);

}  // namespace stoker::cli
