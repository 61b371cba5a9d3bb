// `stoker lab env`: docs/commands/lab-env.md
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/lab/lab_name.h"
#include "lab/lab.h"

namespace stoker::cli {

int lab_env(std::span<const std::string> words, Output& out) {
  std::string name = "lab1";
  Arguments arguments("lab env", "Print the shell lines that connect sbatch, srun and squeue to the lab.");
  add_lab_name(arguments, &name);
  arguments.example("eval \"$(stoker lab env)\"");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto lab = lab::open(name);
  if (!lab) return out.fail(lab.error());
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [variable, value] : lab::lab_variables(*lab)) {
    out.line("export {}={}", variable, shell_quote(value));
    json[variable] = value;
  }
  if (const Path modules = lab->folder / "etc/modules.sh"; path_exists(modules)) {
    out.line(". {}", shell_quote(modules.string()));
  }
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
