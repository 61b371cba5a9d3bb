// `stoker completion SHELL`: docs/commands/completion.md
#include <array>

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/output.h"
#include "manual/bash_completion.h"
#include "manual/fish_completion.h"
#include "manual/zsh_completion.h"

namespace stoker::cli {

int completion(std::span<const std::string> words, Output& out) {
  constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};
  constexpr std::array kScripts = {manual::bash_completion, manual::zsh_completion, manual::fish_completion};
  std::string shell;
  Arguments arguments("completion", "Print a script with which a shell completes commands and options.");
  arguments.positional("SHELL", &shell, "Shell: bash, zsh or fish");
  arguments.choices(kShells);
  arguments.example("source <(stoker completion bash)");
  arguments.example("stoker completion fish > ~/.config/fish/completions/stoker.fish");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto chosen = parse_choice("completion", "SHELL", shell, kShells);
  if (!chosen.ok()) return out.fail(chosen.error());
  const std::string script = kScripts[*chosen](program_text());
  out.raw(script);
  out.json(json_text(nlohmann::ordered_json{{"shell", shell}, {"script", script}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
