// Rules over what the shell takes for something else than was meant: blanks, braces, quotes and lines that
// begin anew.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "explain/bash/parser.h"
#include "explain/script/rule.h"
#include "explain/script/rules/commands/lists.h"

namespace stoker::explain {
namespace {

// "name = value": for the shell a program with two arguments.
void find_spaced_assignment(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const std::string_view name = script.at(call.program_word->span);
    const bool is_name = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                         std::all_of(name.begin(), name.end(),
                                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!is_name || call.typed.empty() || name == "test" || name == "expr" || name == "let" || name == "set")
      continue;
    const std::string_view sign = script.at(call.typed[0]->span);
    const bool is_glued =
        sign.size() > 1 && sign[0] == '=' && sign[1] != '=' && script.names.is_mentioned(name);
    if (sign != "=" && !is_glued) continue;
    const std::size_t end = is_glued                ? call.typed[0]->span.begin + 1
                            : call.typed.size() > 1 ? call.typed[1]->span.begin
                                                    : call.typed[0]->span.end;
    ScriptFinding& finding = report.replace(
        {call.program_word->span.begin, end},
        report.say("blanks beside =: the shell looks for a program {}, and ${} stays as it was",
                   printable(name), printable(name)),
        format("{}=", name));
    // "SEED = 3 python a.py": the program is not started either. Else no more is lost than a line of the log.
    const bool has_program = call.typed.size() > 2 && !is_glued;
    if (!script.names.is_mentioned(name) && !has_program) finding.level = Level::time;
  }
}

// "$name = value" and "$name=value", as other languages have it: for the shell the program that $name holds.
void find_dollar_assignment(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const std::vector<bash::Piece>& pieces = call.program_word->pieces;
    const bool is_variable =
        !pieces.empty() && pieces[0].kind == bash::PieceKind::variable && !pieces[0].is_quoted &&
        pieces[0].operation.empty() &&
        (script.at(pieces[0].span) == "$" + pieces[0].text ||
         script.at(pieces[0].span) == "${" + pieces[0].text + "}") &&
        (std::isalpha(static_cast<unsigned char>(pieces[0].text[0])) != 0 || pieces[0].text[0] == '_');
    if (!is_variable) continue;
    const std::string_view behind = script.at({pieces[0].span.end, call.program_word->span.end});
    const bool is_apart = behind.empty() && !call.typed.empty() && script.at(call.typed[0]->span) == "=";
    if (!is_apart && (!behind.starts_with('=') || behind.starts_with("=="))) continue;
    const std::string& name = pieces[0].text;
    const std::size_t end = !is_apart               ? pieces[0].span.end + 1
                            : call.typed.size() > 1 ? call.typed[1]->span.begin
                                                    : call.typed[0]->span.end;
    report.replace({call.program_word->span.begin, end},
                   report.say("${} on the left of =: the shell sets nothing, and runs what ${} holds as a "
                              "program",
                              name, name),
                   format("{}=", name));
  }
}

// A number, a text in quotes or a path: no program, where the variable before it is used later.
bool is_value(std::string_view typed) {
  return !typed.empty() &&
         (std::isdigit(static_cast<unsigned char>(typed[0])) != 0 || typed[0] == '"' || typed[0] == '\'' ||
          typed[0] == '/' || typed[0] == '~' ||
          (typed[0] == '$' && typed.find('/') != std::string_view::npos) || typed.starts_with("$(") ||
          typed[0] == '`' || typed.starts_with("./") || typed.starts_with("../"));
}

// "export $DATA=/data": a variable of the name that $DATA holds.
void tell_exported_dollar(const Call& call, const Script& script, Report& report) {
  for (const bash::Word* word : call.typed) {
    const std::vector<bash::Piece>& pieces = word->pieces;
    const bool is_variable = pieces.size() > 1 && pieces[0].kind == bash::PieceKind::variable &&
                             !pieces[0].is_quoted && script.at(pieces[0].span) == "$" + pieces[0].text &&
                             pieces[1].kind == bash::PieceKind::literal && pieces[1].text.starts_with('=');
    if (!is_variable || script.names.is_set(pieces[0].text)) continue;
    report.replace({word->span.begin, word->span.begin + 1},
                   report.say("${} on the left of =: the shell sets nothing of that name", pieces[0].text),
                   "");
  }
}

// "MODEL= resnet50" where $MODEL is read later: a name that no program is known by.
bool is_bare_value(const bash::Assignment& assignment, const bash::Word& behind, const Script& script) {
  const std::string_view text = script.at(behind.span);
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  const bool is_program = is_one_of(text, {"read", "sort", "set", "env", "exec", "eval", "source", "bash",
                                           "sh", "make", "ls", "cat"}) ||
                          text.starts_with("python") || text.ends_with(".sh") || text.ends_with(".py");
  const std::string_view rest = script.at({behind.span.end, script.line_of(behind.span.end).end});
  const std::string_view next = trim(rest);
  return is_plain && !is_program && (next.empty() || next[0] == '#') && script.names.is_read(assignment.name);
}

// "DATA= /data/set/" and "export DATA = /data/set": the shell sets nothing, or an empty text.
void find_empty_assignment(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const bash::Command& command = *call.command;
    const bool is_first = !command.words.empty() && call.program_word == &command.words[0];
    if (!is_first) continue;
    const bool declares = is_one_of(call.program, {"export", "declare", "local", "readonly", "typeset"});
    if (declares) {
      tell_exported_dollar(call, script, report);
      for (std::size_t i = 0; i < call.typed.size(); ++i) {
        if (script.at(call.typed[i]->span) != "=" || i == 0) continue;
        const std::string_view name = script.at(call.typed[i - 1]->span);
        const std::size_t end =
            i + 1 < call.typed.size() ? call.typed[i + 1]->span.begin : call.typed[i]->span.end;
        report.replace({call.typed[i - 1]->span.end, end},
                       report.say("blanks beside =: {} takes '=' for a name, and ${} stays as it was",
                                  call.program, printable(name)),
                       "=");
        break;
      }
    }
    if (command.assignments.size() != 1 || (!declares && !call.typed.empty())) continue;
    const bash::Assignment& assignment = command.assignments[0];
    const bash::Word* behind = declares ? (call.typed.empty() ? nullptr : call.typed[0]) : call.program_word;
    const bool is_behind = behind != nullptr &&
                           (is_value(script.at(behind->span)) || is_bare_value(assignment, *behind, script));
    if (!is_behind || !assignment.value.pieces.empty() || assignment.is_array ||
        behind->span.begin <= assignment.span.end || !script.names.is_mentioned(assignment.name))
      continue;
    report.replace({assignment.span.end, behind->span.begin},
                   report.say("a blank behind =: ${} is empty, and the shell takes {} for something else",
                              assignment.name, printable(script.at(behind->span))),
                   "");
  }
}

void find_no_assignment(const Script& script, Report& report) {
  find_spaced_assignment(script, report);
  find_dollar_assignment(script, report);
  find_empty_assignment(script, report);
}

// "[$x = 1 ]", "[ $x = 1]": a program "[1", or one that does not find its last word.
void find_test_blank(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const std::string_view typed = script.at(call.program_word->span);
    const std::size_t brackets = typed.starts_with("[[") ? 2 : 1;
    if (typed.starts_with('[') && typed.size() > brackets && typed != "[[") {
      const std::size_t at = call.program_word->span.begin + brackets;
      report.replace(
          {at, at},
          report.say("no blank behind {}: the shell looks for a program of that name, and the condition is "
                     "never true",
                     typed.substr(0, brackets)),
          " ");
    } else if (typed == "[" && !call.typed.empty()) {
      const std::string_view last = script.at(call.typed.back()->span);
      if (last == "]" || !last.ends_with(']')) continue;
      const std::size_t at = call.typed.back()->span.end - 1;
      report.replace(
          {at, at}, report.say("no blank before ]: [ does not find its end, and the condition is never true"),
          " ");
    }
  }
}

void find_braces(const bash::List& list, const Script& script, Report& report) {
  for (const bash::Item& item : list.items) {
    for (const bash::Command& command : item.pipeline.commands) {
      for (const bash::Word& word : command.words) {
        if (command.kind != bash::CommandKind::for_) break;
        const std::string_view text = script.at(word.span);
        const std::size_t dots = text.find("..");
        if (!text.starts_with('{') || !text.ends_with('}') || dots == std::string_view::npos ||
            text.find('$') == std::string_view::npos)
          continue;
        report.replace(
            word.span,
            report.say("the shell puts in variables after braces: the loop runs once, with '{}'",
                       printable(flat(word, script.text))),
            format("$(seq {} {})", text.substr(1, dots - 1), text.substr(dots + 2, text.size() - dots - 3)));
      }
      for (const bash::List& part : command.parts) find_braces(part, script, report);
    }
  }
}

void find_brace_variable(const Script& script, Report& report) {
  if (script.interpreter == "zsh" || script.interpreter == "ksh") return;
  find_braces(script.tree.list, script, report);
}

// Quotes and blanks that a word processor or a web page has made.
constexpr std::string_view kOddLetters[] = {"\u201C", "\u201D", "\u2018", "\u2019",
                                            "\u00A0", "\u200B", "\uFEFF"};

bool has_odd_letter(std::string_view text) {
  return std::any_of(std::begin(kOddLetters), std::end(kOddLetters),
                     [&](std::string_view odd) { return text.find(odd) != std::string_view::npos; });
}

std::string without_odd_letters(std::string_view text) {
  constexpr std::string_view kInstead[] = {"\"", "\"", "'", "'", " ", "", ""};
  std::string out;
  while (!text.empty()) {
    std::size_t i = 0;
    while (i < std::size(kOddLetters) && !text.starts_with(kOddLetters[i])) ++i;
    if (i < std::size(kOddLetters)) {
      out += kInstead[i];
      text.remove_prefix(kOddLetters[i].size());
    } else {
      out += text[0];
      text.remove_prefix(1);
    }
  }
  return out;
}

bool is_odd_outside_quotes(const bash::Word& word, const Script& script) {
  return std::any_of(word.pieces.begin(), word.pieces.end(), [&](const bash::Piece& piece) {
    return piece.kind == bash::PieceKind::literal && !piece.is_quoted &&
           has_odd_letter(script.at(piece.span));
  });
}

void find_odd_letter(const Script& script, Report& report) {
  for (const Directive& directive : script.request.directives) {
    const bool is_name =
        is_one_of(directive.option.name,
                  {"--partition", "--account", "--qos", "--constraint", "--gres", "--nodelist", "--chdir"});
    const std::string_view typed = script.at(directive.value);
    if (is_name && has_odd_letter(typed))
      report.replace(directive.value,
                     report.say("a quote or a blank of a word processor, which stands for itself"),
                     without_odd_letters(typed));
  }
  std::size_t line = std::string::npos;  // one finding for each
  const auto tell = [&](const bash::Word& word) {
    // A mark at the text's begin is told by the rule over first lines.
    if (word.span.begin == 0 || !is_odd_outside_quotes(word, script)) return;
    const bash::Span whole = script.line_of(word.span.begin);
    if (whole.begin == line || trim(without_odd_letters(trim(script.at(whole)))).empty()) return;
    line = whole.begin;
    report.replace({word.span.begin, whole.end},
                   report.say("a quote or a blank of a word processor, which stands for itself"),
                   without_odd_letters(script.at({word.span.begin, whole.end})));
  };
  for (const Setting& setting : script.settings) tell(setting.assignment->value);
  for (const Call& call : script.calls) {
    if (call.program == "echo" || call.program == "printf") continue;
    tell(*call.program_word);
    for (const bash::Word* word : call.typed) tell(*word);
  }
}

// Programs whose word is a place: where the shell puts in no variable, it is none.
bool goes_to_place(const Call& call) {
  if (is_one_of(call.program, {"cd", "source", ".", "pushd", "mkdir"})) return true;
  return is_one_of(call.program, {"conda", "mamba", "micromamba"}) && !call.words.empty() &&
         call.words[0] == "activate";
}

// "cd \\$HOME/a" and "cd '$HOME/a'", as a script that writes scripts has them.
void find_kept_variable(const Script& script, Report& report) {
  find_kept_word(script, report);
  for (const Call& call : script.calls) {
    if (!goes_to_place(call) || call.context.is_remote) continue;
    for (const bash::Word* word : call.typed) {
      const std::string_view text = script.at(word->span);
      const std::size_t sign = text.starts_with('\'')   ? 1
                               : text.starts_with('\\') ? 1
                                                        : std::string_view::npos;
      const bool is_kept =
          sign != std::string_view::npos && sign + 1 < text.size() && text[sign] == '$' &&
          (std::isalpha(static_cast<unsigned char>(text[sign + 1])) != 0 || text[sign + 1] == '{');
      // Quotes around this command are another shell's.
      const bool is_ours = script.at(script.line_of(word->span.begin)).find('"') == std::string_view::npos;
      if (!is_kept || !is_ours) continue;
      const std::string_view name = text.substr(sign);
      report.replace(
          word->span,
          report.say("{}: $ is a letter like others here, and no such place is there", printable(text)),
          text.starts_with('\'') ? format("\"{}\"", name.substr(0, name.size() - 1)) : std::string(name));
    }
  }
}

bool asks_for_own_folder(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return (has("dirname") || has("realpath") || has("readlink")) &&
         (has("$0") || has("${0}") || has("BASH_SOURCE"));
}

// Programs keep there what they can fetch again.
bool is_cache(std::string_view name) {
  return is_one_of(name, {"HF_HOME", "TORCH_HOME", "XDG_CACHE_HOME", "TMPDIR", "TRITON_CACHE_DIR"}) ||
         name.ends_with("_CACHE") || name.ends_with("_CACHEDIR") || name.ends_with("_CACHE_DIR");
}

// Whether nobody asks for a setting's value.
bool is_unread(const Script& script, const Setting& setting) {
  return !setting.is_exported && !setting.is_of_command && !script.names.is_mentioned(setting.name);
}

// $NAME stands in what caches, or variables that nobody reads, are set to, and nowhere else.
bool is_for_little(const Script& script, std::string_view name) {
  for (std::size_t at = script.text.find(name); at != std::string::npos;
       at = script.text.find(name, at + 1)) {
    const std::string_view before = std::string_view(script.text).substr(0, at);
    if (!before.ends_with('$') && !before.ends_with("${")) continue;
    const bool is_there =
        std::any_of(script.settings.begin(), script.settings.end(), [&](const Setting& setting) {
          const bash::Span span = setting.assignment->span;
          return (is_cache(setting.name) || is_unread(script, setting)) && span.begin <= at && at < span.end;
        });
    if (!is_there) return false;
  }
  return true;
}

// "cd $(dirname $0)": Slurm runs a copy of the script, and $0 is that one's place.
void find_spool_folder(const Script& script, Report& report) {
  // Who knows of the copy looks elsewhere, too.
  if (script.request.directives.empty() || script.mentions("SLURM_SUBMIT_DIR") ||
      script.mentions("scontrol show job"))
    return;
  const auto tell = [&](bash::Span at) {
    report
        .add(at,
             report.say(
                 "Slurm runs a copy of the script, so that this is the folder of slurmd and not that of the "
                 "project"))
        .fix = "$SLURM_SUBMIT_DIR";
  };
  for (const Setting& setting : script.settings) {
    const bash::Span span = setting.assignment->span;
    // PYTHONPATH of the project's root is often there by the current folder, too.
    if (setting.context.is_condition || !setting.context.function.empty() ||
        !script.names.is_mentioned(setting.name) || setting.name == "PYTHONPATH" ||
        !asks_for_own_folder(script.at(span)) || is_for_little(script, setting.name))
      continue;
    return tell(span);
  }
  for (const Call& call : script.calls) {
    const bool goes = is_one_of(call.program, {"cd", "pushd", "source", "."}) && !call.context.is_condition &&
                      !call.context.is_substituted && call.context.function.empty();
    for (const bash::Word* word : call.typed) {
      if (goes && asks_for_own_folder(script.at(word->span))) return tell(word->span);
    }
  }
}

constexpr Rule kShellRules[] = {
    {"assignment-blank", Level::job,
     "with a blank beside =, or a $ before the name, the shell sets nothing and runs the name",
     "#!/bin/bash\n#SBATCH -n 1\nconfig = /data/a.yaml\n./run $config\n",
     "#!/bin/bash\n#SBATCH -n 1\nconfig=/data/a.yaml\n./run $config\n", "shellcheck SC1068",
     find_no_assignment},
    {"test-blank", Level::job, "[ is a program, and without blanks beside it the shell looks for another one",
     "#!/bin/bash\n#SBATCH -n 1\nif [$1 = a ]; then\n  ./a\nfi\n",
     "#!/bin/bash\n#SBATCH -n 1\nif [ $1 = a ]; then\n  ./a\nfi\n", "shellcheck SC1035", find_test_blank},
    {"brace-variable", Level::job, "the shell makes lists of braces before it puts in variables",
     "#!/bin/bash\nN=4\nfor i in {1..$N}; do\n  ./a $i\ndone\n",
     "#!/bin/bash\nN=4\nfor i in $(seq 1 $N); do\n  ./a $i\ndone\n", "shellcheck SC2051",
     find_brace_variable},
    {"odd-letter", Level::job, "quotes and blanks of a word processor are letters like others for the shell",
     "#!/bin/bash\npython train.py --name \u201Ca\u201D\n", "#!/bin/bash\npython train.py --name \"a\"\n",
     "shellcheck SC1110", find_odd_letter},
    {"kept-variable", Level::job, "behind a backslash and in single quotes $ is a letter like others",
     "#!/bin/bash\n#SBATCH -n 1\ncd \\$HOME/project\n./a\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd $HOME/project\n./a\n", "shellcheck SC2016", find_kept_variable},
    {"spool-folder", Level::job,
     "Slurm runs a copy of a batch script, so that $0 leads to slurmd's own folder",
     "#!/bin/bash\n#SBATCH -n 1\ncd \"$(dirname \"$0\")\"\n./a\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd \"$SLURM_SUBMIT_DIR\"\n./a\n", "users' notes", find_spool_folder},
};

}  // namespace

std::span<const Rule> shell_rules() { return kShellRules; }

}  // namespace stoker::explain
