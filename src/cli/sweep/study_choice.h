// The study and the trial of a `stoker sweep` command. Used by the commands of this folder.
#pragma once

#include <string>

#include "stoker/status.h"
#include "sweep/file/open_study.h"

namespace stoker::cli {

class Arguments;
class Output;

/// Declares the argument STUDY.
void add_study(Arguments& arguments, std::string* target);

/// As sweep::open_study(), with its notes on standard error.
Result<sweep::Study> open_study(const std::string& text, sweep::MissingStudy missing, Output& out,
                                const sweep::NewStudyOptions& options = {});

/// A trial's number.
Result<sweep::TrialNumber> parse_trial(const std::string& text);

}  // namespace stoker::cli
