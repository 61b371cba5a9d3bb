#include "explain/script/rules/commands/near_names.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "explain/script/rules/commands/uses.h"

namespace stoker::explain {
namespace {

// Of "DATA_DIR" and "dataDir" the same: small letters without _.
std::string bare_name(std::string_view name) {
  std::string bare = to_lower(name);
  std::erase(bare, '_');
  return bare;
}

// Variables that the script sets, for all that follows, by what they may be mistaken for.
struct Names {
  std::unordered_map<std::string, std::string_view> by_bare;   // the first of each
  std::unordered_map<std::string, std::string_view> by_value;  // of those that nothing reads
  std::unordered_set<std::string_view> given;                  // by commands; settings are in the index
  std::unordered_set<std::string_view> asked;                  // "model=$MODEL": of the environment
};

void note_asked(const bash::Word& word, Names& names) {
  for (const bash::Piece& piece : word.pieces) {
    if (piece.kind == bash::PieceKind::variable) names.asked.insert(piece.text);
  }
}

// Variables of loops, and those that [[ ]] looks at.
void note_tree(const bash::List& list, Names& names) {
  for (const bash::Item& item : list.items) {
    for (const bash::Command& command : item.pipeline.commands) {
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

Names names_of(const Script& script) {
  Names names;
  for (const Setting& setting : script.settings) {
    if (setting.is_of_command || setting.assignment->is_array || !setting.context.function.empty()) continue;
    names.by_bare.emplace(bare_name(setting.name), setting.name);
    note_asked(setting.assignment->value, names);
    if (is_name(setting.value) && !script.names.is_read(setting.name))
      names.by_value.emplace(setting.value, setting.name);
  }
  note_tree(script.tree.list, names);
  for (const Call& call : script.calls) {
    if (is_one_of(call.program, {"read", "mapfile", "readarray", "getopts", "printf", "export", "declare",
                                 "local", "select", "set", "typeset", "readonly", "let"})) {
      for (const bash::Word* word : call.typed) {
        const std::string_view text = script.at(word->span);
        names.given.insert(text.substr(0, text.find('=')));
      }
    }
    // "[ -z "$MODEL" ]", ": ${MODEL:=a}": of somebody who looks at what was given.
    for (const bash::Word* word : call.typed) {
      const bool is_test = is_one_of(call.program, {"[", "[[", "test", ":"});
      const bool has_default = std::any_of(word->pieces.begin(), word->pieces.end(),
                                           [](const bash::Piece& piece) { return !piece.operation.empty(); });
      if (is_test || has_default) note_asked(*word, names);
    }
  }
  return names;
}

// Of the system, of Slurm, of what modules and sites set: there without a line of the script.
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

// The name that was meant; "" where nothing is near.
std::string_view meant_for(const Script& script, const Names& names, const std::string& name) {
  const auto value = names.by_value.find(name);
  // Like enough to the name that it is the value of: a word of both.
  if (value != names.by_value.end() && has_lower(name)) {
    for (std::string_view word : split(value->second, '_')) {
      if (word.size() > 3 && name.find(word) != std::string::npos) return value->second;
    }
  }
  const auto bare = names.by_bare.find(bare_name(name));
  if (bare == names.by_bare.end() || bare->second == name) return "";
  // In capitals it may be of the environment, where the other one is in use, too.
  return has_lower(name) || !script.names.is_read(bare->second) ? bare->second : std::string_view();
}

}  // namespace

bool is_spelt_alike(std::string_view name, std::string_view other) {
  return bare_name(name) == bare_name(other);
}

void find_near_names(const Script& script, Report& report) {
  if (takes_settings(script) || !script.is_shell) return;
  const Names names = names_of(script);
  std::set<std::string_view> told;
  for (const Call& call : script.calls) {
    const Call* launcher = script.launcher_of(call);
    if (only_speaks(call) || call.context.is_remote || call.context.is_condition ||
        is_one_of(call.program, {"echo", "printf"}) ||
        (launcher != nullptr && launcher->command == call.command))
      continue;
    for_variables(call, [&](const bash::Piece& piece) {
      const std::string& name = piece.text;
      if (is_of_environment(name) || script.names.is_set(name) || names.given.contains(name) ||
          names.asked.contains(name) || script.names.is_counted(name) || told.contains(name))
        return;
      const std::string_view meant = meant_for(script, names, name);
      if (meant.empty()) return;
      told.insert(name);
      report.replace(
          piece.span, report.say("${} is set nowhere, and it is empty; did you mean ${}?", name, meant),
          script.at(piece.span).starts_with("${") ? format("${{{}}}", meant) : format("${}", meant));
    });
  }
}

}  // namespace stoker::explain
