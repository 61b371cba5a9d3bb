#include "manual/bash_completion.h"

#include "stoker/text.h"

namespace stoker::manual {
namespace {

// Defines _stoker, up to the list of groups. `words`: the complete words before the cursor.
constexpr std::string_view kBashWords = R"(
_stoker() {
  local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} word i words=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    # bash splits --option=value and host:folder into three words.
    if [[ ${#words[@]} -gt 0 && ( $word == [=:] || ${COMP_WORDS[i - 1]} == [=:] ) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  if [[ $current == = && ${#words[@]} -gt 0 ]]; then
    words[-1]+="="
    current=
  fi
  local choices=() options=() files= folders= runs= folder=runs number=1 expects=
  COMPREPLY=()
  local name=${words[0]-} used=1
  case $name in
)";

// Reads the words of the command. Each command has a function that sets `options` and knows what completes
// the value of an option, or an argument by its number.
constexpr std::string_view kBashArguments = R"(
  if ((${#words[@]} >= used)); then
    local describe=_stoker__${name//[^a-z0-9]/_}
    declare -F "$describe" >/dev/null || return 0
    "$describe" options
    for word in "${words[@]:used}"; do
      if [[ $expects ]]; then
        [[ $expects == --runs ]] && folder=$word
        expects=
      elif [[ $word == -- ]]; then
        number=rest
        break
      elif [[ $word == -*= ]]; then
        expects=${word%=}
      elif [[ $word == -*=* ]]; then
        [[ $word == --runs=* ]] && folder=${word#*=}
      elif [[ $word == -?* ]]; then
        "$describe" "$word" && expects=$word
      else
        ((number += 1))
      fi
    done
    choices=() files= folders= runs=
    if [[ $expects ]]; then
      "$describe" "$expects"
    elif [[ $number == rest ]]; then
      "$describe" rest
    elif [[ $current == -* ]] || ! "$describe" "$number"; then
      choices=("${options[@]}")
    fi
  fi
  for word in "${choices[@]}"; do
    [[ $word == "$current"* ]] && COMPREPLY+=("$word")
  done
  if [[ $runs ]]; then
    for word in last "$folder"/*/run.json; do
      word=${word%/run.json}
      word=${word##*/}
      [[ $word == "$current"* && $word != '*' ]] && COMPREPLY+=("$word")
    done
  fi
  if [[ $files || $folders ]]; then
    local kind=-f
    [[ $files ]] || kind=-d
    while IFS= read -r word; do
      COMPREPLY+=("$word")
    done < <(compgen "$kind" -- "$current")
  fi
  # The names of files and runs are quoted as bash needs it.
  [[ $files || $folders || $runs ]] && compopt -o filenames 2>/dev/null
  return 0
}
complete -F _stoker stoker
)";

std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_quote(word);
  return text;
}

// "choices=(a b) files=1".
std::string bash_hint(const ValueHint& hint) {
  std::vector<std::string> parts;
  if (!hint.choices.empty()) parts.push_back(format("choices=({})", quoted_words(hint.choices)));
  if (hint.files) parts.emplace_back("files=1");
  if (hint.folders) parts.emplace_back("folders=1");
  if (hint.runs) parts.emplace_back("runs=1");
  return join(parts, " ");
}

std::string case_line(std::string_view pattern, const ValueHint& hint) {
  const std::string action = bash_hint(hint);
  return format("    {}){} ;;\n", pattern, action.empty() ? "" : " " + action);
}

std::string bash_function(const CommandText& command, const std::vector<std::string>& verbs) {
  std::string name = command.name;
  for (char& c : name) {
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9')) c = '_';
  }
  std::vector<std::string> flags;
  std::string cases;
  for (const OptionText& option : command.options) {
    std::string pattern;
    for (const std::string_view flag : flags_of(option)) {
      flags.emplace_back(flag);
      pattern += (pattern.empty() ? "" : " | ") + shell_quote(flag);
    }
    if (option.takes_value()) cases += case_line(pattern, option.value);
  }
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const ArgumentText& argument = command.arguments[i];
    ValueHint hint = argument.value;
    if (i == 0) hint.choices.insert(hint.choices.end(), verbs.begin(), verbs.end());
    cases += case_line(argument.is_list ? "[0-9]*" : std::to_string(i + 1), hint);
  }
  if (command.rest) cases += case_line("rest", command.rest->value);
  return format("\n_stoker__{}() {{\n  options=({})\n  case $1 in\n{}    *) return 1 ;;\n  esac\n}}\n", name,
                quoted_words(flags), cases);
}

std::string names_of(const std::vector<CommandWord>& words) {
  std::vector<std::string> names;
  for (const CommandWord& word : words) names.push_back(word.name);
  return quoted_words(names);
}

// The words of a command, and the candidates while they are incomplete.
std::string bash_commands(const ProgramText& program) {
  std::string text;
  const std::vector<std::string> groups = groups_of(program);
  for (const std::string& group : groups) {
    const std::vector<std::string> verbs = verbs_of_command(program, group);
    std::string step = "name+=\" ${words[1]-}\" used=2";
    // Only its commands are a second word of the name.
    if (!verbs.empty()) step = format("case ${{words[1]-}} in {}) {} ;; esac", join(verbs, "|"), step);
    text += format("    {}) {} ;;\n", shell_quote(group), step);
  }
  text += "  esac\n  if ((${#words[@]} < used)); then\n    case $name in\n";
  text += format("      '') choices=({} --help --version) ;;\n", names_of(words_after(program, "")));
  for (const std::string& group : groups) {
    if (!verbs_of_command(program, group).empty()) continue;
    text += format("      {}) choices=({} --help) ;;\n", shell_quote(group + " "),
                   names_of(words_after(program, group)));
  }
  return text + "    esac\n  fi";
}

}  // namespace

std::string bash_completion(const ProgramText& program) {
  std::string text = format("# Completion of stoker {} for bash: stoker completion bash\n", program.version);
  for (const CommandText& command : program.commands)
    text += bash_function(command, verbs_of_command(program, command.name));
  return text + std::string(kBashWords) + bash_commands(program) + std::string(kBashArguments);
}

}  // namespace stoker::manual
