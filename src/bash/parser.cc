#include "bash/parser.h"

#include <algorithm>
#include <array>

#include "bash/command_reader.h"

namespace stoker::bash {

SyntaxTree parse(std::string_view text, Span part) {
  SyntaxTree tree;
  CommandReader reader(text, {part.begin, std::min(part.end, text.size())}, tree);
  tree.list = reader.read_all();
  return tree;
}

SyntaxTree parse(std::string_view text) { return parse(text, {0, text.size()}); }

bool is_reserved(std::string_view word) {
  constexpr std::array<std::string_view, 21> kWords = {
      "if",     "then", "else",     "elif", "fi", "for", "while", "until", "do", "done", "case",
      "select", "esac", "function", "time", "{",  "}",   "!",     "[[",    "]]", "in"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

std::optional<std::string> literal(const Word& word) {
  std::string text;
  for (const WordPiece& piece : word.pieces) {
    if (piece.kind != PieceKind::literal) return std::nullopt;
    text += piece.text;
  }
  return text;
}

}  // namespace stoker::bash
