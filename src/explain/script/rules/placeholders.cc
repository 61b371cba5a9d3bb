// What a guide's author left for the reader to fill in, and the reader did not.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/text.h"
#include "explain/bash/parser.h"
#include "explain/script/rule.h"
#include "explain/script/rules/blanks.h"
#include "explain/script/rules/commands/left_open.h"
#include "explain/script/rules/marks.h"

namespace stoker::explain {
namespace {

// "gpu:kepler:N": a letter where a count should be.
bool has_letter_count(const Script& script, const Directive& directive) {
  const auto gpus = script.request.gpus();
  return std::any_of(gpus.begin(), gpus.end(), [&](const GpuRequest& request) {
    const std::string& count =
        request.count == "1" && directive.option.name == "--gres" ? request.type : request.count;
    return request.directive == &directive && (count == "N" || count == "n" || count == "X" || count == "x");
  });
}

// "--account=##ACCOUNT##": for sbatch a comment begins behind the =.
std::optional<std::string> hashed_away(const Script& script, const Directive& directive) {
  const slurm::OwnOption& option = directive.option;
  const bool is_name = is_one_of(option.name, {"--account", "--partition", "--qos", "--output", "--error"});
  if (!is_name || !option.has_equals || !option.value.empty()) return std::nullopt;
  const std::string_view line = script.at(script.line_of(directive.span.begin));
  const std::size_t equals = line.find(option.typed + "=") + option.typed.size() + 1;
  if (equals + 1 >= line.size() || line[equals] != '#' || line[equals + 1] == ' ') return std::nullopt;
  return std::string(line.substr(equals, line.find(' ', equals) - equals));
}

void find_in_directives(const Script& script, Report& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& value = directive.option.value;
    std::optional<std::string> found = placeholder_in(value);
    if (!found) found = in_braces(value);
    if (!found) found = left_in_directive(directive);
    if (!found && has_letter_count(script, directive)) found = value;
    if (!found) found = hashed_away(script, directive);
    if (!found) continue;
    ScriptFinding& finding =
        report.add(directive.value,
                   report.say("{}: '{}' is left to be filled in", directive.option.typed, printable(*found)));
    if (is_for_people(directive.option.name)) finding.level = Level::advice;
  }
}

// "#SBATCH ...", which sbatch refuses.
void find_dots(const Script& script, Report& report) {
  for (const bash::Comment& comment : script.tree.comments) {
    const std::string_view text = script.at(comment.span);
    if (comment.span.begin >= script.first_command || !text.starts_with("#SBATCH") ||
        trim(text.substr(7)) != "...")
      continue;
    report.add(comment.span,
               report.say("'...' is left to be filled in, and sbatch of 19.05 and later refuses it"));
  }
}

// Singularity and the like, which bring their own Python.
bool is_container(std::string_view program) {
  return is_one_of(program, {"singularity", "apptainer", "docker", "podman", "shifter", "enroot", "sarus"});
}

// All of the script's work runs in containers, so that an environment that is not there loses nothing.
bool works_in_containers(const Script& script) {
  bool has_work = false;
  for (const Call& call : script.calls) {
    if (!is_work(call) || is_launcher(call.program)) continue;
    const bool is_inside = std::any_of(script.calls.begin(), script.calls.end(), [&](const Call& other) {
      return is_container(other.program) && other.span.begin <= call.span.begin &&
             call.span.end <= other.span.end;
    });
    if (!is_inside) return false;
    has_work = true;
  }
  return has_work;
}

bool activates_environment(const Call& call) {
  return is_one_of(call.program, {"conda", "mamba", "micromamba"}) && !call.words.empty() &&
         call.words[0] == "activate";
}

// "{ROOT}", "{YOUR FOLDER}": not the braces of JSON, awk and Python, which stand in quotes.
bool is_in_capitals(std::string_view brace) {
  const std::size_t end = brace.find('}');
  return end != std::string_view::npos && end > 2 && brace[1] >= 'A' && brace[1] <= 'Z' &&
         std::all_of(brace.begin() + 1, brace.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ' ';
         });
}

// What stands in a word itself; '$' for each variable and command, '(' for braces of other languages.
std::string own_text(const bash::Word& word) {
  std::string text;
  for (const bash::Piece& piece : word.pieces) {
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

// Programs whose words are in a language of their own, and what only speaks.
bool has_own_language(const Call& call) {
  return is_one_of(call.program, {"echo", "printf", "mktemp", "sed",  "awk",   "gawk", "perl",
                                  "jq",   "grep",   "egrep",  "mail", "mailx", "curl", "git",
                                  "expr", "read",   "alias",  "[",    "[[",    "test", "date"});
}

// Programs that put something in for {name} themselves.
bool knows_braces(const Call& call) {
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

// "{name}" as all of a word, which no shell fills in.
std::optional<std::string> all_in_braces(std::string_view text) {
  const auto found = in_braces(text);
  return found && found->size() == text.size() && text.size() > 4 ? found : std::nullopt;
}

// A folder that is nowhere, whatever stands around it.
std::optional<std::string> no_root(std::string_view text) {
  for (std::string_view root : {"/path/to/", "/your_", "/PATH/TO/"}) {
    if (text.find(root) != std::string_view::npos) return std::string(root);
  }
  return std::nullopt;
}

// Texts to people and code of other languages: in them a path alone says more.
bool is_code(std::string_view text) {
  return text.find_first_of("\n;()") != std::string_view::npos ||
         text.find("mktemp") != std::string_view::npos;
}

std::optional<std::string> blank_in_sentence(std::string_view text) {
  if (auto found = no_root(text)) return found;
  // "[training-dir]/{000..159}.tar"
  const std::size_t bracket = text.starts_with('[') ? text.find("]/") : std::string_view::npos;
  if (bracket != std::string_view::npos) {
    if (auto found = blank_part(text.substr(0, bracket + 1))) return found;
  }
  return is_code(text) ? std::nullopt : blank_phrase(text);
}

std::optional<std::string> blank_in_word(const Call& call, const bash::Word& word) {
  const std::string whole = own_text(word);
  const std::string_view text = behind_name(whole);
  if (is_code(whole) || text.find(' ') != std::string_view::npos) return blank_in_sentence(text);
  if (text == "XX") return std::string(text);
  if (auto found = name_of_kind(call, text)) return found;
  // Docker's own.
  const bool is_go =
      text.find("{{.") != std::string_view::npos || text.find("{{range") != std::string_view::npos;
  if (auto found = form_mark(text); found && !knows_braces(call) && !is_go) return found;
  if (auto found = blank_part(text)) return found;
  if (auto found = whole_name(text)) return found;
  return knows_braces(call) ? std::nullopt : all_in_braces(text);
}

// "$YOUR_IMAGE", where nothing gives it a value.
std::optional<std::string> your_variable(const bash::Word& word, const Script& script) {
  for (const bash::Piece& piece : word.pieces) {
    const bool is_yours = piece.kind == bash::PieceKind::variable && piece.operation.empty() &&
                          to_lower(piece.text).starts_with("your_");
    if (is_yours && !script.variables.contains(piece.text)) return "$" + piece.text;
  }
  return std::nullopt;
}

// "cd [the folder with data]", "source {ENVIRONMENT SCRIPT HERE}": several words between one pair of marks.
const bash::Word* wide_marks(const Call& call, const Script& script) {
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

// The words of a call and what its output is sent to.
std::vector<const bash::Word*> words_of(const Call& call) {
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

void find_in_commands(const Script& script, Report& report) {
  std::set<std::size_t> lines;  // one finding for each
  for (const Call& call : script.calls) {
    // Words behind srun are those of srun, unless another shell reads them.
    const Call* launcher = script.launcher_of(call);
    if (has_own_language(call) || (launcher != nullptr && launcher->command == call.command)) continue;
    const bash::Word* wide = wide_marks(call, script);
    for (const bash::Word* word : words_of(call)) {
      std::optional<std::string> found = blank_in_word(call, *word);
      if (!found) found = your_variable(*word, script);
      if (!found && word == wide) found = script.at(word->span);
      if (!found || !lines.insert(script.line_of(word->span.begin).begin).second) continue;
      ScriptFinding& finding =
          report.add(word->span, report.say("'{}' is left to be filled in", printable(*found)));
      if (activates_environment(call) && works_in_containers(script)) finding.level = Level::advice;
    }
  }
}

// "/proj/<mydir>/data" without quotes: for the shell a file to read from and one to write to.
void find_angles_of(const bash::Command& command, const Script& script, Report& report) {
  for (std::size_t i = 1; i < command.redirections.size(); ++i) {
    const bash::Redirection& open = command.redirections[i - 1];
    const bash::Redirection& close = command.redirections[i];
    const bool is_name = open.operation == "<" && close.operation == ">" &&
                         open.span.end == close.span.begin && open.target.span.begin == open.span.begin + 1 &&
                         open.descriptor.empty() && close.descriptor.empty() && bash::literal(open.target);
    if (!is_name) continue;
    report.add(open.span, report.say("'{}>' is left to be filled in: the shell looks for a file of that name",
                                     printable(script.at(open.span))));
    return;
  }
}

// "cd <path to the data>/": a file to read from, words, and one to write to at the end of the last of them.
void find_wide_angles(const bash::Command& command, const Script& script, Report& report) {
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
  report.add(open.span, report.say("'{}>' is left to be filled in: the shell looks for a file of that name",
                                   printable(script.at({open.span.begin, close.span.begin}))));
}

void find_angles(const bash::List& list, const Script& script, Report& report) {
  for (const bash::Item& item : list.items) {
    for (const bash::Command& command : item.pipeline.commands) {
      find_angles_of(command, script, report);
      find_wide_angles(command, script, report);
      for (const bash::List& part : command.parts) find_angles(part, script, report);
    }
  }
}

// "#", "#.txt", "#/set" where a name was taken out; a colour is one.
bool is_hash(std::string_view value) {
  return value == "#" || value.starts_with("#.") || value.starts_with("#/");
}

std::optional<std::string> blank_in_value(const std::string& value) {
  if (is_code(value) || value.find(' ') != std::string::npos) return blank_in_sentence(value);
  if (is_hash(value) || (value.size() > 2 && value.find_first_not_of('?') == std::string::npos)) return value;
  if (auto found = to_do(value)) return found;
  if (auto found = form_mark(value)) return found;
  if (auto found = blank_part(value)) return found;
  if (auto found = blank_phrase(value)) return found;
  return all_in_braces(value);
}

// "DATA=[path to the data]": for the shell a program "to".
bool is_wide_value(const Setting& setting, const Script& script) {
  const std::string_view value = script.at(setting.assignment->value.span);
  if (value.size() < 2 || value[0] != '[' || !is_letter(value[1]) ||
      value.find(']') != std::string_view::npos)
    return false;
  const bash::Span line = script.line_of(setting.assignment->span.begin);
  return std::any_of(script.calls.begin(), script.calls.end(), [&](const Call& call) {
    return call.span.begin > setting.assignment->span.end && call.span.begin <= line.end &&
           !call.typed.empty() && script.at(call.typed.back()->span).ends_with(']');
  });
}

// Of all variables that stand as in "--data $NAME", without quotes: a sentence there becomes many words.
std::set<std::string_view> used_bare(const Script& script) {
  std::set<std::string_view> names;
  for (const Call& call : script.calls) {
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
void find_in_settings(const Script& script, Report& report) {
  const std::set<std::string_view> bare = used_bare(script);
  for (const Setting& setting : script.settings) {
    const bash::Assignment& assignment = *setting.assignment;
    if (setting.context.is_condition || !setting.context.function.empty() ||
        (!setting.is_exported && !setting.is_of_command && !script.names.is_mentioned(setting.name)))
      continue;
    std::optional<std::string> found = blank_in_value(own_text(assignment.value));
    for (const bash::Word& element : assignment.elements) {
      if (!found) found = blank_in_value(own_text(element));
    }
    if (is_wide_value(setting, script)) found = script.at(script.line_of(assignment.span.begin));
    // "export API_KEY=API_KEY"
    const bool is_its_name = setting.value == setting.name && setting.name.find('_') != std::string::npos;
    if (!found && is_its_name) found = setting.value;
    if (!found && is_instruction(setting.value) && bare.contains(setting.name)) found = setting.value;
    if (!found) continue;
    const bash::Span at = assignment.is_array ? assignment.span : assignment.value.span;
    report.add(at, report.say("'{}' is left to be filled in", printable(*found)));
  }
}

void find_placeholder(const Script& script, Report& report) {
  find_in_settings(script, report);
  find_angles(script.tree.list, script, report);
  find_in_directives(script, report);
  find_dots(script, report);
  find_in_commands(script, report);
  find_left_open(script, report);
}

constexpr Rule kPlaceholderRules[] = {
    {"placeholder", Level::job, "what a guide leaves to be filled in is no account, path or count",
     "#!/bin/bash\n#SBATCH --qos=<qos_name>\n", "#!/bin/bash\n#SBATCH --qos=long\n",
     "courses' and users' notes", find_placeholder},
};

}  // namespace

std::optional<std::string> placeholder_in(std::string_view value) {
  if (value == "...") return std::string(value);
  if (auto found = angle_name(value)) return found;
  if (auto found = form_mark(value)) return found;
  if (auto found = to_do(value)) return found;
  return blank_part(value);
}

std::span<const Rule> placeholder_rules() { return kPlaceholderRules; }

}  // namespace stoker::explain
