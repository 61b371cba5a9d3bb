#include "script_lint/rules/commands/lists.h"

#include <algorithm>

#include "bash/characters.h"
#include "script_lint/rules/commands/variable_uses.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

bool is_list(const Script& script, std::string_view name) {
  const std::vector<std::size_t>& settings = script.names.settings_of(name);
  return !settings.empty() && script.settings[settings.front()].assignment->is_array;
}

// "$sets[1]": the first element followed by literal text.
void report_open_index(const bash::Word& word, const Script& script, FindingReport& report) {
  for (std::size_t i = 0; i + 1 < word.pieces.size(); ++i) {
    const bash::WordPiece& piece = word.pieces[i];
    const bash::WordPiece& next = word.pieces[i + 1];
    const bool is_open = piece.kind == bash::PieceKind::variable && next.kind == bash::PieceKind::literal &&
                         next.text.starts_with('[') && script.at(piece.span) == "$" + piece.text &&
                         script.text[piece.span.end] == '[' && is_list(script, piece.text);
    if (!is_open) continue;
    report
        .add(piece.span,
             message("${}[...] is the first element of {} followed by text: other elements need braces",
                     piece.text, piece.text))
        .fix = format("${{{}[INDEX]}}", piece.text);
    return;
  }
}

void find_open_index(const Script& script, FindingReport& report) {
  if (script.interpreter == "zsh") return;
  for (const VariableSetting& setting : script.settings)
    report_open_index(setting.assignment->value, script, report);
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* launcher = script.launcher_of(call);
    if (call.program == "echo" || call.context.is_remote ||
        (launcher != nullptr && launcher->command == call.command))
      continue;
    for (const bash::Word* word : call.typed) report_open_index(*word, script, report);
  }
}

// The name in "'$NAME'" and "'$NAME/a'"; "" for another word.
std::string_view kept_name(std::string_view typed) {
  if (!typed.starts_with("'$") || typed.size() < 4 || typed.back() != '\'') return "";
  std::size_t end = 2;
  while (end < typed.size() && bash::is_name(typed[end])) ++end;
  return end > 2 && (typed[end] == '\'' || typed[end] == '/') ? typed.substr(2, end - 2) : std::string_view();
}

// ["a", followed by words up to a closing ].
bool is_foreign_list(const bash::Assignment& assignment, const ProgramCall& call, const Script& script) {
  const std::string_view begin = script.at(assignment.value.span);
  const bool opens = begin.size() > 2 && begin[0] == '[' && begin.ends_with(',') &&
                     (begin[1] == '"' || begin[1] == '\'' || bash::is_digit(begin[1]));
  return opens && script.at({call.span.begin, call.span.end}).ends_with(']');
}

constexpr Rule kListRules[] = {
    {"open-index", Level::job, "without braces $NAME[1] is the first element followed by [1]",
     "#!/bin/bash\n#SBATCH --array=0-1\nsets=(a b)\n./run $sets[$SLURM_ARRAY_TASK_ID]\n",
     "#!/bin/bash\n#SBATCH --array=0-1\nsets=(a b)\n./run ${sets[$SLURM_ARRAY_TASK_ID]}\n",
     "shellcheck SC1087", find_open_index},
};

}  // namespace

void find_kept_word(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* launcher = script.launcher_of(call);
    // Inside quotes of a different shell they are no quotes.
    if (!is_python(call.program) || call.context.is_remote ||
        (launcher != nullptr && launcher->command != call.command))
      continue;
    for (const bash::Word* word : call.typed) {
      const std::string_view typed = script.at(word->span);
      const std::string_view name = kept_name(typed);
      if (name.empty() || (!script.names.is_set(name) && !script.names.is_loop_variable(name))) continue;
      report.replace(
          word->span,
          message("in single quotes {} gets the text ${}, not the value of the variable", call.program, name),
          format("\"{}\"", typed.substr(1, typed.size() - 2)));
      break;
    }
  }
}

void find_foreign_lists(const Script& script, FindingReport& report) {
  for (const VariableSetting& setting : script.settings) {
    const bash::Assignment& list = *setting.assignment;
    if (!list.is_array || list.elements.size() != 1) continue;
    const std::string_view typed = script.at(list.elements[0].span);
    const bool is_one =
        typed.find("\",\"") != std::string_view::npos || typed.find("','") != std::string_view::npos;
    if (is_one && (typed[0] == '"' || typed[0] == '\''))
      report.add(list.elements[0].span,
                 message("only blanks separate list elements in the shell: this list has one element"));
  }
  for (const ProgramCall& call : script.calls) {
    if (call.command->assignments.size() != 1 || call.program_word != &call.command->words[0]) continue;
    const bash::Assignment& assignment = call.command->assignments[0];
    if (is_foreign_list(assignment, call, script))
      report.add(assignment.span,
                 message("shell lists are written in ( ) with blanks between the elements: ${} stays empty",
                         assignment.name));
  }
}

std::span<const Rule> list_rules() { return kListRules; }

}  // namespace stoker::script_lint
