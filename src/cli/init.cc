// `stoker init [FILE]`: docs/commands/init.md
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "dataset/manifest.h"
#include "draft/draft.h"
#include "job/starter.h"
#include "script_lint/lint.h"
#include "sources/source.h"

namespace stoker::cli {
namespace {

// Names of the folders inside `folder`, in order; hidden ones are skipped.
std::vector<std::string> folders_in(const Path& folder) {
  std::vector<std::string> folders;
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names.ok()) return folders;
  for (const std::string& name : *names) {
    if (!name.starts_with('.') && folder_exists(folder / name)) folders.push_back(name);
  }
  return folders;
}

// The datasets one level below the folder, by name.
std::vector<job::FoundDataset> find_datasets(const Path& folder) {
  std::vector<job::FoundDataset> datasets;
  for (const std::string& name : folders_in(folder)) {
    const Result<dataset::Manifest> manifest = dataset::read_manifest(folder / name);
    if (!manifest.ok()) continue;
    job::FoundDataset found{.path = name, .width_max = manifest->images.width_max};
    for (const dataset::SplitInfo& split : manifest->splits) found.splits.push_back(split.name);
    found.is_trainable = manifest->schema.has_labels && manifest->images.images > 0;
    datasets.push_back(std::move(found));
  }
  return datasets;
}

bool contains_images(const Path& folder) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  return names.ok() && std::count_if(names->begin(), names->end(), [](const std::string& name) {
                         return sources::is_image_extension(sources::extension_of(name));
                       }) >= 2;  // one is a logo or a figure
}

// Whether several folders inside `folder` contain images, as class folders do.
bool contains_classes(const Path& folder) {
  constexpr std::size_t kEnough = 20;  // of many empty or unrelated folders
  std::vector<std::string> names = folders_in(folder);
  names.resize(std::min(names.size(), kEnough));
  return std::count_if(names.begin(), names.end(),
                       [&](const std::string& name) { return contains_images(folder / name); }) >= 2;
}

// `folder` as an image folder: DIR/x.jpg, DIR/class/x.jpg or DIR/split/class/x.jpg.
std::optional<job::FoundImages> inspect_images(const Path& folder) {
  job::FoundImages found;
  for (const std::string& name : folders_in(folder)) {
    if (contains_classes(folder / name)) found.splits.push_back(name);
  }
  found.is_labelled = !found.splits.empty() || contains_classes(folder);
  if (!found.is_labelled && !contains_images(folder)) return std::nullopt;
  return found;
}

// The image folder to pack: the first one inside `folder`, or `folder` itself if it has class folders.
std::optional<job::FoundImages> find_images(const Path& folder) {
  std::optional<job::FoundImages> found;
  for (const std::string& name : folders_in(folder)) {
    found = inspect_images(folder / name);
    if (!found) continue;
    found->path = name;
    found->packed = name + "-packed";
    break;
  }
  const std::vector<std::string> folders = folders_in(folder);
  const bool is_all_images =
      folders.size() > 1 && std::all_of(folders.begin(), folders.end(), [&](const std::string& name) {
        return contains_images(folder / name);
      });
  if (!found || found->is_labelled || !is_all_images) return found;
  const std::string name = folder.filename().string();
  return job::FoundImages{.path = ".", .packed = "../" + name + "-packed", .splits = {}, .is_labelled = true};
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
  for (const job::FoundDataset& dataset : facts.datasets) found.push_back(printable(dataset.path) + "/");
  if (facts.images) {
    const bool is_here = facts.images->path == ".";
    found.push_back(is_here ? "images in class folders" : printable(facts.images->path) + "/ with images");
  }
  return found;
}

// Writes the job file and its companion files, unless one of them exists.
Status write_draft(const Path& path, const draft::Draft& draft) {
  std::vector<std::pair<Path, const std::string*>> all = {{path, &draft.job}};
  for (const draft::DraftFile& file : draft.files)
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

void print_draft(const std::string& file, const std::string& script, const draft::Draft& draft, Output& out) {
  std::vector<std::string> names = {printable(file)};
  for (const draft::DraftFile& each : draft.files) names.push_back(printable(each.name));
  out.line("wrote {} from {}", join(names, ", "), printable(script));
  if (!draft.unconverted.empty()) out.line("not converted:");
  for (const draft::Unconverted& each : draft.unconverted)
    out.line("  line {:<4}{}: {}", each.line, each.what, each.why);
  out.line("  next: stoker check {}", shell_quote(file));
}

int init_from(const std::string& file, const std::string& script, Output& out) {
  std::error_code error;
  const Path path = std::filesystem::absolute(file, error).lexically_normal();
  if (error) return out.fail(posix_error(printable(file), error.value()));
  auto text = script_lint::load_script(script);
  if (!text) return out.fail(text.error());
  const draft::DraftTarget target{.stem = path.stem().string(), .environment = slurm::process_environment()};
  const auto draft = draft::draft_job(script, *std::move(text), target);
  if (!draft) return out.fail(draft.error());
  if (const Status status = write_draft(path, *draft); !status.ok()) return out.fail(status);
  print_draft(file, script, *draft, out);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const draft::DraftFile& each : draft->files) files.push_back(printable(each.name));
  nlohmann::ordered_json left = nlohmann::ordered_json::array();
  for (const draft::Unconverted& each : draft->unconverted)
    left.push_back({{"line", each.line}, {"what", each.what}, {"why", each.why}});
  out.json(json_text(
      nlohmann::ordered_json{{"job", printable(file)}, {"files", files}, {"not_carried_over", left}}));
  return exit_code::kOk;
}

void print_next(const std::string& file, const job::FolderInfo& facts, Output& out) {
  if (facts.images) {
    out.line("  next: stoker data pack {} {}", shell_quote(facts.images->path),
             shell_quote(facts.images->packed));
    if (!facts.images->is_labelled)
      out.line("  the built-in trainer needs labels (class folders or a list): fill in the command in {}",
               printable(file));
    out.line("  then: stoker check {}", shell_quote(file));
  } else {
    out.line("  next: stoker check {}", shell_quote(file));
  }
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
  if (file == "-")
    return out.fail(invalid("-: a job file is a file, not standard output (FILE)").cure("./- for that name"));
  if (!script.empty()) return init_from(file, script, out);

  std::error_code error;
  const Path path = std::filesystem::absolute(file, error).lexically_normal();
  if (error) return out.fail(posix_error(printable(file), error.value()));
  job::FolderInfo facts = job::inspect_folder(path.parent_path());
  facts.datasets = find_datasets(path.parent_path());
  if (!facts.script && facts.datasets.empty()) facts.images = find_images(path.parent_path());
  if (Status status = create_with(path, job::starter_text(facts)); !status.ok()) {
    if (status.code() != Code::exists) return out.fail(status);
    return out.fail(exists("{}: already exists", printable(file)).cure("stoker init another.yaml"));
  }
  const std::vector<std::string> found = found_items(facts);
  out.line(
      "wrote {} for this folder ({})", printable(file),
      found.empty() ? "found no script and no dataset: fill in the command" : "found " + join(found, ", "));
  std::vector<std::string> unused;
  for (const job::FoundDataset* dataset : job::assign_roles(facts.datasets).unused)
    unused.push_back(printable(dataset->path) + "/");
  if (!unused.empty())
    out.line("  not used: {} (add what you need to data: in the file)", join(unused, ", "));
  print_next(file, facts, out);
  const nlohmann::ordered_json json = {{"job", printable(file)}, {"found", found}, {"unused", unused}};
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
