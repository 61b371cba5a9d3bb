// The file of a sweep: its space, objectives, sampler and pruner in YAML, or a sweep file of Weights &
// Biases. docs/sweep-file.md lists the keys. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "sweep/file/trial_plan.h"
#include "sweep/study/definition.h"

namespace stoker::sweep {

/// A file that was read.
struct SweepFile {
  Definition definition;  ///< without an id
  TrialPlan plan;
  std::string storage;             ///< address of the storage; empty: the folder beside the file
  std::vector<std::string> notes;  ///< keys of a W&B file that have no effect here
};

/// Invalid lists up to ten errors, each with path:line:column and the line; NotFound if the file does not
/// exist.
Result<SweepFile> load_sweep(const Path& file);
/// The same from memory. `name`: in messages, and without its suffix the default of `name:`.
Result<SweepFile> parse_sweep(std::string_view name, std::string_view text);

}  // namespace stoker::sweep
