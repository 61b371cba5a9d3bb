// Rules for the end of a command: too early because of a blank after a backslash or a missing backslash, or
// too late because of an extra backslash.
#include <algorithm>
#include <cctype>

#include "script_lint/rule.h"
#include "script_lint/rules/commands/interactive.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "find . -exec cp {} there" without \\; or +: find prints an error and does nothing.
void find_open_exec(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const auto exec = std::find_if(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word == "-exec" || word == "-execdir" || word == "-ok";
    });
    if (call.program != "find" || exec == call.words.end()) continue;
    const bool is_closed = std::any_of(exec, call.words.end(), [](const std::string& word) {
      return word == ";" || word == "+" || word.ends_with(';');
    });
    if (is_closed) continue;
    report.replace({call.span.end, call.span.end},
                   message("find does not see the end of {} and does nothing", *exec), " \\;");
  }
}

// A backslash followed by blanks at a line end: the blank becomes a word.
void find_blank_behind_backslash(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const bool is_first = !call.command->words.empty() && call.program_word == &call.command->words[0];
    if (!is_first || call.typed.empty()) continue;
    const bash::Span last = call.typed.back()->span;
    const std::size_t line_end = script.line_of(last.end).end;
    const bool is_blank = script.at(last).starts_with("\\ ") || script.at(last).starts_with("\\\t");
    if (!is_blank || !trim(script.at({last.begin + 1, line_end})).empty()) continue;
    // The shell runs the next line as a program; options are reported below.
    const std::string_view next = trim(script.at(script.line_of(std::min(line_end + 1, script.text.size()))));
    if (next.starts_with('-')) continue;
    const bool is_cut = !next.empty() && next[0] != '#' && line_end + 1 < script.text.size();
    const std::size_t at = is_cut ? script.text.find(next, line_end + 1) : last.begin;
    report
        .add({at, at},
             is_cut
                 ? message("a blank after the backslash: the command above ends before this line")
                 : message("a blank after the backslash: {} gets it as an argument", printable(call.program)))
        .edits = {{last.begin + 1, line_end, ""}};
  }
}

// "  --epochs 10" as a separate line: the command above ended without a backslash, or with a backslash and a
// blank.
void find_cut_command(const Script& script, FindingReport& report) {
  find_open_exec(script, report);
  find_blank_behind_backslash(script, report);
  // Notes for interactive use: options of a different salloc.
  if (std::any_of(script.calls.begin(), script.calls.end(), opens_shell)) return;
  for (const ProgramCall& call : script.calls) {
    const bool is_first = !call.command->words.empty() && call.program_word == &call.command->words[0];
    const std::string_view typed = script.at(call.program_word->span);
    if (!is_first || typed.size() < 2 || typed[0] != '-' ||
        (typed[1] != '-' && std::isalpha(static_cast<unsigned char>(typed[1])) == 0))
      continue;
    const std::size_t line = script.line_of(call.program_word->span.begin).begin;
    if (line == 0) continue;
    const std::string_view above = script.at(script.line_of(line - 1));
    const std::size_t last = above.find_last_not_of(" \t");
    const Message text =
        message("the command above ends before this line, and the shell runs a program {}", printable(typed));
    const bool is_comment = trim(above).starts_with('#');
    ScriptFinding& finding = report.add(call.program_word->span, text);
    if (last == std::string_view::npos || is_comment) continue;
    if (above[last] == '\\') {
      finding.edits = {{line - 1 - (above.size() - last - 1), line - 1, ""}};
    } else {
      finding.edits = {{line - 1, line - 1, " \\"}};
    }
  }
}

// Whether a continuation line begins between the two.
bool is_on_next_line(const Script& script, std::size_t end, std::size_t begin) {
  const std::string_view between = script.at({end, begin});
  return between.find("\\\n") != std::string_view::npos;
}

// "python train.py \" and a line "echo done": an argument of the command above.
void find_joined_command(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const bool is_program = is_python(call.program) && is_work(call) && !call.option("-m");
    if (!is_program && call.program != "Rscript") continue;
    for (std::size_t i = 1; i < call.typed.size(); ++i) {
      const std::string_view word = script.at(call.typed[i]->span);
      const bool is_command =
          is_python(word) || is_one_of(word, {"echo", "wait", "date", "deactivate", "exit", "conda", "module",
                                              "source", "srun", "torchrun", "cd", "mkdir", "cp", "mv", "rm"});
      const std::size_t before = call.typed[i - 1]->span.end;
      if (!is_command || !is_on_next_line(script, before, call.typed[i]->span.begin)) continue;
      const std::size_t sign = script.text.find('\\', before);
      report
          .add(call.typed[i]->span,
               message("the line above ends with a backslash: {} is an argument of {}", word, call.program))
          .edits = {{before, sign + 1, ""}};
      break;
    }
  }
}

constexpr Rule kContinuationRules[] = {
    {"cut-command", Level::job, "a backslash continues a command only as the last character of its line",
     "#!/bin/bash\npython train.py \\ \n  --epochs 10\n", "#!/bin/bash\npython train.py \\\n  --epochs 10\n",
     "shellcheck SC1101", find_cut_command},
    {"joined-command", Level::job, "a backslash at the end of a line joins the next line to the command",
     "#!/bin/bash\n#SBATCH -n 1\npython -u train.py \\\n  --epochs 3 \\\necho done\n",
     "#!/bin/bash\n#SBATCH -n 1\npython -u train.py \\\n  --epochs 3\necho done\n",
     "argparse: \"unrecognized arguments: echo done\"", find_joined_command},
};

}  // namespace

std::span<const Rule> continuation_rules() { return kContinuationRules; }

}  // namespace stoker::script_lint
