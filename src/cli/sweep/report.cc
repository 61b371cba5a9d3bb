// `stoker sweep report STUDY [TRIAL STEP VALUE]`: docs/commands/sweep-report.md
#include "base/file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "report/study/study_page.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

struct ReportArguments {
  std::string study;
  std::string trial;
  std::string step;
  std::string value;
  std::string file;
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

int report_metric(const ReportArguments& o, Output& out) {
  if (o.value.empty())
    return out.fail(
        invalid("sweep report: trial {}: STEP and VALUE are needed", printable(o.trial))
            .cure("stoker sweep report {} {} 1 0.71", shell_quote(o.study), shell_quote(o.trial)));
  if (!o.file.empty())
    return out.fail(invalid("sweep report: --out is for the page of a study, without TRIAL"));
  const auto is_stopped = report_to_study(o, out);
  if (!is_stopped.ok()) return out.fail(is_stopped.error());
  out.line("{}", *is_stopped ? "stop" : "continue");
  out.json(format(R"({{"stop":{}}})", *is_stopped));
  return exit_code::kOk;
}

int write_study_page(const ReportArguments& o, Output& out) {
  const auto study = open_study(o.study, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  const report::study::StudyView view = report::study::view_of(*study);
  const bool is_for_stdout = o.file == "-";
  if (!is_for_stdout && (!out.is_json() || !o.file.empty())) {
    const Path file = o.file.empty() ? study->folder() / "report.html" : Path(o.file);
    const Status written =
        write_file(file, report::study::study_page(*study, view, unix_seconds(RealClock().wall())));
    if (!written.ok()) return out.fail(written);
    out.line("{}", report::study::study_sentence(view));
    out.line("  {}", printable(file.string()));
  }
  if (is_for_stdout) out.raw(report::study::study_page(*study, view, unix_seconds(RealClock().wall())));
  out.json(report::study::study_json(view));
  return exit_code::kOk;
}

}  // namespace

int sweep_report(std::span<const std::string> words, Output& out) {
  ReportArguments o;
  Arguments arguments(
      "sweep report",
      "Write a page about a study. With a trial, record its metric and print whether to stop it.");
  add_study(arguments, &o.study);
  arguments.optional_positional("TRIAL", &o.trial, "Number of a running trial that reports its metric");
  arguments.optional_positional("STEP", &o.step, "Step or epoch of the trial");
  arguments.optional_positional("VALUE", &o.value, "Value of the objective at this step");
  arguments.option("-o,--out", &o.file, "FILE",
                   "File of the page, or '-' (default: report.html in the study's folder)");
  arguments.example("stoker sweep report lr.yaml");
  arguments.example("stoker sweep report lr.yaml 1 1 0.71");
  if (const auto code = arguments.parse(words, out)) return *code;
  return o.trial.empty() ? write_study_page(o, out) : report_metric(o, out);
}

}  // namespace stoker::cli
