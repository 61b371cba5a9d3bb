#include "trainers/torch.h"

#include "base/file.h"

namespace stoker::trainers {
namespace {

// The folder of the program must not provide a torch: the ranks run elsewhere.
constexpr std::string_view kFindTorch = R"(import importlib.util, sys
sys.path[:] = [folder for folder in sys.path if folder]
found = importlib.util.find_spec("torch")
print(found.origin if found and found.origin else "")
)";

// The value of the line `__version__ = '2.13.0+cpu'`.
std::string version_in(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with("__version__")) continue;
    const std::size_t begin = line.find_first_of("'\"");
    const std::size_t end = begin == std::string_view::npos ? begin : line.find_first_of("'\"", begin + 1);
    if (end != std::string_view::npos) return std::string(line.substr(begin + 1, end - begin - 1));
  }
  return "";
}

// Digits, dots and a local part: it becomes the name of a folder.
bool is_version(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '_';
  };
  return !text.empty() && text.size() < 64 && text[0] >= '0' && text[0] <= '9' &&
         split(text, '.').size() >= 2 && std::all_of(text.begin(), text.end(), is_part);
}

}  // namespace

std::string Torch::minor() const {
  const std::size_t first = version.find('.');
  return version.substr(0, version.find_first_of(".+", first + 1));
}

Result<Torch> inspect_torch(const Path& folder) {
  const auto text = read_file(folder / "version.py", 1_MiB);
  if (!text.ok() || !path_exists(folder / "lib/libtorch_cpu.so")) {
    return not_found("{}: is no installed torch: version.py or lib/libtorch_cpu.so is missing",
                     printable(folder.string()));
  }
  Torch torch{folder, version_in(*text)};
  if (!is_version(torch.version))
    return invalid("{}: has no readable __version__", printable((folder / "version.py").string()));
  return torch;
}

Result<Torch> find_torch(const std::string& python, const Environment& environment, Deadline deadline) {
  const Command command{.argv = {python, "-c", std::string(kFindTorch)}, .environment = environment};
  const auto answer = run_program(command, deadline, 1_MiB);
  if (!answer.ok()) return answer.error();
  if (!answer->exit.ok())
    return invalid("{}: cannot look for torch: {}", printable(python), to_text(answer->exit));
  const std::string_view origin = trim(answer->out);
  if (!origin.starts_with('/')) return not_found("{}: has no torch", printable(python));
  return inspect_torch(Path(origin).parent_path());
}

}  // namespace stoker::trainers
