#include "cli/sweep/study_choice.h"

#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "sweep/file/sweep_file.h"

namespace stoker::cli {
namespace {

Result<sweep::Study> open_for_file(const Path& path, MissingStudy missing, Output& out) {
  STOKER_ASSIGN_OR_RETURN(file, sweep::load_sweep(path));
  for (const std::string& note : file.notes) out.note("{}: {}", path, note);
  const Path folder = path.parent_path() / (file.definition.name + ".study");
  if (missing == MissingStudy::create) {
    auto created = sweep::Study::create(folder, file.definition);
    if (created) out.note("{}: new study", folder);
    if (created || created.error().code() != Code::exists) return created;
  }
  STOKER_ASSIGN_OR_RETURN(study, sweep::Study::open(folder));
  sweep::Definition expected = file.definition;
  expected.id = study.definition().id;
  if (to_json(expected) != to_json(study.definition()))
    return invalid("{}: differs from its study {}, whose trials have the earlier definition", path, folder)
        .cure("name: {}-2", file.definition.name);
  return std::move(study);
}

}  // namespace

void add_study(Arguments& arguments, std::string* target) {
  arguments.positional("STUDY", target, "Sweep file, or folder of a study");
}

Result<sweep::Study> open_study(const std::string& text, MissingStudy missing, Output& out) {
  const Path path(text);
  auto study = folder_exists(path) ? sweep::Study::open(path) : open_for_file(path, missing, out);
  if (study && study->damaged() > 0)
    out.note("{}: {} damaged, left out", study->first_damaged(), counted(study->damaged(), "line"));
  return study;
}

Result<sweep::TrialNumber> parse_trial(const std::string& text) {
  sweep::TrialNumber number = 0;
  if (parse_number(text, &number)) return number;
  return invalid("'{}' is no number of a trial", printable(text));
}

}  // namespace stoker::cli
