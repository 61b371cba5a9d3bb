// `stoker sweep status STUDY`: docs/commands/sweep-status.md
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "cli/sweep/study_status.h"
#include "stoker/time.h"

namespace stoker::cli {

int sweep_status(std::span<const std::string> words, Output& out) {
  std::string text;
  Arguments arguments("sweep status",
                      "Show how a study proceeds: counts, best so far, pace, running trials.");
  add_study(arguments, &text);
  arguments.example("stoker sweep status lr.yaml");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto study = open_study(text, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  const double now = unix_seconds(RealClock().wall());
  print_study_status(*study, now, out);
  out.json(study_status_json(*study, now));
  return exit_code::kOk;
}

}  // namespace stoker::cli
