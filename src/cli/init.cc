// `stoker init [FILE]`: docs/commands/init.md
#include <filesystem>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "explain/draft/draft.h"
#include "explain/script/lint.h"
#include "format/manifest.h"
#include "job/starter.h"

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
    const Result<formats::Manifest> manifest = formats::read_manifest(folder / candidate);
    if (!manifest.ok()) continue;
    job::FoundDataset found{.path = candidate.string(), .width_max = manifest->images.width_max};
    for (const formats::SplitInfo& split : manifest->splits) found.splits.push_back(split.name);
    found.is_trainable = manifest->schema.has_labels && manifest->images.images > 0;
    return found;
  }
  return std::nullopt;
}

// A new file with this content, or none.
Status create_with(const Path& path, std::string_view content) {
  OK_OR_RETURN(file, File::create_new(path));
  Status status = file.write(content);
  if (status.ok()) status = file.close();
  if (!status.ok()) (void)remove_file(path);
  return status;
}

std::vector<std::string> found_things(const job::FolderFacts& facts) {
  std::vector<std::string> found;
  if (facts.script) found.push_back(*facts.script);
  if (facts.venv) found.push_back(*facts.venv + "/");
  if (facts.dataset) found.push_back(printable(facts.dataset->path) + "/");
  return found;
}

// The job file and those it names; nothing is written when one of them is there.
Status write_draft(const Path& path, const explain::Draft& draft) {
  std::vector<std::pair<Path, const std::string*>> all = {{path, &draft.job}};
  for (const explain::DraftFile& file : draft.files)
    all.emplace_back(path.parent_path() / file.name, &file.text);
  for (const auto& [each, text] : all) {
    if (path_exists(each)) {
      return exists("{}: is there already", printable(each.filename().string()))
          .cure("stoker init another.yaml --from SCRIPT");
    }
  }
  for (const auto& [each, text] : all) RETURN_IF_ERROR(create_with(each, *text));
  return {};
}

void print_draft(const std::string& file, const std::string& script, const explain::Draft& draft,
                 Output& out) {
  std::vector<std::string> names = {printable(file)};
  for (const explain::DraftFile& each : draft.files) names.push_back(printable(each.name));
  out.line("wrote {} from {}", join(names, ", "), printable(script));
  if (!draft.left.empty()) out.line("not carried over:");
  for (const explain::LeftBehind& each : draft.left)
    out.line("  line {:<4}{}: {}", each.line, each.what, each.why);
  out.line("  next: stoker check {}", shell_quote(file));
}

int init_from(const std::string& file, const std::string& script, Output& out) {
  std::error_code error;
  const Path path = std::filesystem::absolute(file, error).lexically_normal();
  if (error) return out.fail(posix_error(printable(file), error.value()));
  auto text = explain::load_script(script);
  if (!text) return out.fail(text.error());
  const explain::DraftPlace place{.stem = path.stem().string(), .environment = slurm::process_environment()};
  const auto draft = explain::draft_job(script, *std::move(text), place);
  if (!draft) return out.fail(draft.error());
  if (const Status status = write_draft(path, *draft); !status.ok()) return out.fail(status);
  print_draft(file, script, *draft, out);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const explain::DraftFile& each : draft->files) files.push_back(printable(each.name));
  nlohmann::ordered_json left = nlohmann::ordered_json::array();
  for (const explain::LeftBehind& each : draft->left)
    left.push_back({{"line", each.line}, {"what", each.what}, {"why", each.why}});
  out.json(json_text(nlohmann::ordered_json{{"job", printable(file)}, {"files", files}, {"left", left}}));
  return exit_code::kOk;
}

}  // namespace

int init(std::span<const std::string> words, Output& out) {
  std::string file = "job.yaml";
  std::string script;
  Arguments arguments("init",
                      "Writes a commented job file for the folder it lies in, or from a batch script.");
  arguments.optional_positional("FILE", &file, "what to write; must not exist [job.yaml]");
  arguments.option("--from", &script, "SCRIPT", "a batch script of your own, whose job it becomes");
  arguments.example("stoker init");
  arguments.example("stoker init --from train.sbatch");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (!script.empty()) return init_from(file, script, out);

  std::error_code error;
  const Path path = std::filesystem::absolute(file, error).lexically_normal();
  if (error) return out.fail(posix_error(printable(file), error.value()));
  job::FolderFacts facts = job::look_at_folder(path.parent_path());
  facts.dataset = find_dataset(path.parent_path());
  if (Status status = create_with(path, job::starter_text(facts)); !status.ok()) {
    if (status.code() != Code::exists) return out.fail(status);
    return out.fail(exists("{}: is there already", printable(file)).cure("stoker init another.yaml"));
  }
  const std::vector<std::string> found = found_things(facts);
  out.line(
      "wrote {} for this folder ({})", printable(file),
      found.empty() ? "found no script and no dataset: fill in what to run" : "found " + join(found, ", "));
  out.line("  next: stoker check {}", shell_quote(file));
  const nlohmann::ordered_json json = {{"job", printable(file)}, {"found", found}};
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
