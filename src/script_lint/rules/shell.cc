// Rules for shell syntax with an unintended meaning: blanks, braces, quotes and variables.
#include <algorithm>
#include <array>
#include <cctype>

#include "bash/parser.h"
#include "script_lint/rule.h"
#include "script_lint/rules/commands/lists.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "name = value": a program with two arguments.
void find_spaced_assignment(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
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
    ScriptFinding& finding =
        report.replace({call.program_word->span.begin, end},
                       message("blanks around =: the shell runs a program {}, and ${} stays unchanged",
                               printable(name), printable(name)),
                       format("{}=", name));
    // "SEED = 3 python a.py": the program does not start. Otherwise only a log line is lost.
    const bool has_program = call.typed.size() > 2 && !is_glued;
    if (!script.names.is_mentioned(name) && !has_program) finding.level = Level::time;
  }
}

// "$name = value" and "$name=value": the shell runs the value of $name.
void find_dollar_assignment(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const std::vector<bash::WordPiece>& pieces = call.program_word->pieces;
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
    report.replace(
        {call.program_word->span.begin, end},
        message("${} on the left of =: the shell sets nothing and runs the value of ${} as a program", name,
                name),
        format("{}=", name));
  }
}

// A number, a quoted text or a path: no program, and the variable before it is used later.
bool is_value(std::string_view typed) {
  return !typed.empty() &&
         (std::isdigit(static_cast<unsigned char>(typed[0])) != 0 || typed[0] == '"' || typed[0] == '\'' ||
          typed[0] == '/' || typed[0] == '~' ||
          (typed[0] == '$' && typed.find('/') != std::string_view::npos) || typed.starts_with("$(") ||
          typed[0] == '`' || typed.starts_with("./") || typed.starts_with("../"));
}

// "export $DATA=/data": sets the variable named by the value of $DATA.
void report_exported_dollar(const ProgramCall& call, const Script& script, FindingReport& report) {
  for (const bash::Word* word : call.typed) {
    const std::vector<bash::WordPiece>& pieces = word->pieces;
    const bool is_variable = pieces.size() > 1 && pieces[0].kind == bash::PieceKind::variable &&
                             !pieces[0].is_quoted && script.at(pieces[0].span) == "$" + pieces[0].text &&
                             pieces[1].kind == bash::PieceKind::literal && pieces[1].text.starts_with('=');
    if (!is_variable || script.names.is_set(pieces[0].text)) continue;
    report.replace({word->span.begin, word->span.begin + 1},
                   message("${} on the left of =: the shell does not set that variable", pieces[0].text), "");
  }
}

// "MODEL= resnet50" where $MODEL is read later: not a known program.
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

// "DATA= /data/set/" and "export DATA = /data/set": no value, or an empty one.
void find_empty_assignment(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const bash::ShellCommand& command = *call.command;
    const bool is_first = !command.words.empty() && call.program_word == &command.words[0];
    if (!is_first) continue;
    const bool declares = is_one_of(call.program, {"export", "declare", "local", "readonly", "typeset"});
    if (declares) {
      report_exported_dollar(call, script, report);
      for (std::size_t i = 0; i < call.typed.size(); ++i) {
        if (script.at(call.typed[i]->span) != "=" || i == 0) continue;
        const std::string_view name = script.at(call.typed[i - 1]->span);
        const std::size_t end =
            i + 1 < call.typed.size() ? call.typed[i + 1]->span.begin : call.typed[i]->span.end;
        report.replace({call.typed[i - 1]->span.end, end},
                       message("blanks around =: {} treats '=' as a name, and ${} stays unchanged",
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
                   message("a blank after =: ${} is empty, and the shell interprets {} separately",
                           assignment.name, printable(script.at(behind->span))),
                   "");
  }
}

void find_no_assignment(const Script& script, FindingReport& report) {
  find_spaced_assignment(script, report);
  find_dollar_assignment(script, report);
  find_empty_assignment(script, report);
}

// "[$x = 1 ]", "[ $x = 1]": a program "[1", or a missing "]".
void find_test_blank(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const std::string_view typed = script.at(call.program_word->span);
    const std::size_t brackets = typed.starts_with("[[") ? 2 : 1;
    if (typed.starts_with('[') && typed.size() > brackets && typed != "[[") {
      const std::size_t at = call.program_word->span.begin + brackets;
      report.replace(
          {at, at},
          message("no blank after {}: the shell runs a program of that name, and the condition is never true",
                  typed.substr(0, brackets)),
          " ");
    } else if (typed == "[" && !call.typed.empty()) {
      const std::string_view last = script.at(call.typed.back()->span);
      if (last == "]" || !last.ends_with(']')) continue;
      const std::size_t at = call.typed.back()->span.end - 1;
      report.replace({at, at},
                     message("no blank before ]: [ does not find its end, and the condition is never true"),
                     " ");
    }
  }
}

void find_braces(const bash::List& list, const Script& script, FindingReport& report) {
  for (const bash::Item& item : list.items) {
    for (const bash::ShellCommand& command : item.pipeline.commands) {
      for (const bash::Word& word : command.words) {
        if (command.kind != bash::CommandKind::for_) break;
        const std::string_view text = script.at(word.span);
        const std::size_t dots = text.find("..");
        if (!text.starts_with('{') || !text.ends_with('}') || dots == std::string_view::npos ||
            text.find('$') == std::string_view::npos)
          continue;
        report.replace(
            word.span,
            message("the shell expands variables after braces: the loop runs once, with '{}'",
                    printable(flatten(word, script.text))),
            format("$(seq {} {})", text.substr(1, dots - 1), text.substr(dots + 2, text.size() - dots - 3)));
      }
      for (const bash::List& part : command.parts) find_braces(part, script, report);
    }
  }
}

void find_brace_variable(const Script& script, FindingReport& report) {
  if (script.interpreter == "zsh" || script.interpreter == "ksh") return;
  find_braces(script.tree.list, script, report);
}

// Quotes and blanks of word processors and web pages.
constexpr std::string_view kTypographic[] = {"\u201C", "\u201D", "\u2018", "\u2019",
                                             "\u00A0", "\u200B", "\uFEFF"};

bool has_typographic(std::string_view text) {
  return std::any_of(std::begin(kTypographic), std::end(kTypographic),
                     [&](std::string_view odd) { return text.find(odd) != std::string_view::npos; });
}

std::string without_typographic(std::string_view text) {
  constexpr std::string_view kInstead[] = {"\"", "\"", "'", "'", " ", "", ""};
  std::string out;
  while (!text.empty()) {
    std::size_t i = 0;
    while (i < std::size(kTypographic) && !text.starts_with(kTypographic[i])) ++i;
    if (i < std::size(kTypographic)) {
      out += kInstead[i];
      text.remove_prefix(kTypographic[i].size());
    } else {
      out += text[0];
      text.remove_prefix(1);
    }
  }
  return out;
}

bool has_typographic_outside_quotes(const bash::Word& word, const Script& script) {
  return std::any_of(word.pieces.begin(), word.pieces.end(), [&](const bash::WordPiece& piece) {
    return piece.kind == bash::PieceKind::literal && !piece.is_quoted &&
           has_typographic(script.at(piece.span));
  });
}

void find_typographic_characters(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const bool is_name =
        is_one_of(directive.option.name,
                  {"--partition", "--account", "--qos", "--constraint", "--gres", "--nodelist", "--chdir"});
    const std::string_view typed = script.at(directive.value);
    if (is_name && has_typographic(typed))
      report.replace(directive.value, message("a quote or blank from a word processor, which is literal"),
                     without_typographic(typed));
  }
  std::size_t line = std::string::npos;  // one finding per line
  const auto report_at = [&](const bash::Word& word) {
    // Rule no-interpreter reports a byte order mark at the beginning.
    if (word.span.begin == 0 || !has_typographic_outside_quotes(word, script)) return;
    const bash::Span whole = script.line_of(word.span.begin);
    if (whole.begin == line || trim(without_typographic(trim(script.at(whole)))).empty()) return;
    line = whole.begin;
    report.replace({word.span.begin, whole.end},
                   message("a quote or blank from a word processor, which is literal"),
                   without_typographic(script.at({word.span.begin, whole.end})));
  };
  for (const VariableSetting& setting : script.settings) report_at(setting.assignment->value);
  for (const ProgramCall& call : script.calls) {
    if (call.program == "echo" || call.program == "printf") continue;
    report_at(*call.program_word);
    for (const bash::Word* word : call.typed) report_at(*word);
  }
}

// Commands with a path argument, which does not exist if the variable is not expanded.
bool takes_path(const ProgramCall& call) {
  if (is_one_of(call.program, {"cd", "source", ".", "pushd", "mkdir"})) return true;
  return is_one_of(call.program, {"conda", "mamba", "micromamba"}) && !call.words.empty() &&
         call.words[0] == "activate";
}

// "cd \\$HOME/a" and "cd '$HOME/a'", as in generated scripts.
void find_kept_variable(const Script& script, FindingReport& report) {
  find_kept_word(script, report);
  for (const ProgramCall& call : script.calls) {
    if (!takes_path(call) || call.context.is_remote) continue;
    for (const bash::Word* word : call.typed) {
      const std::string_view text = script.at(word->span);
      const std::size_t sign = text.starts_with('\'')   ? 1
                               : text.starts_with('\\') ? 1
                                                        : std::string_view::npos;
      const bool is_kept =
          sign != std::string_view::npos && sign + 1 < text.size() && text[sign] == '$' &&
          (std::isalpha(static_cast<unsigned char>(text[sign + 1])) != 0 || text[sign + 1] == '{');
      // The quotes around this command belong to a different shell.
      const bool is_ours = script.at(script.line_of(word->span.begin)).find('"') == std::string_view::npos;
      if (!is_kept || !is_ours) continue;
      const std::string_view name = text.substr(sign);
      report.replace(
          word->span, message("{}: $ is literal here, and no such path exists", printable(text)),
          text.starts_with('\'') ? format("\"{}\"", name.substr(0, name.size() - 1)) : std::string(name));
    }
  }
}

bool asks_for_own_folder(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return (has("dirname") || has("realpath") || has("readlink")) &&
         (has("$0") || has("${0}") || has("BASH_SOURCE"));
}

// Cache folders, whose contents can be downloaded again.
bool is_cache(std::string_view name) {
  return is_one_of(name, {"HF_HOME", "TORCH_HOME", "XDG_CACHE_HOME", "TMPDIR", "TRITON_CACHE_DIR"}) ||
         name.ends_with("_CACHE") || name.ends_with("_CACHEDIR") || name.ends_with("_CACHE_DIR");
}

// Whether the setting is never read.
bool is_unread(const Script& script, const VariableSetting& setting) {
  return !setting.is_exported && !setting.is_command_scoped && !script.names.is_mentioned(setting.name);
}

// Whether $NAME occurs only in settings of caches and of unread variables.
bool is_only_for_caches(const Script& script, std::string_view name) {
  for (std::size_t at = script.text.find(name); at != std::string::npos;
       at = script.text.find(name, at + 1)) {
    const std::string_view before = std::string_view(script.text).substr(0, at);
    if (!before.ends_with('$') && !before.ends_with("${")) continue;
    const bool is_there =
        std::any_of(script.settings.begin(), script.settings.end(), [&](const VariableSetting& setting) {
          const bash::Span span = setting.assignment->span;
          return (is_cache(setting.name) || is_unread(script, setting)) && span.begin <= at && at < span.end;
        });
    if (!is_there) return false;
  }
  return true;
}

// "cd $(dirname $0)": Slurm runs a copy of the script in a spool folder.
void find_spool_folder(const Script& script, FindingReport& report) {
  // The script already handles the copy.
  if (script.request.directives.empty() || script.mentions("SLURM_SUBMIT_DIR") ||
      script.mentions("scontrol show job"))
    return;
  const auto report_at = [&](bash::Span at) {
    report
        .add(at,
             message("Slurm runs a copy of the script: this is slurmd's folder and not that of the project"))
        .fix = "$SLURM_SUBMIT_DIR";
  };
  for (const VariableSetting& setting : script.settings) {
    const bash::Span span = setting.assignment->span;
    // The current folder often provides the same PYTHONPATH.
    if (setting.context.is_condition || !setting.context.function.empty() ||
        !script.names.is_mentioned(setting.name) || setting.name == "PYTHONPATH" ||
        !asks_for_own_folder(script.at(span)) || is_only_for_caches(script, setting.name))
      continue;
    return report_at(span);
  }
  for (const ProgramCall& call : script.calls) {
    const bool goes = is_one_of(call.program, {"cd", "pushd", "source", "."}) && !call.context.is_condition &&
                      !call.context.is_substituted && call.context.function.empty();
    for (const bash::Word* word : call.typed) {
      if (goes && asks_for_own_folder(script.at(word->span))) return report_at(word->span);
    }
  }
}

constexpr Rule kShellRules[] = {
    {"assignment-blank", Level::job,
     "with a blank around =, or a $ before the name, the shell sets nothing and runs the name",
     "#!/bin/bash\n#SBATCH -n 1\nconfig = /data/a.yaml\n./run $config\n",
     "#!/bin/bash\n#SBATCH -n 1\nconfig=/data/a.yaml\n./run $config\n", "shellcheck SC1068",
     find_no_assignment},
    {"test-blank", Level::job, "[ is a program, and needs blanks around its arguments",
     "#!/bin/bash\n#SBATCH -n 1\nif [$1 = a ]; then\n  ./a\nfi\n",
     "#!/bin/bash\n#SBATCH -n 1\nif [ $1 = a ]; then\n  ./a\nfi\n", "shellcheck SC1035", find_test_blank},
    {"brace-variable", Level::job, "the shell expands braces before variables",
     "#!/bin/bash\nN=4\nfor i in {1..$N}; do\n  ./a $i\ndone\n",
     "#!/bin/bash\nN=4\nfor i in $(seq 1 $N); do\n  ./a $i\ndone\n", "shellcheck SC2051",
     find_brace_variable},
    {"typographic-character", Level::job,
     "quotes and blanks from a word processor are ordinary characters for the shell",
     "#!/bin/bash\npython train.py --name \u201Ca\u201D\n", "#!/bin/bash\npython train.py --name \"a\"\n",
     "shellcheck SC1110", find_typographic_characters},
    {"kept-variable", Level::job, "after a backslash and in single quotes $ is literal",
     "#!/bin/bash\n#SBATCH -n 1\ncd \\$HOME/project\n./a\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd $HOME/project\n./a\n", "shellcheck SC2016", find_kept_variable},
    {"spool-folder", Level::job, "Slurm runs a copy of a batch script, so $0 is in slurmd's folder",
     "#!/bin/bash\n#SBATCH -n 1\ncd \"$(dirname \"$0\")\"\n./a\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd \"$SLURM_SUBMIT_DIR\"\n./a\n", "users' notes", find_spool_folder},
};

}  // namespace

std::span<const Rule> shell_rules() { return kShellRules; }

}  // namespace stoker::script_lint
