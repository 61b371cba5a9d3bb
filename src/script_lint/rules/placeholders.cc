// The rule placeholder: values that the user did not fill in.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "bash/parser.h"
#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "script_lint/rules/commands/unfilled.h"
#include "script_lint/rules/placeholder_directive.h"
#include "script_lint/rules/placeholder_text.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "gpu:kepler:N": a letter in place of a count.
bool has_letter_count(const Script& script, const Directive& directive) {
  const auto gpus = script.request.gpus();
  return std::any_of(gpus.begin(), gpus.end(), [&](const GpuRequest& request) {
    const std::string& count =
        request.count == "1" && directive.option.name == "--gres" ? request.type : request.count;
    return request.directive == &directive && (count == "N" || count == "n" || count == "X" || count == "x");
  });
}

// "--account=##ACCOUNT##": sbatch reads a comment after the =.
std::optional<std::string> commented_value(const Script& script, const Directive& directive) {
  const slurm::SbatchOption& option = directive.option;
  const bool is_name = is_one_of(option.name, {"--account", "--partition", "--qos", "--output", "--error"});
  if (!is_name || !option.has_equals || !option.value.empty()) return std::nullopt;
  const std::string_view line = script.at(script.line_of(directive.span.begin));
  const std::size_t equals = line.find(option.typed + "=") + option.typed.size() + 1;
  if (equals + 1 >= line.size() || line[equals] != '#' || line[equals + 1] == ' ') return std::nullopt;
  return std::string(line.substr(equals, line.find(' ', equals) - equals));
}

void find_in_directives(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& value = directive.option.value;
    std::optional<std::string> found = placeholder_in(value);
    if (!found) found = brace_placeholder(value);
    if (!found) found = placeholder_in_directive(directive);
    if (!found && has_letter_count(script, directive)) found = value;
    if (!found) found = commented_value(script, directive);
    if (!found) continue;
    ScriptFinding& finding = report.add(
        directive.value, message("{}: '{}' is a placeholder", directive.option.typed, printable(*found)));
    if (is_free_text(directive.option.name)) finding.level = Level::advice;
  }
}

// "#SBATCH ...", which sbatch rejects.
void find_ellipsis(const Script& script, FindingReport& report) {
  for (const bash::Comment& comment : script.tree.comments) {
    const std::string_view text = script.at(comment.span);
    if (comment.span.begin >= script.first_command || !text.starts_with("#SBATCH") ||
        trim(text.substr(7)) != "...")
      continue;
    report.add(comment.span, message("'...' is a placeholder, sbatch 19.05 and later rejects it"));
  }
}

// Container runtimes, which have a separate Python.
bool is_container(std::string_view program) {
  return is_one_of(program, {"singularity", "apptainer", "docker", "podman", "shifter", "enroot", "sarus"});
}

// All work runs in containers, so that a missing environment does no damage.
bool works_in_containers(const Script& script) {
  bool has_work = false;
  for (const ProgramCall& call : script.calls) {
    if (!is_work(call) || is_launcher(call.program)) continue;
    const bool is_inside =
        std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& other) {
          return is_container(other.program) && other.span.begin <= call.span.begin &&
                 call.span.end <= other.span.end;
        });
    if (!is_inside) return false;
    has_work = true;
  }
  return has_work;
}

bool activates_environment(const ProgramCall& call) {
  return is_one_of(call.program, {"conda", "mamba", "micromamba"}) && !call.words.empty() &&
         call.words[0] == "activate";
}

// "{ROOT}", "{YOUR FOLDER}": unlike quoted braces of JSON, awk and Python.
bool is_in_capitals(std::string_view brace) {
  const std::size_t end = brace.find('}');
  return end != std::string_view::npos && end > 2 && brace[1] >= 'A' && brace[1] <= 'Z' &&
         std::all_of(brace.begin() + 1, brace.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ' ';
         });
}

// The literal text of a word; '$' for each variable and command, '(' for braces of other languages.
std::string own_text(const bash::Word& word) {
  std::string text;
  for (const bash::WordPiece& piece : word.pieces) {
    if (piece.kind != bash::PieceKind::literal) {
      text += '$';
      continue;
    }
    const std::string_view own = piece.text;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const bool is_doubled = (i > 0 && own[i - 1] == '{') || own.substr(i).starts_with("{{");
      const bool is_other = own[i] == '{' && piece.is_quoted && !is_doubled && !is_in_capitals(own.substr(i));
      text += is_other ? '(' : own[i];
    }
  }
  return text;
}

// Programs with a separate language in their arguments, and programs that only print.
bool has_own_language(const ProgramCall& call) {
  return is_one_of(call.program, {"echo", "printf", "mktemp", "sed",  "awk",   "gawk", "perl",
                                  "jq",   "grep",   "egrep",  "mail", "mailx", "curl", "git",
                                  "expr", "read",   "alias",  "[",    "[[",    "test", "date"});
}

// Programs that expand {name} themselves.
bool knows_braces(const ProgramCall& call) {
  return is_one_of(call.program, {"parallel", "xargs", "find", "snakemake", "docker", "podman", "fd"});
}

// "--data=/path/to/set" and "data=/path/to/set" without the name.
std::string_view behind_name(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (word.starts_with("--") || (word.starts_with('-') && equals != std::string_view::npos))
    return equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (word.starts_with('-')) return word.substr(std::min<std::size_t>(word.size(), 2));
  const bool is_named =
      equals != std::string_view::npos && equals > 0 &&
      std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                  [](char c) { return is_word(c) || c == '_' || c == '.' || c == '-' || c == '+'; });
  return is_named ? word.substr(equals + 1) : word;
}

// "{name}" as a whole word, which no shell expands.
std::optional<std::string> whole_brace_placeholder(std::string_view text) {
  const auto found = brace_placeholder(text);
  return found && found->size() == text.size() && text.size() > 4 ? found : std::nullopt;
}

// A placeholder folder anywhere in the text.
std::optional<std::string> impossible_root(std::string_view text) {
  for (std::string_view root : {"/path/to/", "/your_", "/PATH/TO/"}) {
    if (text.find(root) != std::string_view::npos) return std::string(root);
  }
  return std::nullopt;
}

// Sentences and code of other languages: only a path is significant.
bool is_code(std::string_view text) {
  return text.find_first_of("\n;()") != std::string_view::npos ||
         text.find("mktemp") != std::string_view::npos;
}

std::optional<std::string> placeholder_in_sentence(std::string_view text) {
  if (auto found = impossible_root(text)) return found;
  // "[training-dir]/{000..159}.tar"
  const std::size_t bracket = text.starts_with('[') ? text.find("]/") : std::string_view::npos;
  if (bracket != std::string_view::npos) {
    if (auto found = placeholder_part(text.substr(0, bracket + 1))) return found;
  }
  return is_code(text) ? std::nullopt : placeholder_phrase(text);
}

std::optional<std::string> placeholder_in_word(const ProgramCall& call, const bash::Word& word) {
  const std::string whole = own_text(word);
  const std::string_view text = behind_name(whole);
  if (is_code(whole) || text.find(' ') != std::string_view::npos) return placeholder_in_sentence(text);
  if (text == "XX") return std::string(text);
  if (auto found = generic_name(call, text)) return found;
  // Templates of Docker.
  const bool is_go =
      text.find("{{.") != std::string_view::npos || text.find("{{range") != std::string_view::npos;
  if (auto found = template_marker(text); found && !knows_braces(call) && !is_go) return found;
  if (auto found = placeholder_part(text)) return found;
  if (auto found = whole_word_placeholder(text)) return found;
  return knows_braces(call) ? std::nullopt : whole_brace_placeholder(text);
}

// "$YOUR_IMAGE" without an assignment.
std::optional<std::string> your_variable(const bash::Word& word, const Script& script) {
  for (const bash::WordPiece& piece : word.pieces) {
    const bool is_yours = piece.kind == bash::PieceKind::variable && piece.operation.empty() &&
                          to_lower(piece.text).starts_with("your_");
    if (is_yours && !script.variables.contains(piece.text)) return "$" + piece.text;
  }
  return std::nullopt;
}

// "cd [the folder with data]", "source {ENVIRONMENT SCRIPT HERE}": several words in one pair of brackets.
const bash::Word* multi_word_placeholder(const ProgramCall& call, const Script& script) {
  for (const char* pair : {"[]", "{}"}) {
    for (std::size_t i = 0; i + 1 < call.typed.size(); ++i) {
      const std::string_view begin = script.at(call.typed[i]->span);
      const bool is_apart = begin == "{{";
      const bool opens = begin.size() > 1 && begin[0] == pair[0] && (is_letter(begin[1]) || is_apart) &&
                         begin.find(pair[1]) == std::string_view::npos &&
                         begin.find(',') == std::string_view::npos;
      if (!opens) continue;
      for (std::size_t j = i + 1; j < call.typed.size(); ++j) {
        const std::string_view end = script.at(call.typed[j]->span);
        if (end.size() > 1 && end.find(pair[0]) == std::string_view::npos &&
            (end.ends_with(pair[1]) || end.find(std::string(1, pair[1]) + "/") != std::string_view::npos))
          return call.typed[i];
      }
    }
  }
  return nullptr;
}

// The words of a call and its output files.
std::vector<const bash::Word*> words_of(const ProgramCall& call) {
  std::vector<const bash::Word*> words = {call.program_word};
  words.insert(words.end(), call.typed.begin(), call.typed.end());
  const bool is_first = !call.command->words.empty() && call.program_word == &call.command->words[0];
  for (const bash::Redirection& redirection : call.command->redirections) {
    if (is_first &&
        (redirection.operation == ">" || redirection.operation == ">>" || redirection.operation == "&>"))
      words.push_back(&redirection.target);
  }
  return words;
}

void find_in_commands(const Script& script, FindingReport& report) {
  std::set<std::size_t> lines;  // one finding per line
  for (const ProgramCall& call : script.calls) {
    // Arguments of srun, unless a different shell reads them.
    const ProgramCall* launcher = script.launcher_of(call);
    if (has_own_language(call) || (launcher != nullptr && launcher->command == call.command)) continue;
    const bash::Word* wide = multi_word_placeholder(call, script);
    for (const bash::Word* word : words_of(call)) {
      std::optional<std::string> found = placeholder_in_word(call, *word);
      if (!found) found = your_variable(*word, script);
      if (!found && word == wide) found = script.at(word->span);
      if (!found || !lines.insert(script.line_of(word->span.begin).begin).second) continue;
      ScriptFinding& finding = report.add(word->span, message("'{}' is a placeholder", printable(*found)));
      if (activates_environment(call) && works_in_containers(script)) finding.level = Level::advice;
    }
  }
}

// "/proj/<mydir>/data" without quotes: the shell redirects input and output.
void find_angles_of(const bash::ShellCommand& command, const Script& script, FindingReport& report) {
  for (std::size_t i = 1; i < command.redirections.size(); ++i) {
    const bash::Redirection& open = command.redirections[i - 1];
    const bash::Redirection& close = command.redirections[i];
    const bool is_name = open.operation == "<" && close.operation == ">" &&
                         open.span.end == close.span.begin && open.target.span.begin == open.span.begin + 1 &&
                         open.descriptor.empty() && close.descriptor.empty() && bash::literal(open.target);
    if (!is_name) continue;
    report.add(open.span, message("'{}>' is a placeholder: the shell opens a file of that name",
                                  printable(script.at(open.span))));
    return;
  }
}

// "cd <path to the data>/": input and output redirections around words.
void find_wide_angles(const bash::ShellCommand& command, const Script& script, FindingReport& report) {
  if (command.redirections.size() != 2) return;
  const bash::Redirection& open = command.redirections[0];
  const bash::Redirection& close = command.redirections[1];
  const bool is_glued = open.operation == "<" && close.operation == ">" && open.descriptor.empty() &&
                        close.descriptor.empty() && open.target.span.begin == open.span.begin + 1 &&
                        close.span.begin > open.span.end;
  if (!is_glued || !bash::literal(open.target)) return;
  const bool ends_a_word =
      std::any_of(command.words.begin(), command.words.end(), [&](const bash::Word& word) {
        return word.span.end == close.span.begin && word.span.begin > open.span.end;
      });
  if (!ends_a_word || !script.at(close.target.span).starts_with('/') ||
      script.at(close.target.span).starts_with("/dev/"))
    return;
  report.add(open.span, message("'{}>' is a placeholder: the shell opens a file of that name",
                                printable(script.at({open.span.begin, close.span.begin}))));
}

void find_angles(const bash::List& list, const Script& script, FindingReport& report) {
  for (const bash::Item& item : list.items) {
    for (const bash::ShellCommand& command : item.pipeline.commands) {
      find_angles_of(command, script, report);
      find_wide_angles(command, script, report);
      for (const bash::List& part : command.parts) find_angles(part, script, report);
    }
  }
}

// "#", "#.txt", "#/set" with an omitted name; a colour is valid.
bool is_hash(std::string_view value) {
  return value == "#" || value.starts_with("#.") || value.starts_with("#/");
}

std::optional<std::string> placeholder_in_value(const std::string& value) {
  if (is_code(value) || value.find(' ') != std::string::npos) return placeholder_in_sentence(value);
  if (is_hash(value) || (value.size() > 2 && value.find_first_not_of('?') == std::string::npos)) return value;
  if (auto found = todo_marker(value)) return found;
  if (auto found = template_marker(value)) return found;
  if (auto found = placeholder_part(value)) return found;
  if (auto found = placeholder_phrase(value)) return found;
  return whole_brace_placeholder(value);
}

// "DATA=[path to the data]": the shell runs the program "to".
bool is_wide_value(const VariableSetting& setting, const Script& script) {
  const std::string_view value = script.at(setting.assignment->value.span);
  if (value.size() < 2 || value[0] != '[' || !is_letter(value[1]) ||
      value.find(']') != std::string_view::npos)
    return false;
  const bash::Span line = script.line_of(setting.assignment->span.begin);
  return std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
    return call.span.begin > setting.assignment->span.end && call.span.begin <= line.end &&
           !call.typed.empty() && script.at(call.typed.back()->span).ends_with(']');
  });
}

// Variables used without quotes, as in "--data $NAME": a sentence would become many words.
std::set<std::string_view> used_bare(const Script& script) {
  std::set<std::string_view> names;
  for (const ProgramCall& call : script.calls) {
    if (has_own_language(call)) continue;
    for (const bash::Word* word : call.typed) {
      std::string_view text = script.at(word->span);
      if (!text.starts_with('$')) continue;
      text.remove_prefix(1);
      if (text.size() > 2 && text.front() == '{' && text.back() == '}')
        text = text.substr(1, text.size() - 2);
      names.insert(text);
    }
  }
  return names;
}

// TOKEN="<Your token>", DATA=/path/to/data, ROOT="todo:ROOT"
void find_in_settings(const Script& script, FindingReport& report) {
  const std::set<std::string_view> bare = used_bare(script);
  for (const VariableSetting& setting : script.settings) {
    const bash::Assignment& assignment = *setting.assignment;
    if (setting.context.is_condition || !setting.context.function.empty() ||
        (!setting.is_exported && !setting.is_command_scoped && !script.names.is_mentioned(setting.name)))
      continue;
    std::optional<std::string> found = placeholder_in_value(own_text(assignment.value));
    for (const bash::Word& element : assignment.elements) {
      if (!found) found = placeholder_in_value(own_text(element));
    }
    if (is_wide_value(setting, script)) found = script.at(script.line_of(assignment.span.begin));
    // "export API_KEY=API_KEY"
    const bool is_its_name = setting.value == setting.name && setting.name.find('_') != std::string::npos;
    if (!found && is_its_name) found = setting.value;
    if (!found && is_instruction(setting.value) && bare.contains(setting.name)) found = setting.value;
    if (!found) continue;
    const bash::Span at = assignment.is_array ? assignment.span : assignment.value.span;
    report.add(at, message("'{}' is a placeholder", printable(*found)));
  }
}

void find_placeholder(const Script& script, FindingReport& report) {
  find_in_settings(script, report);
  find_angles(script.tree.list, script, report);
  find_in_directives(script, report);
  find_ellipsis(script, report);
  find_in_commands(script, report);
  find_unfilled(script, report);
}

constexpr Rule kPlaceholderRules[] = {
    {"placeholder", Level::job, "a placeholder from a guide is not an account, path or count",
     "#!/bin/bash\n#SBATCH --qos=<qos_name>\n", "#!/bin/bash\n#SBATCH --qos=long\n",
     "courses' and users' notes", find_placeholder},
};

}  // namespace

std::optional<std::string> placeholder_in(std::string_view value) {
  if (value == "...") return std::string(value);
  if (auto found = angle_placeholder(value)) return found;
  if (auto found = template_marker(value)) return found;
  if (auto found = todo_marker(value)) return found;
  return placeholder_part(value);
}

std::span<const Rule> placeholder_rules() { return kPlaceholderRules; }

}  // namespace stoker::script_lint
