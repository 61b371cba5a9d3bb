// Rules for words with a different meaning for the shell: a command name instead of its output, blanks in a
// path, lists in foreign syntax, assignments of csh.
#include <algorithm>
#include <cctype>
#include <set>

#include "bash/parser.h"
#include "script_lint/rule.h"
#include "script_lint/rules/commands/lists.h"
#include "script_lint/rules/commands/variable_uses.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

constexpr std::string_view kPrintCommands[] = {"pwd", "hostname", "whoami", "nproc", "date"};
constexpr std::string_view kReaders[] = {"cat", "ls",   "wc",      "sed",      "awk", "head", "tail",
                                         "cut", "grep", "dirname", "basename", "seq", "find", "date",
                                         "tr",  "expr", "mktemp",  "realpath", "jq"};

// "dir=pwd": the literal text.
void find_command_name_value(const VariableSetting& setting, const Script& script, FindingReport& report) {
  const std::string_view typed = script.at(setting.assignment->value.span);
  if (!is_one_of(typed, kPrintCommands) || setting.is_command_scoped || !script.names.is_read(setting.name))
    return;
  ScriptFinding& finding =
      report.replace(setting.assignment->value.span,
                     message("${} becomes the word {}, not the output of that command", setting.name, typed),
                     format("$({})", typed));
  if (typed == "date" || typed == "hostname") finding.level = Level::time;  // usually part of a name
}

// "N=wc -l list": the shell runs the program -l.
void find_reader_name_value(const VariableSetting& setting, const Script& script, FindingReport& report) {
  const std::string_view typed = script.at(setting.assignment->value.span);
  if (!is_one_of(typed, kReaders) || !setting.is_command_scoped || !script.names.is_read(setting.name))
    return;
  for (const ProgramCall& call : script.calls) {
    const bool is_its = !call.command->assignments.empty() && !call.command->words.empty() &&
                        &call.command->assignments.back() == setting.assignment &&
                        call.program_word == &call.command->words[0];
    if (!is_its) continue;
    report.replace({setting.assignment->value.span.begin, call.span.end},
                   message("${} becomes the word {} for one command only: the shell runs a program {}",
                           setting.name, typed, printable(script.at(call.program_word->span))),
                   format("$({})", script.at({setting.assignment->value.span.begin, call.span.end})));
    return;
  }
}

void find_assigned_command(const Script& script, FindingReport& report) {
  for (const VariableSetting& setting : script.settings) {
    if (setting.assignment->is_array) continue;
    find_command_name_value(setting, script, report);
    find_reader_name_value(setting, script, report);
  }
}

bool is_plain(std::string_view word) {
  return !word.empty() && word.find_first_of("$`\"'\\*?{}") == std::string_view::npos;
}

// "cd /data/My Set": cd takes one folder.
void find_split_folder(const ProgramCall& call, const Script& script, FindingReport& report) {
  if (call.program != "cd" || script.interpreter == "zsh" || call.typed.size() < 2 ||
      !call.command->redirections.empty())
    return;
  const bool is_ours = std::all_of(call.typed.begin(), call.typed.end(), [&](const bash::Word* word) {
    return is_plain(script.at(word->span)) && !script.at(word->span).starts_with('-');
  });
  // Placeholder rules report these characters.
  const std::string_view all = script.at({call.typed[0]->span.begin, call.typed.back()->span.end});
  if (!is_ours || all.find_first_of("[]<>()#") != std::string_view::npos) return;
  report.replace(
      {call.typed[0]->span.begin, call.typed.back()->span.end},
      message("a blank without quotes: cd accepts one folder, gets {}, and does not move", call.typed.size()),
      format("\"{}\"", all));
}

// The last component begins with a capital, as in "/home/me/Deep", and has no extension.
bool may_be_cut(std::string_view word) {
  if (!word.starts_with('/') && !word.starts_with("~/")) return false;
  const std::string_view last = word.substr(word.rfind('/') + 1);
  return !last.empty() && std::isupper(static_cast<unsigned char>(last[0])) != 0 &&
         last.find('.') == std::string_view::npos;
}

// "Learning/set/a.yaml": the rest of a path.
bool may_be_rest(std::string_view word) {
  const std::size_t slash = word.find('/');
  return slash != std::string_view::npos && slash > 0 &&
         std::isupper(static_cast<unsigned char>(word[0])) != 0;
}

// "python a.py /home/me/Deep Learning/set": two words.
void find_split_path(const ProgramCall& call, const Script& script, FindingReport& report) {
  for (std::size_t i = 0; i + 1 < call.typed.size(); ++i) {
    const std::string_view word = script.at(call.typed[i]->span);
    const std::string_view next = script.at(call.typed[i + 1]->span);
    if (!is_plain(word) || !is_plain(next) || !may_be_cut(word) || !may_be_rest(next)) continue;
    report.replace({call.typed[i]->span.begin, call.typed[i + 1]->span.end},
                   message("a blank without quotes: the shell splits {} {} into two words", printable(word),
                           printable(next)),
                   format("\"{} {}\"", word, next));
    return;
  }
}

// "DIR=/home/me/My Set/a": runs the program Set/a with DIR set.
void find_split_value(const VariableSetting& setting, const Script& script, FindingReport& report) {
  const std::string_view value = script.at(setting.assignment->value.span);
  if (!setting.is_command_scoped || !is_plain(value) || !may_be_cut(value) ||
      !script.names.is_read(setting.name))
    return;
  for (const ProgramCall& call : script.calls) {
    const bool is_its = !call.command->assignments.empty() && !call.command->words.empty() &&
                        &call.command->assignments.back() == setting.assignment &&
                        call.program_word == &call.command->words[0];
    if (!is_its || !may_be_rest(script.at(call.program_word->span))) continue;
    report.replace(
        {setting.assignment->value.span.begin, call.program_word->span.end},
        message("a blank without quotes: the shell runs a program {}, and ${} stays empty",
                printable(script.at(call.program_word->span)), setting.name),
        format("\"{}\"", script.at({setting.assignment->value.span.begin, call.program_word->span.end})));
    return;
  }
}

void find_split_word(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (call.context.is_remote || call.program == "echo") continue;
    find_split_folder(call, script, report);
    find_split_path(call, script, report);
  }
  for (const VariableSetting& setting : script.settings) find_split_value(setting, script, report);
}

// "0.1, 0.01, 0.001": the commas are part of the words.
bool has_commas(const std::vector<bash::Word>& words, const Script& script) {
  if (words.size() < 2) return false;
  return std::all_of(words.begin(), words.end() - 1, [&](const bash::Word& word) {
    const std::string_view text = script.at(word.span);
    return text.size() > 1 && text.ends_with(',') && text.find('{') == std::string_view::npos;
  });
}

void report_commas(const std::vector<bash::Word>& words, const Script& script, FindingReport& report) {
  const bash::Span whole{words.front().span.begin, words.back().span.end};
  std::string without;
  for (const bash::Word& word : words) {
    std::string_view text = script.at(word.span);
    if (text.ends_with(',')) text.remove_suffix(1);
    without += (without.empty() ? "" : " ") + std::string(text);
  }
  report.replace(whole,
                 message("only blanks separate list elements in the shell: {} includes a comma",
                         printable(script.at(words.front().span))),
                 without);
}

// "1..10", "{1...10}", "{1-10}", "range(10)": one word.
bool is_range_elsewhere(std::string_view text) {
  const bool is_braced = text.size() > 4 && text.front() == '{' && text.back() == '}';
  const std::string_view inside = is_braced ? text.substr(1, text.size() - 2) : text;
  const std::size_t end = inside.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos) return false;
  const std::size_t next = inside.find_first_of("0123456789", end);
  if (next == std::string_view::npos ||
      inside.find_first_not_of("0123456789", next) != std::string_view::npos)
    return false;
  const std::string_view between = inside.substr(end, next - end);
  return is_braced ? is_one_of(between, {"...", "-", ":"}) : is_one_of(between, {"..", "..."});
}

void find_lists(const bash::List& list, const Script& script, FindingReport& report) {
  for (const bash::Item& item : list.items) {
    for (const bash::ShellCommand& command : item.pipeline.commands) {
      if (command.kind == bash::CommandKind::for_ && has_commas(command.words, script))
        report_commas(command.words, script, report);
      if (command.kind == bash::CommandKind::for_ && command.words.size() == 1 &&
          is_range_elsewhere(script.at(command.words[0].span)))
        report
            .add(command.words[0].span, message("{}: is not a range in the shell, and the loop runs once",
                                                printable(script.at(command.words[0].span))))
            .fix = "{1..10}";
      for (const bash::List& part : command.parts) find_lists(part, script, report);
    }
  }
}

void find_loop_list(const Script& script, FindingReport& report) {
  find_foreign_lists(script, report);
  find_lists(script.tree.list, script, report);
  for (const VariableSetting& setting : script.settings) {
    if (setting.assignment->is_array && has_commas(setting.assignment->elements, script))
      report_commas(setting.assignment->elements, script, report);
  }
}

// "set DATA = /data", "setenv DATA /data" of csh: bash sets $1, or finds no such program.
void find_other_shell(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const bool sources = (call.program == "source" || call.program == ".") && !call.words.empty();
    if (sources && (call.words[0].ends_with("/activate.csh") || call.words[0].ends_with("/activate.fish"))) {
      const bash::Span file = call.typed[0]->span;
      const std::string_view typed = script.at(file);
      report.replace(file,
                     message("{} is for a different shell: bash fails in it and activates nothing", typed),
                     std::string(typed.substr(0, typed.rfind('.'))));
      continue;
    }
    if (call.typed.empty() || (call.program != "set" && call.program != "setenv")) continue;
    const std::string_view word = script.at(call.typed[0]->span);
    const std::size_t equals = word.find('=');
    const bool is_apart = call.typed.size() > 1 && script.at(call.typed[1]->span).starts_with('=');
    if (call.program == "set" && equals == std::string_view::npos && !is_apart) continue;
    const std::string_view name = word.substr(0, equals);
    if (!is_name(name) || script.names.is_set(name) || !script.names.is_read(name)) continue;
    const std::size_t last = call.typed.size() - 1;
    const std::string_view value =
        equals != std::string_view::npos ? word.substr(equals + 1) : script.at(call.typed[last]->span);
    report.replace(call.span, message("{} does not set ${} in bash: it is empty", call.program, name),
                   format("export {}={}", name, value));
  }
}

// Variables read in double quotes, which preserve a leading blank.
std::set<std::string_view> read_in_quotes(const Script& script) {
  std::set<std::string_view> names;
  for (const ProgramCall& call : script.calls) {
    if (only_prints(call)) continue;
    for_each_variable(call, [&](const bash::WordPiece& piece) {
      if (piece.is_quoted) names.insert(piece.text);
    });
  }
  return names;
}

// "MODEL=${1:- a.pt}": the blank is part of the value.
void find_blank_in_default(const Script& script, FindingReport& report) {
  const std::set<std::string_view> quoted = read_in_quotes(script);
  for (const VariableSetting& setting : script.settings) {
    const std::vector<bash::WordPiece>& pieces = setting.assignment->value.pieces;
    if (setting.assignment->is_array || pieces.size() != 1 || pieces[0].kind != bash::PieceKind::variable)
      continue;
    const std::string_view operation = pieces[0].operation;
    const std::size_t sign = operation.find_first_not_of(':');
    const bool is_default = sign < 2 && (operation[sign] == '-' || operation[sign] == '=');
    if (!is_default) continue;
    const std::string_view value = operation.substr(sign + 1);
    const bool is_one_word =
        value.size() > 1 && value[0] == ' ' && value.find_first_of(" \"'$`", 1) == std::string_view::npos;
    if (!is_one_word || !quoted.contains(setting.name)) continue;
    const std::size_t blank = script.text.find(operation, pieces[0].span.begin) + sign + 1;
    report.replace({blank, blank + 1},
                   message("the blank after {} becomes the first character of ${}",
                           operation.substr(0, sign + 1), setting.name),
                   "");
  }
}

constexpr Rule kWordRules[] = {
    {"assigned-command", Level::job, "without $( ) a variable has the name of a command, not its output",
     "#!/bin/bash\n#SBATCH -n 1\nhere=pwd\n./run $here/a.yaml\n",
     "#!/bin/bash\n#SBATCH -n 1\nhere=$(pwd)\n./run $here/a.yaml\n", "students' scripts; shellcheck SC2209",
     find_assigned_command},
    {"split-word", Level::job, "a blank without quotes begins a new word, even inside a path",
     "#!/bin/bash\n#SBATCH -n 1\ncd /data/Deep Learning\n./run\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd \"/data/Deep Learning\"\n./run\n", "students' scripts; shellcheck SC2164",
     find_split_word},
    {"loop-list", Level::job, "shell lists have blanks between the elements, and no commas",
     "#!/bin/bash\n#SBATCH -n 1\nfor lr in 0.1, 0.01; do\n  ./run $lr\ndone\n",
     "#!/bin/bash\n#SBATCH -n 1\nfor lr in 0.1 0.01; do\n  ./run $lr\ndone\n", "shellcheck SC2258",
     find_loop_list},
    {"other-shell", Level::job, "set and setenv of csh do not set variables in bash",
     "#!/bin/bash\n#SBATCH -n 1\nset DATA=/data/set\n./run $DATA\n",
     "#!/bin/bash\n#SBATCH -n 1\nexport DATA=/data/set\n./run $DATA\n", "shellcheck SC2121",
     find_other_shell},
    {"blank-in-default", Level::job, "in ${NAME:- value} the blank is part of the value",
     "#!/bin/bash\n#SBATCH -n 1\nMODEL=${1:- a.pt}\n./run \"$MODEL\"\n",
     "#!/bin/bash\n#SBATCH -n 1\nMODEL=${1:-a.pt}\n./run \"$MODEL\"\n", "students' scripts",
     find_blank_in_default},
};

}  // namespace

std::span<const Rule> word_rules() { return kWordRules; }

}  // namespace stoker::script_lint
