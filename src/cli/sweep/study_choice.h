// The study of a `stoker sweep` command: a sweep file or the folder of a study. Used by the commands of this
// folder.
#pragma once

#include <string>

#include "stoker/status.h"
#include "sweep/study/study.h"

namespace stoker::cli {

class Arguments;
class Output;

/// Declares the argument STUDY.
void add_study(Arguments& arguments, std::string* target);

/// Whether a sweep file without a study gets one.
enum class MissingStudy { create, refuse };
/// Opens the study in the folder `text`, or that of the sweep file `text`: `<name>.study` beside it. Notes of
/// the file, and damaged lines of journals, go to `out`. Invalid when the file no longer fits its study.
Result<sweep::Study> open_study(const std::string& text, MissingStudy missing, Output& out);

/// "trial 12" or "12" as its number.
Result<sweep::TrialNumber> parse_trial(const std::string& text);

}  // namespace stoker::cli
