#include "manual/zsh_completion.h"

#include "stoker/text.h"

namespace stoker::manual {
namespace {

constexpr std::string_view kZshValues = R"(
_stoker_runs() {
  local -a ids
  ids=(last ${opt_args[--runs]:-runs}/*/run.json(N:h:t))
  compadd -a ids
}

_stoker_runs_files() {
  _stoker_runs
  _files
}

_stoker_runs_folders() {
  _stoker_runs
  _files -/
}
)";

constexpr std::string_view kZshEnd = R"(
  local describe=_stoker__${name//[^a-z0-9]/_}
  (( $+functions[$describe] )) || return 1
  shift $used words
  (( CURRENT -= used ))
  $describe
}

# zsh runs the file of a folder of fpath as the function; `source` registers it.
if [[ $funcstack[1] == _stoker ]]; then
  _stoker "$@"
else
  compdef _stoker stoker
fi
)";

// `text` with a backslash before each of `special`.
std::string backslashed(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// ":PLACEHOLDER:ACTION" of _arguments.
std::string value_spec(std::string_view placeholder, const ValueHint& hint) {
  std::string action = " ";
  if (!hint.choices.empty()) {
    std::vector<std::string> choices;
    for (const std::string& choice : hint.choices)
      choices.push_back(backslashed(choice, "\\ ():'\"$`*?[]{}~#&;|<>^="));
    action = "(" + join(choices, " ") + ")";
  } else if (hint.runs && (hint.files || hint.folders)) {
    action = hint.files ? "_stoker_runs_files" : "_stoker_runs_folders";
  } else if (hint.runs) {
    action = "_stoker_runs";
  } else if (hint.files) {
    action = "_files";
  } else if (hint.folders) {
    action = "_files -/";
  }
  return ":" + backslashed(placeholder, "\\:") + ":" + action;
}

// One specification for each name of the option; the names exclude each other.
std::vector<std::string> option_specs(const OptionText& option) {
  const std::vector<std::string_view> flags = flags_of(option);
  std::string others;
  for (const std::string_view flag : flags) others += (others.empty() ? "" : " ") + std::string(flag);
  std::vector<std::string> specs;
  for (const std::string_view flag : flags) {
    std::string spec = option.is_repeatable ? "*" : flags.size() > 1 ? "(" + others + ")" : "";
    spec += flag;
    if (option.takes_value() && flag.starts_with("--")) spec += "=";
    spec += "[" + backslashed(option.what, "\\[]:") + "]";
    if (option.takes_value()) spec += value_spec(option.value_name, option.value);
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string zsh_function(const CommandText& command) {
  std::string name = command.name;
  for (char& c : name) {
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9')) c = '_';
  }
  std::vector<std::string> specs;
  for (const OptionText& option : command.options) {
    for (std::string& spec : option_specs(option)) specs.push_back(std::move(spec));
  }
  for (const ArgumentText& argument : command.arguments) {
    const std::string start = argument.is_list ? "*" : argument.is_required ? "" : ":";
    specs.push_back(start + value_spec(argument.name, argument.value));
  }
  if (command.rest && (command.arguments.empty() || !command.arguments.back().is_list))
    specs.push_back("*" + value_spec(command.rest->name, command.rest->value));
  std::string text = format("\n_stoker__{}() {{\n  _arguments -S :", name);
  for (const std::string& spec : specs) text += " \\\n    " + shell_quote(spec);
  return text + "\n}\n";
}

// "  entries=(...)", with the help of each word.
std::string entries(const std::vector<CommandWord>& words, std::string_view indent) {
  std::string text = format("{}entries=(\n", indent);
  for (const CommandWord& word : words)
    text += format("{}  {}\n", indent, shell_quote(word.name + ":" + backslashed(word.headline, "\\:")));
  return text + format("{})\n", indent);
}

std::string zsh_commands(const ProgramText& program) {
  std::string text = "\n_stoker() {\n  local -a entries\n  if (( CURRENT == 2 )); then\n";
  text += entries(words_after(program, ""), "    ");
  text += "    _describe -t commands command entries\n    return\n  fi\n";
  text += "  local name=$words[2] used=1\n  case $name in\n";
  for (const std::string& group : groups_of(program)) {
    const std::vector<std::string> verbs = verbs_of_command(program, group);
    // A group that is a command itself has its own options, and takes a file in place of a command.
    text += format("    {})\n      if (( CURRENT == 3 )){}; then\n", shell_quote(group),
                   verbs.empty() ? "" : " && [[ $PREFIX != -* ]]");
    text += entries(words_after(program, group), "        ");
    text += "        _describe -t commands command entries\n";
    text += format("{}        return\n      fi\n", verbs.empty() ? "" : "        _files\n");
    const std::string_view step = "name+=\" $words[3]\" used=2";
    text += verbs.empty()
                ? format("      {}\n      ;;\n", step)
                : format("      case $words[3] in {}) {} ;; esac\n      ;;\n", join(verbs, "|"), step);
  }
  return text + "  esac";
}

}  // namespace

std::string zsh_completion(const ProgramText& program) {
  std::string text =
      format("#compdef stoker\n# Completion of stoker {} for zsh: stoker completion zsh\n", program.version);
  text += kZshValues;
  for (const CommandText& command : program.commands) text += zsh_function(command);
  return text + zsh_commands(program) + std::string(kZshEnd);
}

}  // namespace stoker::manual
