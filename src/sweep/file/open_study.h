// Opens the study of a sweep file, or the study in a folder. Used by the commands and by the Python module.
// Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "sweep/study/study.h"

namespace stoker::sweep {

/// Whether a sweep file without a study gets one.
enum class MissingStudy { create, refuse };

/// A study, and lines for the user: keys of its file without an effect, damaged journals.
struct OpenedStudy {
  Study study;
  std::vector<std::string> notes;
  bool is_new = false;
};

/// The study in the folder `path`, or that of the sweep file `path`: the folder `<name>.study` beside it.
/// Invalid when the file no longer fits its study.
Result<OpenedStudy> open_study(const Path& path, MissingStudy missing);

/// The same for the text of a sweep file called `name`, whose study is in `folder`.
Result<OpenedStudy> open_study_text(const Path& folder, std::string_view name, std::string_view text,
                                    MissingStudy missing);

}  // namespace stoker::sweep
