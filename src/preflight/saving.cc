#include "preflight/saving.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/file.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

constexpr ByteCount kLargestScript = 4_MiB;
constexpr std::size_t kMaxModules = 20;

// The first word of the command that ends in .py, as a path; empty without one.
Path training_script(const job::Job& job) {
  std::vector<std::string> words = job.command->arguments;
  if (job.command->is_shell) {
    std::string text = words.back();
    std::replace_if(
        text.begin(), text.end(),
        [](char c) { return std::string_view("\n\t;&|'\"").find(c) != std::string_view::npos; }, ' ');
    words.clear();
    for (std::string_view word : split(text, ' ')) words.emplace_back(word);
  }
  for (const std::string& word : words) {
    if (word.ends_with(".py") && word.find('$') == std::string::npos) return job.working_directory / word;
  }
  return {};
}

std::optional<std::string> read_script(const Path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  auto text = read_file(path, kLargestScript);
  return text.ok() ? std::optional(std::move(*text)) : std::nullopt;
}

// Without comments, so that a note about Stoker or torch.save does not count.
std::string without_comments(std::string_view text) {
  std::string code;
  for (std::string_view line : split(text, '\n')) {
    if (!trim(line).starts_with('#')) code += line;
    code += '\n';
  }
  return code;
}

// Files next to the script that it imports.
std::vector<Path> imported_modules(const std::string& code, const Path& folder) {
  std::vector<Path> modules;
  std::set<std::string> seen;
  for (std::string_view line : split(code, '\n')) {
    line = trim(line);
    const bool is_import = line.starts_with("import ") || line.starts_with("from ");
    if (!is_import || modules.size() >= kMaxModules) continue;
    std::string_view name = trim(line.substr(line.find(' ') + 1));
    name = name.substr(0, name.find_first_of(" ,;#"));
    std::string relative(name);
    std::replace(relative.begin(), relative.end(), '.', '/');
    if (relative.empty() || !seen.insert(relative).second) continue;
    for (const Path& path : {folder / (relative + ".py"), folder / relative / "__init__.py"}) {
      if (path_exists(path)) modules.push_back(path);
    }
  }
  return modules;
}

// The line of the first call that saves a checkpoint; 0 without one.
std::size_t saving_line(const std::string& code, std::string_view* call) {
  constexpr std::array<std::string_view, 8> kCalls = {
      "torch.save(",      ".save_checkpoint(", ".save_state(",     "dcp.save(",
      "ModelCheckpoint(", ".save_weights(",    "save_pretrained(", "CheckpointManager("};
  std::size_t first = std::string::npos;
  for (std::string_view each : kCalls) {
    const std::size_t at = code.find(each);
    if (at >= first) continue;
    first = at;
    *call = each.substr(0, each.size() - 1);
  }
  if (first == std::string::npos) return 0;
  while (call->starts_with('.')) call->remove_prefix(1);
  return static_cast<std::size_t>(
             std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(first), '\n')) +
         1;
}

bool uses_stoker(std::string_view code) {
  return code.find("STOKER_") != std::string_view::npos ||
         code.find("import stoker") != std::string_view::npos ||
         code.find("from stoker") != std::string_view::npos;
}

}  // namespace

void check_saving(const job::Job& job, Notes& notes) {
  if (!job.command) return;
  for (const std::string& word : job.command->arguments) {
    if (uses_stoker(word)) return;
  }
  const Path script = training_script(job);
  if (script.empty()) return;
  std::vector<Path> files = {script};
  const auto text = read_script(script);
  if (!text) return;
  const std::vector<Path> modules = imported_modules(without_comments(*text), script.parent_path());
  files.insert(files.end(), modules.begin(), modules.end());
  Path saves;
  std::size_t line = 0;
  std::string_view call;
  for (const Path& file : files) {
    const auto source = read_script(file);
    if (!source) continue;
    const std::string code = without_comments(*source);
    if (uses_stoker(code)) return;
    if (line > 0) continue;
    line = saving_line(code, &call);
    saves = file;
  }
  if (line == 0) return;
  notes.found("own-checkpoints", Level::time, job.command->is_shell ? "run.shell" : "run",
              message("{} in {}:{} saves to a separate folder: Stoker finds no checkpoint there, and a "
                      "resumed or requeued run starts at the beginning",
                      call, printable(saves.filename().string()), line),
              message("save to os.environ[\"STOKER_CHECKPOINT_DIR\"], and load os.environ[\"STOKER_RESUME\"] "
                      "if it is set"));
}

}  // namespace stoker::preflight
