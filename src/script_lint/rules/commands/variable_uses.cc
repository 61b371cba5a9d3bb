#include "script_lint/rules/commands/variable_uses.h"

#include <algorithm>
#include <cctype>

#include "bash/characters.h"
#include "bash/parser.h"

namespace stoker::script_lint {
namespace {

void visit_pieces(const std::vector<bash::WordPiece>& pieces,
                  const std::function<void(const bash::WordPiece& piece)>& visit) {
  for (const bash::WordPiece& piece : pieces) {
    if (piece.kind == bash::PieceKind::variable && piece.operation.empty()) visit(piece);
    if (piece.kind == bash::PieceKind::arithmetic) visit_pieces(piece.inner, visit);
  }
}

bool has_exit(const bash::List& list) {
  return std::any_of(list.items.begin(), list.items.end(), [](const bash::Item& item) {
    const bash::ShellCommand& command = item.pipeline.commands.front();
    return item.pipeline.commands.size() == 1 && command.kind == bash::CommandKind::simple &&
           !command.words.empty() && bash::literal(command.words[0]) == "exit";
  });
}

// "[ -z "$NAME" ]", alone or followed by ||.
void visit_empty(const bash::Item& item, const std::function<void(const bash::WordPiece& piece)>& visit) {
  if (item.pipeline.is_negated || item.next == bash::Connector::and_) return;
  const std::vector<bash::Word>& words = item.pipeline.commands.front().words;
  if (words.size() < 3 || bash::literal(words[0]) != "[" || bash::literal(words[1]) != "-z") return;
  visit_pieces(words[2].pieces, visit);
}

}  // namespace

void for_each_exit_guard(const bash::List& list,
                         const std::function<void(const bash::WordPiece& piece)>& visit) {
  for (const bash::Item& item : list.items) {
    for (const bash::ShellCommand& command : item.pipeline.commands) {
      if (command.kind == bash::CommandKind::if_ && command.parts.size() > 1 && has_exit(command.parts[1])) {
        const std::vector<bash::Item>& tests = command.parts[0].items;
        if (tests.size() == 1 || tests.front().next == bash::Connector::or_)
          visit_empty(tests.front(), visit);
      }
      for (const bash::List& part : command.parts) for_each_exit_guard(part, visit);
    }
  }
}

bool has_external_settings(const Script& script) {
  return std::any_of(script.calls.begin(), script.calls.end(), [](const ProgramCall& call) {
    if (call.program == "eval") return true;
    if ((call.program != "source" && call.program != ".") || call.words.empty()) return false;
    const std::string& file = call.words[0];
    const bool is_known = file.ends_with("activate") || file.ends_with("bashrc") ||
                          file.ends_with("bash_profile") || file.ends_with(".profile") ||
                          file.ends_with("/profile") || file.ends_with("conda.sh") || file == "activate";
    return !is_known;
  });
}

bool is_name(std::string_view text) {
  return !text.empty() && bash::is_name_start(text[0]) &&
         std::all_of(text.begin(), text.end(), bash::is_name);
}

void for_each_variable(const ProgramCall& call,
                       const std::function<void(const bash::WordPiece& piece)>& visit) {
  visit_pieces(call.program_word->pieces, visit);
  for (const bash::Word* word : call.typed) visit_pieces(word->pieces, visit);
  const bool is_first = !call.command->words.empty() && call.program_word == &call.command->words[0];
  if (!is_first) return;
  for (const bash::Redirection& redirection : call.command->redirections)
    visit_pieces(redirection.target.pieces, visit);
}

std::string resolved_text(const bash::Word& word, const Script& script) {
  std::string out;
  for (const bash::WordPiece& piece : word.pieces) {
    const auto known = script.variables.find(piece.text);
    const bool is_known =
        piece.kind == bash::PieceKind::variable && piece.operation.empty() && known != script.variables.end();
    out += piece.kind == bash::PieceKind::literal ? piece.text
           : is_known                             ? known->second
                                                  : std::string(script.at(piece.span));
  }
  return out;
}

bool only_prints(const ProgramCall& call) {
  return is_one_of(call.program, {"echo", "printf", "[", "[[", "test", "export", "mail", "read", "unset"});
}

bool has_lower(std::string_view name) {
  return std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c) != 0; });
}

}  // namespace stoker::script_lint
