// `stoker sweep page STUDY`: docs/commands/sweep-page.md
#include "base/file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "report/study/study_page.h"
#include "stoker/time.h"

namespace stoker::cli {

int sweep_page(std::span<const std::string> words, Output& out) {
  std::string text;
  std::string target;
  Arguments arguments("sweep page", "Write a page about a study.");
  add_study(arguments, &text);
  arguments.option("-o,--out", &target, "FILE",
                   "File of the page, or '-' (default: page.html in the study's folder)");
  arguments.example("stoker sweep page lr.yaml");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto study = open_study(text, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  const report::study::StudyView view = report::study::view_of(*study);
  const auto page = [&] { return report::study::study_page(*study, view, unix_seconds(RealClock().wall())); };
  if (target == "-") {
    out.raw(page());
  } else if (!out.is_json() || !target.empty()) {
    const Path file = target.empty() ? study->folder() / "page.html" : Path(target);
    if (const Status written = write_file(file, page()); !written.ok()) return out.fail(written);
    out.line("{}", report::study::study_sentence(view));
    out.line("  {}", printable(file.string()));
  }
  out.json(report::study::study_json(view));
  return exit_code::kOk;
}

}  // namespace stoker::cli
