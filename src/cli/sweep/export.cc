// `stoker sweep export STUDY`: docs/commands/sweep-export.md
#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "sweep/results/trial_table.h"

namespace stoker::cli {
namespace {

constexpr std::array<std::string_view, 3> kFormats = {"csv", "json", "markdown"};

std::string exported(const sweep::Study& study, std::string_view file_format) {
  std::vector<const sweep::StudyTrial*> trials;
  for (const sweep::StudyTrial& trial : study.trials()) trials.push_back(&trial);
  return sweep::exported(study.definition(), trials, file_format);
}

}  // namespace

int sweep_export(std::span<const std::string> words, Output& out) {
  std::string text;
  std::string file_format = "csv";
  std::string file;
  Arguments arguments("sweep export", "Write all trials of a study as a table.");
  add_study(arguments, &text);
  arguments.option("--format", &file_format, "FORMAT", "Format of the table: csv, json or markdown");
  arguments.choices(kFormats);
  arguments.option("--to", &file, "FILE", "File to write (default: standard output)");
  arguments.example("stoker sweep export lr.yaml --format markdown");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (std::find(kFormats.begin(), kFormats.end(), file_format) == kFormats.end())
    return out.fail(
        invalid("--format '{}': is unknown{}", printable(file_format), suggestion(file_format, kFormats)));
  const auto study = open_study(text, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  const std::string content = exported(*study, file_format);
  if (!file.empty()) {
    if (const Status written = write_file(file, content); !written.ok()) return out.fail(written);
    out.line("{}: {}", file, counted(study->trials().size(), "trial"));
  } else {
    out.raw(content);
  }
  out.json(exported(*study, "json"));
  return exit_code::kOk;
}

}  // namespace stoker::cli
