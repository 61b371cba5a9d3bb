// Opens the study of a sweep file, or the study in a folder. Used by the commands and by the Python module.
// Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "sweep/study/study.h"

namespace stoker::sweep {

/// For a study that is created.
struct NewStudyOptions {
  std::vector<std::string> warm_start;  ///< in addition to the file's; relative to the current folder
  std::vector<std::string> parameters;  ///< instead of a file: in Hydra's grammar (hydra_override.h)
  std::vector<std::string> objectives;  ///< with parameters: "loss=minimize"

  bool has_any() const { return !warm_start.empty() || !parameters.empty() || !objectives.empty(); }
};

/// A study, and lines for the user: keys of its file without an effect, damaged journals.
struct OpenedStudy {
  Study study;
  std::vector<std::string> notes;
  bool is_new = false;
};

/// The study in the folder `path`, at the address `path` of a storage (storage/storage_url.h), or that of the
/// sweep file `path`: in its storage, or the folder `<name>.study` beside it.
/// Invalid when the file no longer fits its study, Exists when there are options and there is a study.
/// With NewStudyOptions::parameters, a new study at the folder or address `path`.
Result<OpenedStudy> open_study(const Path& path, MissingStudy missing, const NewStudyOptions& options = {});

/// The same for the text of a sweep file called `name`, whose study is in `folder`. Its paths are relative to
/// the current folder.
Result<OpenedStudy> open_study_text(const Path& folder, std::string_view name, std::string_view text,
                                    MissingStudy missing);

}  // namespace stoker::sweep
