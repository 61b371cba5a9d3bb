#include "cli/sweep/study_choice.h"

#include "cli/arguments.h"
#include "cli/output.h"
#include "sweep/storage/storage_url.h"

namespace stoker::cli {

void add_study(Arguments& arguments, std::string* target) {
  arguments.positional("STUDY", target,
                       "Sweep file, folder of a study, or address of a study in a storage of Optuna");
}

Result<sweep::Study> open_study(const std::string& text, sweep::MissingStudy missing, Output& out,
                                const sweep::NewStudyOptions& options) {
  STOKER_ASSIGN_OR_RETURN(opened, sweep::open_study(text, missing, options));
  for (const std::string& note : opened.notes) out.note("{}", note);
  if (opened.is_new) out.note("{}: new study", sweep::shown_url(opened.study.location()));
  return std::move(opened.study);
}

Result<sweep::TrialNumber> parse_trial(const std::string& text) {
  sweep::TrialNumber number = 0;
  if (parse_number(text, &number)) return number;
  return invalid("'{}' is no number of a trial", printable(text));
}

}  // namespace stoker::cli
