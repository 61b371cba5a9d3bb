#include "trainers/find.h"

#include <algorithm>
#include <unistd.h>

#include "base/file.h"
#include "base/version.h"

namespace stoker::trainers {
namespace {

constexpr std::string_view kProgram = "stoker-train";
constexpr std::string_view kPrefix = "torch-";

bool is_program(const Path& path) { return ::access(path.c_str(), X_OK) == 0 && !folder_exists(path); }

// Of an installed prefix.
Path packaged(const Path& program_folder) { return program_folder / "../libexec/stoker"; }

std::uint64_t minor_number(std::string_view version) {
  std::uint64_t number = 0;
  (void)parse_number(version.substr(version.find('.') + 1), &number);
  return number;
}

}  // namespace

std::vector<std::string> pythons_of(const TrainerSearch& search) {
  if (search.venv && folder_exists(*search.venv)) return {(*search.venv / "bin/python").string()};
  std::vector<std::string> programs;
  for (std::string_view name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const Path python = Path(variable(search.environment, name)) / "bin/python";
    if (python.is_absolute() && is_program(python)) programs.push_back(python.string());
  }
  if (is_program(search.program_folder / "python3"))
    programs.push_back((search.program_folder / "python3").string());
  programs.emplace_back("python3");
  return programs;
}

Result<FoundTorch> find_torch(const TrainerSearch& search, Deadline deadline) {
  std::optional<Status> first;
  for (const std::string& python : pythons_of(search)) {
    auto torch = find_torch(python, search.environment, deadline);
    if (torch.ok()) return FoundTorch{python, std::move(*torch)};
    if (!first) first = torch.error();
  }
  return *first;
}

Result<Torch> choose_torch(const Path& folder, const std::string& python, const TrainerSearch& search) {
  const Deadline deadline = Deadline::after(std::chrono::minutes(2));
  if (!folder.empty()) return inspect_torch(std::filesystem::absolute(folder).lexically_normal());
  if (!python.empty()) return find_torch(python, search.environment, deadline);
  const auto found = find_torch(search, deadline);
  if (found.ok()) return found->torch;
  return found.status().cure("stoker build-trainer --python .venv/bin/python");
}

Path own_trainers(const Environment& environment) {
  const std::string data = variable(environment, "XDG_DATA_HOME");
  const Path base = data.starts_with('/') ? Path(data) : Path(variable(environment, "HOME")) / ".local/share";
  return base / "stoker/trainers" / version();
}

Path own_trainer(const Environment& environment, const Torch& torch) {
  return own_trainers(environment) / (std::string(kPrefix) + torch.version);
}

std::vector<std::string> packaged_torches(const Path& program_folder) {
  std::vector<std::string> versions;
  const auto names = list_directory(packaged(program_folder));
  if (!names.ok()) return versions;
  for (const std::string& name : *names) {
    if (name.starts_with(kPrefix) && is_program(packaged(program_folder) / name / kProgram))
      versions.push_back(name.substr(kPrefix.size()));
  }
  std::ranges::sort(versions, {}, minor_number);
  return versions;
}

Result<Trainer> find_trainer(const TrainerSearch& search, Deadline deadline) {
  if (const Path built = search.program_folder / kProgram; is_program(built)) return Trainer{built, {}};
  const auto found = find_torch(search, deadline);
  if (!found.ok()) {
    return not_found("stoker-train: requires torch: {}", found.error().message())
        .cure("{} -m pip install torch", shell_quote(pythons_of(search)[0]));
  }
  const auto& [python, torch] = *found;
  const Path own = own_trainer(search.environment, torch) / kProgram;
  if (is_program(own)) return Trainer{own, torch.folder / "lib"};
  const Path shipped = packaged(search.program_folder) / (std::string(kPrefix) + torch.minor()) / kProgram;
  if (is_program(shipped)) return Trainer{shipped.lexically_normal(), torch.folder / "lib"};
  const std::vector<std::string> versions = packaged_torches(search.program_folder);
  return not_found(
             "stoker-train: none is for torch {} of {} ({})", torch.version, python,
             versions.empty() ? "this stoker comes without trainers" : "there are: " + join(versions, ", "))
      .cure("stoker build-trainer --python {}", shell_quote(python));
}

}  // namespace stoker::trainers
