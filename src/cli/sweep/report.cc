// `stoker sweep report STUDY TRIAL STEP VALUE`: docs/commands/sweep-report.md
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"

namespace stoker::cli {
namespace {

struct ReportArguments {
  std::string study;
  std::string trial;
  std::string step;
  std::string value;
};

Result<bool> report_to_study(const ReportArguments& o, Output& out) {
  STOKER_ASSIGN_OR_RETURN(number, parse_trial(o.trial));
  std::int64_t step = 0;
  if (!parse_number(o.step, &step)) return invalid("step '{}': is not a whole number", printable(o.step));
  double value = 0;
  if (!parse_number(o.value, &value)) return invalid("value '{}': is not a number", printable(o.value));
  STOKER_ASSIGN_OR_RETURN(study, open_study(o.study, sweep::MissingStudy::refuse, out));
  return study.report(number, step, value);
}

}  // namespace

int sweep_report(std::span<const std::string> words, Output& out) {
  ReportArguments o;
  Arguments arguments("sweep report", "Record the metric of a running trial and print whether to stop it.");
  add_study(arguments, &o.study);
  arguments.positional("TRIAL", &o.trial, "Number of the trial");
  arguments.positional("STEP", &o.step, "Step or epoch of the trial");
  arguments.positional("VALUE", &o.value, "Value of the objective at this step");
  arguments.example("stoker sweep report lr.yaml 1 1 0.71");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto is_stopped = report_to_study(o, out);
  if (!is_stopped.ok()) return out.fail(is_stopped.error());
  out.line("{}", *is_stopped ? "stop" : "continue");
  out.json(format(R"({{"stop":{}}})", *is_stopped));
  return exit_code::kOk;
}

}  // namespace stoker::cli
