#include "script_lint/rules/commands/near_names.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "script_lint/rules/commands/variable_uses.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// Normalizes "DATA_DIR" and "dataDir" to the same name: lower case without _.
std::string bare_name(std::string_view name) {
  std::string bare = to_lower(name);
  std::erase(bare, '_');
  return bare;
}

// Variables that the script sets, by names that may be confused with them.
struct VariableNames {
  std::unordered_map<std::string, std::string_view> by_bare;   // the first of each
  std::unordered_map<std::string, std::string_view> by_value;  // variables that are never read
  std::unordered_set<std::string_view> given;                  // set by commands; the index has settings
  std::unordered_set<std::string_view> asked;                  // "model=$MODEL": from the environment
};

void note_asked(const bash::Word& word, VariableNames& names) {
  for (const bash::WordPiece& piece : word.pieces) {
    if (piece.kind == bash::PieceKind::variable) names.asked.insert(piece.text);
  }
}

// Loop variables, and variables in [[ ]].
void note_tree(const bash::List& list, VariableNames& names) {
  for (const bash::Item& item : list.items) {
    for (const bash::ShellCommand& command : item.pipeline.commands) {
      if (command.kind == bash::CommandKind::test) {
        for (const bash::Word& word : command.words) note_asked(word, names);
      }
      if (command.kind == bash::CommandKind::for_) {
        names.by_bare.emplace(bare_name(command.name), command.name);
        names.given.insert(command.name);
      }
      for (const bash::List& part : command.parts) note_tree(part, names);
    }
  }
}

VariableNames names_of(const Script& script) {
  VariableNames names;
  for (const VariableSetting& setting : script.settings) {
    if (setting.is_command_scoped || setting.assignment->is_array || !setting.context.function.empty())
      continue;
    names.by_bare.emplace(bare_name(setting.name), setting.name);
    note_asked(setting.assignment->value, names);
    if (is_name(setting.value) && !script.names.is_read(setting.name))
      names.by_value.emplace(setting.value, setting.name);
  }
  note_tree(script.tree.list, names);
  for (const ProgramCall& call : script.calls) {
    if (is_one_of(call.program, {"read", "mapfile", "readarray", "getopts", "printf", "export", "declare",
                                 "local", "select", "set", "typeset", "readonly", "let"})) {
      for (const bash::Word* word : call.typed) {
        const std::string_view text = script.at(word->span);
        names.given.insert(text.substr(0, text.find('=')));
      }
    }
    // "[ -z "$MODEL" ]", ": ${MODEL:=a}": the script checks for an external value.
    for (const bash::Word* word : call.typed) {
      const bool is_test = is_one_of(call.program, {"[", "[[", "test", ":"});
      const bool has_default =
          std::any_of(word->pieces.begin(), word->pieces.end(),
                      [](const bash::WordPiece& piece) { return !piece.operation.empty(); });
      if (is_test || has_default) note_asked(*word, names);
    }
  }
  return names;
}

// Set by the system, Slurm, modules or sites without a line in the script.
bool is_of_environment(std::string_view name) {
  return name.size() < 2 || name.find_first_not_of("0123456789@*#?$!-_") == std::string_view::npos ||
         is_one_of(name,
                   {"PATH",       "HOME",    "USER",   "PWD",     "HOSTNAME", "TMPDIR", "SHELL",   "LANG",
                    "IFS",        "SECONDS", "RANDOM", "DISPLAY", "LOGNAME",  "OLDPWD", "UID",     "EUID",
                    "PPID",       "LINENO",  "HOST",   "SCRATCH", "WORK",     "DATA",   "PROJECT", "GROUP",
                    "TMP",        "TEMP",    "STORE",  "ARCHIVE", "OPTARG",   "OPTIND", "REPLY",   "FUNCNAME",
                    "PIPESTATUS", "TERM",    "MAIL",   "EDITOR"}) ||
         name.starts_with("SLURM") || name.starts_with("BASH") || name.starts_with("PBS") ||
         name.starts_with("SGE") || name.starts_with("LSB");
}

// The intended name; "" without a similar one.
std::string_view meant_for(const Script& script, const VariableNames& names, const std::string& name) {
  const auto value = names.by_value.find(name);
  // Similar to the name of the variable with this value: they share a word.
  if (value != names.by_value.end() && has_lower(name)) {
    for (std::string_view word : split(value->second, '_')) {
      if (word.size() > 3 && name.find(word) != std::string::npos) return value->second;
    }
  }
  const auto bare = names.by_bare.find(bare_name(name));
  if (bare == names.by_bare.end() || bare->second == name) return "";
  // A name in capitals may come from the environment if the similar one is in use.
  return has_lower(name) || !script.names.is_read(bare->second) ? bare->second : std::string_view();
}

}  // namespace

bool is_spelt_alike(std::string_view name, std::string_view other) {
  return bare_name(name) == bare_name(other);
}

void find_near_names(const Script& script, FindingReport& report) {
  if (has_external_settings(script) || !script.is_shell) return;
  const VariableNames names = names_of(script);
  std::set<std::string_view> reported;
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* launcher = script.launcher_of(call);
    if (only_prints(call) || call.context.is_remote || call.context.is_condition ||
        is_one_of(call.program, {"echo", "printf"}) ||
        (launcher != nullptr && launcher->command == call.command))
      continue;
    for_each_variable(call, [&](const bash::WordPiece& piece) {
      const std::string& name = piece.text;
      if (is_of_environment(name) || script.names.is_set(name) || names.given.contains(name) ||
          names.asked.contains(name) || script.names.is_arithmetic(name) || reported.contains(name))
        return;
      const std::string_view meant = meant_for(script, names, name);
      if (meant.empty()) return;
      reported.insert(name);
      report.replace(
          piece.span, message("${} is never set and is empty; did you mean ${}?", name, meant),
          script.at(piece.span).starts_with("${") ? format("${{{}}}", meant) : format("${}", meant));
    });
  }
}

}  // namespace stoker::script_lint
