// `stoker init [FILE]`: docs/commands/init.md
#include <filesystem>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "dataset/manifest.h"
#include "job/starter.h"
#include "script_lint/draft/draft.h"
#include "script_lint/lint.h"

namespace stoker::cli {
namespace {

// The first dataset in the folder or one level below it, by name.
std::optional<job::FoundDataset> find_dataset(const Path& folder) {
  std::vector<Path> candidates;
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names.ok()) return std::nullopt;
  for (const std::string& name : *names) {
    if (name.starts_with('.') || !folder_exists(folder / name)) continue;
    candidates.push_back(name);
  }
  for (const Path& candidate : candidates) {
    const Result<dataset::Manifest> manifest = dataset::read_manifest(folder / candidate);
    if (!manifest.ok()) continue;
    job::FoundDataset found{.path = candidate.string(), .width_max = manifest->images.width_max};
    for (const dataset::SplitInfo& split : manifest->splits) found.splits.push_back(split.name);
    found.is_trainable = manifest->schema.has_labels && manifest->images.images > 0;
    return found;
  }
  return std::nullopt;
}

// Creates a file with this content, or leaves no file.
Status create_with(const Path& path, std::string_view content) {
  STOKER_ASSIGN_OR_RETURN(file, File::create_new(path));
  Status status = file.write(content);
  if (status.ok()) status = file.close();
  if (!status.ok()) (void)remove_file(path);
  return status;
}

std::vector<std::string> found_items(const job::FolderInfo& facts) {
  std::vector<std::string> found;
  if (facts.script) found.push_back(*facts.script);
  if (facts.venv) found.push_back(*facts.venv + "/");
  if (facts.dataset) found.push_back(printable(facts.dataset->path) + "/");
  return found;
}

// Writes the job file and its companion files, unless one of them exists.
Status write_draft(const Path& path, const script_lint::Draft& draft) {
  std::vector<std::pair<Path, const std::string*>> all = {{path, &draft.job}};
  for (const script_lint::DraftFile& file : draft.files)
    all.emplace_back(path.parent_path() / file.name, &file.text);
  for (const auto& [each, text] : all) {
    if (path_exists(each)) {
      return exists("{}: already exists", printable(each.filename().string()))
          .cure("stoker init another.yaml --from SCRIPT");
    }
  }
  for (const auto& [each, text] : all) STOKER_RETURN_IF_ERROR(create_with(each, *text));
  return {};
}

void print_draft(const std::string& file, const std::string& script, const script_lint::Draft& draft,
                 Output& out) {
  std::vector<std::string> names = {printable(file)};
  for (const script_lint::DraftFile& each : draft.files) names.push_back(printable(each.name));
  out.line("wrote {} from {}", join(names, ", "), printable(script));
  if (!draft.unconverted.empty()) out.line("not converted:");
  for (const script_lint::Unconverted& each : draft.unconverted)
    out.line("  line {:<4}{}: {}", each.line, each.what, each.why);
  out.line("  next: stoker check {}", shell_quote(file));
}

int init_from(const std::string& file, const std::string& script, Output& out) {
  std::error_code error;
  const Path path = std::filesystem::absolute(file, error).lexically_normal();
  if (error) return out.fail(posix_error(printable(file), error.value()));
  auto text = script_lint::load_script(script);
  if (!text) return out.fail(text.error());
  const script_lint::DraftTarget target{.stem = path.stem().string(),
                                        .environment = slurm::process_environment()};
  const auto draft = script_lint::draft_job(script, *std::move(text), target);
  if (!draft) return out.fail(draft.error());
  if (const Status status = write_draft(path, *draft); !status.ok()) return out.fail(status);
  print_draft(file, script, *draft, out);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const script_lint::DraftFile& each : draft->files) files.push_back(printable(each.name));
  nlohmann::ordered_json left = nlohmann::ordered_json::array();
  for (const script_lint::Unconverted& each : draft->unconverted)
    left.push_back({{"line", each.line}, {"what", each.what}, {"why", each.why}});
  out.json(json_text(
      nlohmann::ordered_json{{"job", printable(file)}, {"files", files}, {"not_carried_over", left}}));
  return exit_code::kOk;
}

}  // namespace

int init(std::span<const std::string> words, Output& out) {
  std::string file = "job.yaml";
  std::string script;
  Arguments arguments("init",
                      "Write a commented job file for the current folder, or convert a batch script.");
  arguments.optional_positional("FILE", &file, "Job file to write; must not exist [job.yaml]");
  arguments.option("--from", &script, "SCRIPT", "Convert this batch script");
  arguments.example("stoker init");
  arguments.example("stoker init --from train.sbatch");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (!script.empty()) return init_from(file, script, out);

  std::error_code error;
  const Path path = std::filesystem::absolute(file, error).lexically_normal();
  if (error) return out.fail(posix_error(printable(file), error.value()));
  job::FolderInfo facts = job::inspect_folder(path.parent_path());
  facts.dataset = find_dataset(path.parent_path());
  if (Status status = create_with(path, job::starter_text(facts)); !status.ok()) {
    if (status.code() != Code::exists) return out.fail(status);
    return out.fail(exists("{}: already exists", printable(file)).cure("stoker init another.yaml"));
  }
  const std::vector<std::string> found = found_items(facts);
  out.line(
      "wrote {} for this folder ({})", printable(file),
      found.empty() ? "found no script and no dataset: fill in the command" : "found " + join(found, ", "));
  out.line("  next: stoker check {}", shell_quote(file));
  const nlohmann::ordered_json json = {{"job", printable(file)}, {"found", found}};
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
