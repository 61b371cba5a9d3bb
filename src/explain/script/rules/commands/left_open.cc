#include "explain/script/rules/commands/left_open.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "explain/script/rules/blanks.h"
#include "explain/script/rules/commands/uses.h"

namespace stoker::explain {
namespace {

// "NAME" of "$NAME.input" as a whole word: without a value it is the name of a hidden file.
std::string_view begin_of_file(const bash::Word& word) {
  const std::vector<bash::Piece>& pieces = word.pieces;
  if (pieces.size() < 2 || pieces[0].kind != bash::PieceKind::variable || !pieces[0].operation.empty() ||
      pieces[1].kind != bash::PieceKind::literal)
    return "";
  const std::string& rest = pieces[1].text;
  return rest.size() > 2 && rest[0] == '.' && is_letter(rest[1]) ? pieces[0].text : std::string_view();
}

// The names that files' names begin with, and where the last of them stands.
std::map<std::string_view, std::size_t> begins_of_files(const Script& script) {
  std::map<std::string_view, std::size_t> begins;
  for (const Call& call : script.calls) {
    if (only_speaks(call) || call.context.is_condition) continue;
    for (const bash::Word* word : call.typed) {
      const std::string_view name = begin_of_file(*word);
      if (!name.empty()) begins[name] = word->span.begin;
    }
  }
  return begins;
}

// Words of what gives values to variables that it names.
std::set<std::string_view> given_by_commands(const Script& script) {
  std::set<std::string_view> words;
  for (const Call& call : script.calls) {
    if (is_one_of(call.program, {"read", "mapfile", "readarray", "getopts", "printf", "export", "declare"}))
      words.insert(call.words.begin(), call.words.end());
  }
  return words;
}

// "NAME=", and nothing else gives it a value.
void find_empty_name(const Script& script, Report& report) {
  if (takes_settings(script)) return;
  const std::map<std::string_view, std::size_t> begins = begins_of_files(script);
  const std::set<std::string_view> given = given_by_commands(script);
  for (const Setting& setting : script.settings) {
    const bash::Assignment& assignment = *setting.assignment;
    const bool is_empty = assignment.value.pieces.empty() && !assignment.is_array && !assignment.appends &&
                          !setting.is_of_command && !setting.context.is_condition &&
                          setting.context.function.empty() && setting.context.loops == 0;
    if (!is_empty || script.names.settings_of(setting.name).size() > 1 ||
        script.names.is_loop_variable(setting.name) || given.contains(setting.name))
      continue;
    const auto needed = begins.find(setting.name);
    if (needed != begins.end() && needed->second > assignment.span.end)
      report.add(assignment.span, report.say("'{}' is left to be filled in", script.at(assignment.span)));
  }
}

// "--output #path to results": what is behind # is a comment.
void find_said_value(const Script& script, Report& report) {
  auto comment = script.tree.comments.begin();
  for (const Call& call : script.calls) {
    if (call.typed.empty() || call.program_word != &call.command->words[0]) continue;
    while (comment != script.tree.comments.end() && comment->span.begin < call.span.end) ++comment;
    if (comment == script.tree.comments.end()) return;
    const std::string_view last = script.at(call.typed.back()->span);
    const std::string_view between = script.at({call.span.end, comment->span.begin});
    const std::string_view says = script.at(comment->span);
    if (!last.starts_with("-") || last.find('=') != std::string_view::npos ||
        between.find_first_not_of(" \t") != std::string_view::npos)
      continue;
    if (blank_phrase(trim(says.substr(1))))
      report.add(comment->span,
                 report.say("'{}' is left to be filled in: it is a comment, and {} has no value",
                            printable(says), printable(last)));
  }
}

// "<YOUR_NAME>" in lines that the shell does not come to, since it stops at another such line before.
void find_behind_error(const Script& script, Report& report) {
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
      if (whole_name(mark) && mark.find('_') != std::string_view::npos)
        report.add({at + open, at + close + 1}, report.say("'{}' is left to be filled in", mark));
    }
    at = end + 1;
  }
}

}  // namespace

void find_left_open(const Script& script, Report& report) {
  find_empty_name(script, report);
  find_said_value(script, report);
  find_behind_error(script, report);
}

}  // namespace stoker::explain
