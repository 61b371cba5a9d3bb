#include "sweep/file/open_study.h"

#include "base/language/counted.h"
#include "sweep/file/sweep_file.h"

namespace stoker::sweep {
namespace {

OpenedStudy with_notes(Study study, std::vector<std::string> notes, bool is_new = false) {
  if (study.damaged() > 0)
    notes.push_back(
        format("{}: {} damaged, left out", study.first_damaged(), counted(study.damaged(), "line")));
  return {std::move(study), std::move(notes), is_new};
}

Result<OpenedStudy> open_for(const Path& folder, std::string_view name, SweepFile file,
                             MissingStudy missing) {
  std::vector<std::string> notes;
  for (const std::string& note : file.notes) notes.push_back(format("{}: {}", name, note));
  if (missing == MissingStudy::create) {
    auto created = Study::create(folder, file.definition);
    if (created) {
      constexpr bool kIsNew = true;
      return with_notes(*std::move(created), std::move(notes), kIsNew);
    }
    if (created.error().code() != Code::exists) return std::move(created).error();
  }
  STOKER_ASSIGN_OR_RETURN(study, Study::open(folder));
  file.definition.id = study.definition().id;
  if (to_json(file.definition) != to_json(study.definition()))
    return invalid("{}: differs from its study {}, whose trials have the earlier definition", name, folder)
        .cure("name: {}-2", file.definition.name);
  return with_notes(std::move(study), std::move(notes));
}

}  // namespace

Result<OpenedStudy> open_study(const Path& path, MissingStudy missing) {
  if (folder_exists(path)) {
    STOKER_ASSIGN_OR_RETURN(study, Study::open(path));
    return with_notes(std::move(study), {});
  }
  STOKER_ASSIGN_OR_RETURN(file, load_sweep(path));
  const Path folder = path.parent_path() / (file.definition.name + ".study");
  return open_for(folder, path.string(), std::move(file), missing);
}

Result<OpenedStudy> open_study_text(const Path& folder, std::string_view name, std::string_view text,
                                    MissingStudy missing) {
  STOKER_ASSIGN_OR_RETURN(file, parse_sweep(name, text));
  return open_for(folder, name, std::move(file), missing);
}

}  // namespace stoker::sweep
