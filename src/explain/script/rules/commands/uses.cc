#include "explain/script/rules/commands/uses.h"

#include <algorithm>
#include <cctype>

namespace stoker::explain {
namespace {

bool is_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Where the name stands as a whole word at or behind `from`.
std::size_t find_name(std::string_view text, std::string_view name, std::size_t from) {
  for (std::size_t at = text.find(name, from); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !is_part(text[at - 1]);
    const bool ends = at + name.size() == text.size() || !is_part(text[at + name.size()]);
    if (begins && ends) return at;
  }
  return std::string_view::npos;
}

// "$NAME", "${NAME", "${#NAME", "${!NAME".
bool has_sign_before(std::string_view text, std::size_t at) {
  if (at == 0) return false;
  if (text[at - 1] == '$') return true;
  if (at >= 2 && (text[at - 1] == '#' || text[at - 1] == '!')) --at;
  return at >= 2 && text[at - 1] == '{' && text[at - 2] == '$';
}

bool is_in_comment(const Script& script, std::size_t at) {
  return std::any_of(
      script.tree.comments.begin(), script.tree.comments.end(),
      [&](const bash::Comment& comment) { return comment.span.begin <= at && at < comment.span.end; });
}

void visit_pieces(const std::vector<bash::Piece>& pieces,
                  const std::function<void(const bash::Piece& piece)>& visit) {
  for (const bash::Piece& piece : pieces) {
    if (piece.kind == bash::PieceKind::variable && piece.operation.empty()) visit(piece);
    if (piece.kind == bash::PieceKind::arithmetic) visit_pieces(piece.inner, visit);
  }
}

}  // namespace

bool is_read(const Script& script, std::string_view name) {
  for (std::size_t at = find_name(script.text, name, 0); at != std::string::npos;
       at = find_name(script.text, name, at + 1)) {
    if (has_sign_before(script.text, at) && !is_in_comment(script, at)) return true;
  }
  return false;
}

std::size_t first_given(const Script& script, std::string_view name) {
  for (std::size_t at = find_name(script.text, name, 0); at != std::string::npos;
       at = find_name(script.text, name, at + 1)) {
    if (!has_sign_before(script.text, at) && !is_in_comment(script, at)) return at;
  }
  return std::string::npos;
}

bool takes_settings(const Script& script) {
  return std::any_of(script.calls.begin(), script.calls.end(), [](const Call& call) {
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
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), is_part);
}

void for_variables(const Call& call, const std::function<void(const bash::Piece& piece)>& visit) {
  visit_pieces(call.program_word->pieces, visit);
  for (const bash::Word* word : call.typed) visit_pieces(word->pieces, visit);
  const bool is_first = !call.command->words.empty() && call.program_word == &call.command->words[0];
  if (!is_first) return;
  for (const bash::Redirection& redirection : call.command->redirections)
    visit_pieces(redirection.target.pieces, visit);
}

std::string resolved_text(const bash::Word& word, const Script& script) {
  std::string out;
  for (const bash::Piece& piece : word.pieces) {
    const auto known = script.variables.find(piece.text);
    const bool is_known =
        piece.kind == bash::PieceKind::variable && piece.operation.empty() && known != script.variables.end();
    out += piece.kind == bash::PieceKind::literal ? piece.text
           : is_known                             ? known->second
                                                  : std::string(script.at(piece.span));
  }
  return out;
}

bool only_speaks(const Call& call) {
  return is_one_of(call.program, {"echo", "printf", "[", "[[", "test", "export", "mail", "read", "unset"});
}

}  // namespace stoker::explain
