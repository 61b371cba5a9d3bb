#include "manual/fish_completion.h"

#include "stoker/text.h"

namespace stoker::manual {
namespace {

// `{}`: the groups of commands, and lines about groups that are commands themselves.
constexpr std::string_view kFishStart = R"(
function __stoker_is -d 'Whether the command line has exactly this command'
    set -l typed (commandline -opc)
    set -e typed[1]
    set -l used 1
    if contains -- "$typed[1]" {}
        set used 2
    end
{}    set -l name (string join -- ' ' $typed[1..$used])
    test "$name" = "$argv"
end

function __stoker_runs -d 'Ids of the runs'
    set -l folder runs
    set -l typed (commandline -opc)
    for i in (seq (count $typed))
        switch $typed[$i]
            case --runs
                set -q typed[(math $i + 1)]; and set folder $typed[(math $i + 1)]
            case '--runs=*'
                set folder (string replace -- --runs= '' $typed[$i])
        end
    end
    echo last
    for file in $folder/*/run.json
        basename (dirname $file)
    end
end

complete -c stoker -f
complete -c stoker -n __stoker_is -l help -d 'Show all commands'
complete -c stoker -n __stoker_is -l version -d 'Show the version'
)";

// A text in single quotes, where fish knows two escapes.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// A word in the argument of `complete -a`, which fish expands once more.
std::string fish_word(const std::string& word) {
  const bool is_plain =
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+") ==
      std::string::npos;
  return is_plain && !word.empty() ? word : fish_quoted(word);
}

// The options of `complete` for a value: -F allows files, -f does not.
std::string value_options(const ValueHint& hint) {
  std::vector<std::string> words;
  for (const std::string& choice : hint.choices) words.push_back(fish_word(choice));
  if (hint.runs) words.emplace_back("(__stoker_runs)");
  if (hint.folders && !hint.files) words.emplace_back("(__fish_complete_directories (commandline -ct))");
  std::string text = hint.files ? "-F" : "-f";
  if (!words.empty()) text += " -a " + fish_quoted(join(words, " "));
  return text;
}

std::string option_line(const std::string& condition, const OptionText& option) {
  std::string text = "complete -c stoker -n " + condition;
  for (const std::string_view flag : flags_of(option)) {
    const bool is_long = flag.starts_with("--");
    text += format(" {} {}", is_long ? "-l" : "-s", fish_word(std::string(flag.substr(is_long ? 2 : 1))));
  }
  if (option.takes_value()) text += " -r " + value_options(option.value);
  return text + " -d " + fish_quoted(option.what) + "\n";
}

// The condition of a command, or of the words after a group or after `stoker` ("").
std::string condition_of(const std::string& name) {
  return fish_quoted(name.empty() ? "__stoker_is" : "__stoker_is " + name);
}

std::string command_lines(const CommandText& command) {
  const std::string condition = condition_of(command.name);
  std::string text;
  for (const OptionText& option : command.options) text += option_line(condition, option);
  for (const ArgumentText& argument : command.arguments) {
    if (!argument.value.is_empty())
      text += format("complete -c stoker -n {} {}\n", condition, value_options(argument.value));
  }
  if (command.rest) {
    const std::string is_rest = "__stoker_is " + command.name + "; and contains -- -- (commandline -opc)";
    text += format("complete -c stoker -n {} {}\n", fish_quoted(is_rest), value_options(command.rest->value));
  }
  return text;
}

std::string word_lines(const ProgramText& program, const std::string& group) {
  std::string text;
  for (const CommandWord& word : words_after(program, group)) {
    text += format("complete -c stoker -n {} -a {} -d {}\n", condition_of(group),
                   fish_quoted(fish_word(word.name)), fish_quoted(word.headline));
  }
  return text;
}

}  // namespace

std::string fish_completion(const ProgramText& program) {
  const std::vector<std::string> groups = groups_of(program);
  std::string text = format("# Completion of stoker {} for fish: stoker completion fish\n", program.version);
  std::string own;
  for (const std::string& group : groups) {
    const std::vector<std::string> verbs = verbs_of_command(program, group);
    if (verbs.empty()) continue;
    own += format(
        "    if test \"$typed[1]\" = {}; and not contains -- \"$typed[2]\" {}\n        set used 1\n    end\n",
        group, join(verbs, " "));
  }
  text += format(kFishStart, join(groups, " "), own);
  text += word_lines(program, "");
  for (const std::string& group : groups) text += word_lines(program, group);
  for (const CommandText& command : program.commands) text += command_lines(command);
  return text;
}

}  // namespace stoker::manual
