#include "sweep/file/open_study.h"

#include <algorithm>

#include "base/enum_names.h"
#include "base/file.h"
#include "base/language/counted.h"
#include "sweep/file/hydra_override.h"
#include "sweep/file/sweep_file.h"
#include "sweep/file/warm_start.h"
#include "sweep/storage/optuna_storage.h"

namespace stoker::sweep {
namespace {

OpenedStudy with_notes(Study study, std::vector<std::string> notes, bool is_new = false) {
  if (study.damaged() > 0)
    notes.push_back(
        format("{}: {} damaged, left out", study.first_damaged(), counted(study.damaged(), "line")));
  if (study.outside() > 0)
    notes.push_back(format("{}: {} outside the space left out", shown_url(study.location()),
                           counted(study.outside(), "trial")));
  return {std::move(study), std::move(notes), is_new};
}

Status no_new_study(std::string_view study) {
  return exists("{}: is not new (--warm-start, --param and --objective are for a new study)", study);
}

// A sweep file, and where its study and its relative paths are.
struct StudyChoice {
  Path folder;
  std::string name;  // of the file, in messages
  Path base;
  std::optional<StorageUrl> storage;
};

// An address that names a study.
Result<StorageUrl> study_url(std::string_view text) {
  auto url = parse_storage_url(text);
  if (url && url->study.empty())
    return invalid("{}: names no study", shown_url(url->url)).cure("{}#name", shown_url(url->url));
  return url;
}

Status choose_storage(StudyChoice& choice, const SweepFile& file) {
  if (file.storage.empty()) return {};
  auto url = parse_storage_url(file.storage);
  if (!url) return std::move(url).error().with_context(format("{}: storage", choice.name));
  if (url->study.empty()) url->study = file.definition.name;
  choice.storage = *std::move(url);
  return {};
}

Result<OpenedStudy> create_for(const StudyChoice& choice, Definition definition,
                               std::vector<std::string> notes) {
  // A study keeps its sampler: a name that Optuna does not know must not get there.
  if (definition.sampler == SamplerKind::optuna)
    STOKER_RETURN_IF_ERROR(OptunaProposer(definition.optuna, definition.seed).prepare());
  STOKER_ASSIGN_OR_RETURN(prior, read_prior_trials(definition, choice.base));
  notes.insert(notes.end(), prior.notes.begin(), prior.notes.end());
  if (choice.storage) {
    definition.id = random_name(12);
    definition.prior_trials = prior.trials.size();
    const WantedStudy wanted{std::move(definition), std::move(prior.trials)};
    STOKER_ASSIGN_OR_RETURN(stored,
                            open_stored_study(*choice.storage, choice.folder, &wanted, MissingStudy::create));
    return with_notes(std::move(stored.study), std::move(notes), stored.is_new);
  }
  STOKER_ASSIGN_OR_RETURN(study, Study::create(choice.folder, std::move(definition), prior.trials));
  constexpr bool kIsNew = true;
  return with_notes(std::move(study), std::move(notes), kIsNew);
}

// Reading the sources of a warm start takes time, and they may be gone. Else creation finds the study.
Result<bool> is_missing(const StudyChoice& choice, const Definition& definition, MissingStudy missing) {
  if (missing == MissingStudy::refuse) return false;
  if (!choice.storage) return !Study::is_in(choice.folder);
  if (definition.warm_start.empty()) return true;
  STOKER_ASSIGN_OR_RETURN(is_known, has_stored_study(*choice.storage));
  return !is_known;
}

Result<Study> open_existing(const StudyChoice& choice, const Definition& definition) {
  if (!choice.storage) return Study::open(choice.folder);
  const WantedStudy wanted{definition, {}};
  STOKER_ASSIGN_OR_RETURN(stored,
                          open_stored_study(*choice.storage, choice.folder, &wanted, MissingStudy::refuse));
  return std::move(stored.study);
}

// Whether the study's sources begin with the file's sources: options of its creation may have added more.
bool has_sources(const Definition& study, const Definition& file) {
  return study.warm_start.size() >= file.warm_start.size() &&
         std::equal(file.warm_start.begin(), file.warm_start.end(), study.warm_start.begin());
}

void add_sources(Definition& definition, const NewStudyOptions& options) {
  for (const std::string& source : options.warm_start)
    definition.warm_start.push_back(std::filesystem::absolute(source).string());
}

// "loss=minimize".
Result<Objective> parse_objective(std::string_view text) {
  const std::size_t equals = text.find('=');
  const auto goal = enum_named<Goal>(equals == std::string_view::npos ? "" : text.substr(equals + 1));
  if (goal) return Objective{std::string(text.substr(0, equals)), *goal};
  return invalid("--objective '{}': is not NAME=minimize or NAME=maximize", printable(text))
      .cure("--objective loss=minimize");
}

Result<OpenedStudy> create_from_options(const Path& path, const NewStudyOptions& options) {
  StudyChoice choice{.folder = path, .name = path.string(), .base = {}, .storage = {}};
  Definition definition;
  definition.name = path.stem().string();
  if (is_storage_url(choice.name)) {
    STOKER_ASSIGN_OR_RETURN(url, study_url(choice.name));
    definition.name = url.study;
    choice.folder = url.study + ".study";
    choice.storage = url;
  } else if (Study::is_in(path)) {
    return no_new_study(choice.name);
  } else if (path.extension() == ".yaml" || path.extension() == ".yml") {
    return invalid("{}: is a sweep file (--param is for a study without one)", choice.name)
        .cure("stoker sweep ask {}.study", definition.name);
  }
  std::vector<Parameter> parameters;
  for (const std::string& text : options.parameters) {
    auto parameter = parse_hydra_override(text);
    if (!parameter) return std::move(parameter).error().with_context("--param");
    parameters.push_back(*std::move(parameter));
  }
  STOKER_ASSIGN_OR_RETURN(space, Space::create(std::move(parameters)));
  definition.space = space;
  for (const std::string& text : options.objectives) {
    STOKER_ASSIGN_OR_RETURN(objective, parse_objective(text));
    definition.objectives.push_back(objective);
  }
  if (definition.objectives.empty())
    return invalid("{}: no objective", choice.name).cure("--objective loss=minimize");
  add_sources(definition, options);
  STOKER_RETURN_IF_ERROR(check(definition));
  STOKER_ASSIGN_OR_RETURN(created, create_for(choice, std::move(definition), {}));
  if (!created.is_new) return no_new_study(choice.name);
  return std::move(created);
}

Result<OpenedStudy> open_for(const StudyChoice& choice, SweepFile file, MissingStudy missing,
                             const NewStudyOptions& options) {
  std::vector<std::string> notes;
  for (const std::string& note : file.notes) notes.push_back(format("{}: {}", choice.name, note));
  Definition definition = file.definition;
  add_sources(definition, options);
  STOKER_ASSIGN_OR_RETURN(may_create, is_missing(choice, definition, missing));
  std::optional<Study> study;
  if (may_create) {
    auto created = create_for(choice, definition, notes);
    if (created && created->is_new) return created;
    if (!created && created.error().code() != Code::exists) return created;
    if (created) study = std::move(created->study);
  }
  if (!study) {
    STOKER_ASSIGN_OR_RETURN(existing, open_existing(choice, file.definition));
    study = std::move(existing);
  }
  if (options.has_any()) return no_new_study(shown_url(study->location()));
  const Definition& known = study->definition();
  file.definition.id = known.id;
  if (has_sources(known, file.definition)) {
    file.definition.warm_start = known.warm_start;
    file.definition.prior_trials = known.prior_trials;
  }
  if (to_json(file.definition) != to_json(known))
    return invalid("{}: differs from its study {}, whose trials have the earlier definition", choice.name,
                   shown_url(study->location()))
        .cure("name: {}-2", file.definition.name);
  return with_notes(*std::move(study), std::move(notes));
}

}  // namespace

Result<OpenedStudy> open_study(const Path& path, MissingStudy missing, const NewStudyOptions& options) {
  if (!options.parameters.empty() || !options.objectives.empty()) return create_from_options(path, options);
  if (is_storage_url(path.string())) {
    STOKER_ASSIGN_OR_RETURN(url, study_url(path.string()));
    if (options.has_any()) return no_new_study(shown_url(path.string()));
    STOKER_ASSIGN_OR_RETURN(stored,
                            open_stored_study(url, url.study + ".study", nullptr, MissingStudy::refuse));
    return with_notes(std::move(stored.study), {});
  }
  if (folder_exists(path)) {
    if (options.has_any()) return no_new_study(path.string());
    STOKER_ASSIGN_OR_RETURN(study, Study::open(path));
    return with_notes(std::move(study), {});
  }
  STOKER_ASSIGN_OR_RETURN(file, load_sweep(path));
  StudyChoice choice{.folder = path.parent_path() / (file.definition.name + ".study"),
                     .name = path.string(),
                     .base = path.parent_path(),
                     .storage = {}};
  STOKER_RETURN_IF_ERROR(choose_storage(choice, file));
  return open_for(choice, std::move(file), missing, options);
}

Result<OpenedStudy> open_study_text(const Path& folder, std::string_view name, std::string_view text,
                                    MissingStudy missing) {
  STOKER_ASSIGN_OR_RETURN(file, parse_sweep(name, text));
  StudyChoice choice{.folder = folder, .name = std::string(name), .base = {}, .storage = {}};
  STOKER_RETURN_IF_ERROR(choose_storage(choice, file));
  return open_for(choice, std::move(file), missing, {});
}

}  // namespace stoker::sweep
