#include "script_lint/rules/commands/unfilled.h"

#include <algorithm>
#include <map>
#include <set>

#include "script_lint/rules/commands/variable_uses.h"
#include "script_lint/rules/placeholder_text.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "NAME" of "$NAME.input" as a whole word: without a value it names a hidden file.
std::string_view begin_of_file(const bash::Word& word) {
  const std::vector<bash::WordPiece>& pieces = word.pieces;
  if (pieces.size() < 2 || pieces[0].kind != bash::PieceKind::variable || !pieces[0].operation.empty() ||
      pieces[1].kind != bash::PieceKind::literal)
    return "";
  const std::string& rest = pieces[1].text;
  return rest.size() > 2 && rest[0] == '.' && is_letter(rest[1]) ? pieces[0].text : std::string_view();
}

// Variables at the beginning of file names, and their last position.
std::map<std::string_view, std::size_t> begins_of_files(const Script& script) {
  std::map<std::string_view, std::size_t> begins;
  for (const ProgramCall& call : script.calls) {
    if (only_prints(call) || call.context.is_condition) continue;
    for (const bash::Word* word : call.typed) {
      const std::string_view name = begin_of_file(*word);
      if (!name.empty()) begins[name] = word->span.begin;
    }
  }
  return begins;
}

// Arguments of commands that assign variables.
std::set<std::string_view> assigned_by_commands(const Script& script) {
  std::set<std::string_view> words;
  for (const ProgramCall& call : script.calls) {
    if (is_one_of(call.program, {"read", "mapfile", "readarray", "getopts", "printf", "export", "declare"}))
      words.insert(call.words.begin(), call.words.end());
  }
  return words;
}

// "NAME=" without any other assignment.
void find_empty_name(const Script& script, FindingReport& report) {
  if (has_external_settings(script)) return;
  const std::map<std::string_view, std::size_t> begins = begins_of_files(script);
  const std::set<std::string_view> given = assigned_by_commands(script);
  for (const VariableSetting& setting : script.settings) {
    const bash::Assignment& assignment = *setting.assignment;
    const bool is_empty = assignment.value.pieces.empty() && !assignment.is_array && !assignment.appends &&
                          !setting.is_command_scoped && !setting.context.is_condition &&
                          setting.context.function.empty() && setting.context.loops == 0;
    if (!is_empty || script.names.settings_of(setting.name).size() > 1 ||
        script.names.is_loop_variable(setting.name) || given.contains(setting.name))
      continue;
    const auto needed = begins.find(setting.name);
    if (needed != begins.end() && needed->second > assignment.span.end)
      report.add(assignment.span, message("'{}' is a placeholder", script.at(assignment.span)));
  }
}

// "--output #path to results": the text after # is a comment.
void find_commented_value(const Script& script, FindingReport& report) {
  auto comment = script.tree.comments.begin();
  for (const ProgramCall& call : script.calls) {
    if (call.typed.empty() || call.program_word != &call.command->words[0]) continue;
    while (comment != script.tree.comments.end() && comment->span.begin < call.span.end) ++comment;
    if (comment == script.tree.comments.end()) return;
    const std::string_view last = script.at(call.typed.back()->span);
    const std::string_view between = script.at({call.span.end, comment->span.begin});
    const std::string_view remark = script.at(comment->span);
    if (!last.starts_with("-") || last.find('=') != std::string_view::npos ||
        between.find_first_not_of(" \t") != std::string_view::npos)
      continue;
    if (placeholder_phrase(trim(remark.substr(1))))
      report.add(comment->span, message("'{}' is a placeholder: it is a comment, and {} has no value",
                                        printable(remark), printable(last)));
  }
}

// "<YOUR_NAME>" in lines after a syntax error, which the parser does not reach.
void find_behind_error(const Script& script, FindingReport& report) {
  if (!script.tree.error) return;
  const std::string_view text = script.text;
  std::size_t at = script.line_of(script.tree.error->at).end + 1;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.find("<<") != std::string_view::npos) return;
    const std::size_t open = line.find('<');
    const std::size_t close = line.find('>', open == std::string_view::npos ? line.size() : open);
    if (!trim(line).starts_with('#') && close != std::string_view::npos) {
      const std::string_view mark = line.substr(open, close - open + 1);
      if (whole_word_placeholder(mark) && mark.find('_') != std::string_view::npos)
        report.add({at + open, at + close + 1}, message("'{}' is a placeholder", mark));
    }
    at = end + 1;
  }
}

// Credentials.
bool is_credential(std::string_view option) {
  return is_one_of(option, {"username", "user_name", "password", "passwd", "apikey", "api_key", "api_token",
                            "access_token", "auth_token", "token", "email", "secret", "wandb_key",
                            "wandb_api_key", "hf_token", "account"});
}

std::string as_name(std::string_view option) {
  std::string name = to_lower(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// "DATA_PATH", "OUTPUT_DIR".
bool is_place_in_capitals(std::string_view word) {
  const bool is_place = word.ends_with("_PATH") || word.ends_with("_DIR") || word.ends_with("_FOLDER") ||
                        word.ends_with("_FILE") || word.ends_with("_ROOT") || word.ends_with("_DIRECTORY");
  return is_place &&
         std::all_of(word.begin(), word.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

// "cd PROJECT_DIR", "source VENV_PATH/bin/activate": no folder name, and the $ is missing.
void find_place_without_sign(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const bool goes = call.program == "cd" || call.program == "source" || call.program == ".";
    if (!goes || call.typed.empty() || call.context.is_remote) continue;
    const std::string_view typed = script.at(call.typed[0]->span);
    const std::string_view name = typed.substr(0, typed.find('/'));
    if (!is_place_in_capitals(name)) continue;
    if (script.names.is_set(name)) {
      report.replace({call.typed[0]->span.begin, call.typed[0]->span.begin},
                     message("{} without $ is literal, and no such path exists", name), "$");
    } else {
      report.add(call.typed[0]->span, message("'{}' is a placeholder", typed));
    }
  }
}

// "--username "username"": the kind of value instead of a value.
void find_own_name(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (only_prints(call) || call.context.launcher) continue;
    for (std::size_t i = 0; i + 1 < call.typed.size(); ++i) {
      const std::string_view option = script.at(call.typed[i]->span);
      if (!option.starts_with("--") || call.words[i + 1].find('$') != std::string::npos) continue;
      const std::string name = as_name(option);
      const bool is_asked = is_credential(name) || is_place_in_capitals(call.words[i + 1]);
      if (is_asked && as_name(call.words[i + 1]) == name && !call.words[i + 1].starts_with('-'))
        report.add(call.typed[i + 1]->span, message("'{}' is a placeholder", printable(call.words[i + 1])));
    }
  }
}

// Generic nouns for paths and credentials.
bool is_generic_noun(std::string_view word) {
  return is_one_of(to_lower(word), {"path", "folder", "file", "directory", "dir", "filename", "account",
                                    "token", "key", "username"});
}

// "--volin=Your Path", "--out=Target Path": a placeholder of two words.
void find_two_words(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (only_prints(call) || call.context.launcher) continue;
    for (std::size_t i = 0; i + 1 < call.typed.size(); ++i) {
      const std::string_view word = script.at(call.typed[i]->span);
      const std::string_view next = script.at(call.typed[i + 1]->span);
      if (!word.starts_with('-') || next.starts_with('-')) continue;
      const std::string_view value = word.substr(std::min(word.find('='), word.size() - 1) + 1);
      const bool is_yours = is_one_of(to_lower(value), {"your", "the", "my"}) && !value.empty();
      const bool is_capital = !value.empty() && value[0] >= 'A' && value[0] <= 'Z' && next[0] >= 'A' &&
                              next[0] <= 'Z' && std::all_of(value.begin(), value.end(), is_letter);
      if ((!is_yours && !is_capital) || !is_generic_noun(next)) continue;
      report.add({call.typed[i]->span.begin, call.typed[i + 1]->span.end},
                 message("'{}' is a placeholder", format("{} {}", value, next)));
      break;
    }
  }
}

// API keys that programs read from the environment.
bool is_key(std::string_view name) {
  return name.ends_with("_API_KEY") || name.ends_with("_API_TOKEN") || name.ends_with("_TOKEN") ||
         name.ends_with("_PASSWORD") || name.ends_with("_SECRET") || name.ends_with("_ACCESS_KEY");
}

// "API_KEY", "key", "insert key here", "hf_...", "".
bool is_no_key(std::string_view value) {
  const std::string lower = to_lower(value);
  return value.empty() || (value.size() < 12 && value.ends_with("...")) ||
         is_one_of(lower, {"key", "api_key", "apikey", "api key", "token", "password", "secret", "api-key",
                           "my_key", "mykey", "<key>", "<token>", "my_token", "xxx"}) ||
         lower.ends_with(" here") || lower.ends_with("_here");
}

// "export NEPTUNE_API_TOKEN="" without any other assignment.
void find_no_key(const Script& script, FindingReport& report) {
  for (const char* word : {"offline", "WANDB_MODE", "WANDB_DISABLED"}) {
    if (script.mentions(word)) return;
  }
  for (const VariableSetting& setting : script.settings) {
    const bash::Assignment& assignment = *setting.assignment;
    const bool is_plain =
        std::all_of(assignment.value.pieces.begin(), assignment.value.pieces.end(),
                    [](const bash::WordPiece& each) { return each.kind == bash::PieceKind::literal; });
    const bool is_global = setting.is_exported && !setting.is_command_scoped &&
                           !setting.context.is_condition && setting.context.function.empty() &&
                           setting.context.loops == 0;
    if (!is_key(setting.name) || !is_plain || !is_global || assignment.is_array ||
        !is_no_key(setting.value) || script.names.settings_of(setting.name).size() > 1)
      continue;
    if (placeholder_part(setting.value)) continue;  // reported for all variables
    report.add(assignment.span, message("'{}' is a placeholder", script.at(assignment.span)));
  }
}

}  // namespace

std::optional<std::string> generic_name(const ProgramCall& call, std::string_view text) {
  std::string lower =
      to_lower(text.substr(text.rfind('/') == std::string_view::npos ? 0 : text.rfind('/') + 1));
  std::replace(lower.begin(), lower.end(), '-', '_');
  const bool is_first = !call.words.empty() && call.words[0] == text;
  const bool enters = call.program == "source" || is_one_of(call.program, {"conda", "mamba", "micromamba"});
  const bool is_environment =
      is_one_of(lower, {"env_name", "environment_name", "envname", "conda_env_name", "name_of_env",
                        "name_of_environment", "venv_name", "virtual_env_name", "name_of_your_env"});
  if (is_environment && enters) return std::string(text);
  const bool is_program = is_one_of(
      lower, {"program_name", "script_name.py", "script_name.sh", "name_of_script.py", "executable_name",
              "name_of_executable", "name_of_program", "script_name", "python_script_name.py",
              "name_of_your_script.py", "filename.py", "file_name.py", "script_name.r"});
  return is_program && (is_first || call.program == text || text.starts_with("./"))
             ? std::optional(std::string(text))
             : std::nullopt;
}

void find_unfilled(const Script& script, FindingReport& report) {
  find_empty_name(script, report);
  find_own_name(script, report);
  find_two_words(script, report);
  find_place_without_sign(script, report);
  find_no_key(script, report);
  find_commented_value(script, report);
  find_behind_error(script, report);
}

}  // namespace stoker::script_lint
