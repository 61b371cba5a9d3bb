// What lies inside words: quotes, expansions, substitutions.
#include <algorithm>

#include "base/text.h"
#include "explain/bash/reader.h"

namespace stoker::explain::bash {

void Reader::add_literal(std::vector<Piece>& pieces, Span span, std::string_view text, bool is_quoted) {
  if (!pieces.empty()) {
    Piece& last = pieces.back();
    if (last.kind == PieceKind::literal && last.is_quoted == is_quoted) {
      last.text += text;
      last.span.end = span.end;
      return;
    }
  }
  Piece piece;
  piece.span = span;
  piece.is_quoted = is_quoted;
  piece.text = text;
  pieces.push_back(std::move(piece));
}

Word Reader::read_word(WordKind kind) {
  Word word;
  word.span.begin = at_;
  int open = 0;  // parentheses of a regular expression, in which blanks end nothing
  while (!at_end() && read_word_piece(word, kind, open)) {
  }
  word.span.end = at_;
  return word;
}

// One more character or expansion; false where the word ends.
bool Reader::read_word_piece(Word& word, WordKind kind, int& open) {
  const char c = peek();
  const std::size_t at = at_;
  if (c == '\'') {
    read_single_quoted(word.pieces);
  } else if (c == '"') {
    read_double_quoted(word.pieces);
  } else if (c == '$') {
    read_dollar(word.pieces, false);
  } else if (c == '`') {
    read_backticks(word.pieces, false);
  } else if (c == '\\') {
    at_ = std::min(at_ + 2, end_);
    if (at_ - at == 2 && text_[at + 1] != '\n')
      add_literal(word.pieces, {at, at_}, text_.substr(at + 1, 1), true);
  } else if (kind == WordKind::regex && (c == '(' || c == '|' || (c == ')' && open > 0) || open > 0)) {
    open += c == '(' ? 1 : c == ')' ? -1 : 0;
    ++at_;
    add_literal(word.pieces, {at, at_}, text_.substr(at, 1), false);
  } else if ((c == '<' || c == '>') && peek(1) == '(') {
    read_substitution(word.pieces, PieceKind::process, false);
  } else if (peek(1) == '(' && std::string_view("?*+@!").find(c) != std::string_view::npos) {
    read_extended_pattern(word);
  } else if (is_blank(c) || c == '\n' || is_meta(c)) {
    return false;
  } else {
    ++at_;
    add_literal(word.pieces, {at, at_}, text_.substr(at, 1), false);
  }
  return true;
}

// @(a|b) and the like, as text.
void Reader::read_extended_pattern(Word& word) {
  const std::size_t begin = at_;
  int open = 0;
  do {
    const char c = peek();
    open += c == '(' ? 1 : c == ')' ? -1 : 0;
    at_ += c == '\\' ? 2 : 1;
  } while (at_ < end_ && (open > 0 || at_ == begin + 1) && peek() != '\n');
  at_ = std::min(at_, end_);
  if (open > 0) return fail_at(begin, "a pattern's '(' is not closed");
  add_literal(word.pieces, {begin, at_}, text_.substr(begin, at_ - begin), false);
}

void Reader::read_single_quoted(std::vector<Piece>& pieces) {
  const std::size_t begin = at_;
  const std::size_t close = text_.find('\'', begin + 1);
  if (close >= end_) return fail_at(begin, "a ' is not closed");
  at_ = close + 1;
  add_literal(pieces, {begin, at_}, text_.substr(begin + 1, close - begin - 1), true);
}

// $'...', in which a backslash escapes the quote.
void Reader::read_ansi_quoted(std::vector<Piece>& pieces) {
  const std::size_t begin = at_;
  std::size_t close = begin + 2;
  while (close < end_ && text_[close] != '\'') close += text_[close] == '\\' ? 2 : 1;
  if (close >= end_) return fail_at(begin, "a ' is not closed");
  at_ = close + 1;
  add_literal(pieces, {begin, at_}, text_.substr(begin + 2, close - begin - 2), true);
}

void Reader::read_double_quoted(std::vector<Piece>& pieces) {
  const std::size_t begin = at_;
  const Deeper deeper(*this);
  ++at_;
  add_literal(pieces, {begin, begin + 1}, "", true);  // "" is a word, too
  read_text(pieces, '"');
  if (at_end() && !has_failed()) return fail_at(begin, "a \" is not closed");
  if (!has_failed()) ++at_;
}

// Text in double quotes up to `stop`, which is left, or with '\0' that of a here-document.
void Reader::read_text(std::vector<Piece>& pieces, char stop) {
  while (!at_end() && (stop == '\0' || peek() != stop)) {
    const std::size_t at = at_;
    const char c = peek();
    if (c == '$') {
      read_dollar(pieces, true);
    } else if (c == '`') {
      read_backticks(pieces, true);
    } else if (c == '\\' && peek(1) == '\n') {
      at_ += 2;
    } else {
      const bool escapes = c == '\\' && at_ + 1 < end_ &&
                           (peek(1) == '$' || peek(1) == '`' || peek(1) == '\\' || peek(1) == stop);
      at_ += escapes ? 2 : 1;
      add_literal(pieces, {at, at_}, text_.substr(at_ - 1, 1), true);
    }
  }
}

void Reader::read_dollar(std::vector<Piece>& pieces, bool is_quoted) {
  const Deeper deeper(*this);
  if (has_failed()) return;
  const std::size_t begin = at_;
  const char next = peek(1);
  if (next == '(') {
    const auto close = peek(2) == '(' ? end_of_arithmetic(begin + 3) : std::nullopt;
    if (!close) return read_substitution(pieces, PieceKind::command, is_quoted);
    at_ = *close + 2;
    return read_arithmetic(pieces, {begin, at_}, {begin + 3, *close}, is_quoted);
  }
  if (next == '{') return read_braces(pieces, is_quoted);
  if (next == '\'' && !is_quoted) return read_ansi_quoted(pieces);
  Piece piece;
  piece.kind = PieceKind::variable;
  piece.is_quoted = is_quoted;
  ++at_;
  if (next == '[') {
    // Brackets of an array's element stand inside: $[${#names[@]} - 1].
    std::size_t close = begin + 2;
    for (int open = 1; close < end_; ++close) {
      open += text_[close] == '[' ? 1 : text_[close] == ']' ? -1 : 0;
      if (open == 0) break;
    }
    if (close >= end_) return fail_at(begin, "'$[' is not closed");
    at_ = close + 1;
    return read_arithmetic(pieces, {begin, at_}, {begin + 2, close}, is_quoted);
  }
  read_name(piece);
  if (piece.text.empty()) {
    // $"..." is text to be translated; any other $ stands for itself.
    if (next != '"' || is_quoted) add_literal(pieces, {begin, at_}, "$", is_quoted);
    return;
  }
  piece.span = {begin, at_};
  pieces.push_back(std::move(piece));
}

// The name of a variable, or one of the shell's own: $1, $@, $?.
void Reader::read_name(Piece& piece) {
  const std::size_t begin = at_;
  if (is_name_start(peek())) {
    while (!at_end() && is_name(peek())) ++at_;
  } else if (!at_end() && std::string_view("0123456789@*#?-$!").find(peek()) != std::string_view::npos) {
    ++at_;
  }
  piece.text = text_.substr(begin, at_ - begin);
}

void Reader::read_braces(std::vector<Piece>& pieces, bool is_quoted) {
  Piece piece;
  piece.kind = PieceKind::variable;
  piece.is_quoted = is_quoted;
  piece.span.begin = at_;
  at_ += 2;
  const bool has_prefix = (peek() == '#' || peek() == '!') && peek(1) != '}' &&
                          (is_name(peek(1)) || peek(1) == '@' || peek(1) == '*');
  if (has_prefix) piece.operation = text_.substr(at_++, 1);
  read_name(piece);
  while (piece.text.size() >= 1 && is_digit(piece.text[0]) && is_digit(peek())) piece.text += text_[at_++];
  read_operation(piece, is_quoted);
  if (at_end()) return fail_at(piece.span.begin, "'{}' is not closed", "${");
  piece.span.end = ++at_;
  pieces.push_back(std::move(piece));
}

// What stands between the name and its closing brace.
void Reader::read_operation(Piece& piece, bool is_quoted) {
  const std::size_t begin = at_;
  while (!at_end() && peek() != '}') {
    if (peek() == '$') {
      read_dollar(piece.inner, is_quoted);
    } else if (peek() == '`') {
      read_backticks(piece.inner, is_quoted);
    } else if (peek() == '"') {
      read_double_quoted(piece.inner);
    } else if (peek() == '\'' && !is_quoted) {
      read_single_quoted(piece.inner);
    } else {
      at_ = std::min(at_ + (peek() == '\\' ? 2 : 1), end_);
    }
  }
  if (!has_failed()) piece.operation += text_.substr(begin, at_ - begin);
}

void Reader::read_substitution(std::vector<Piece>& pieces, PieceKind kind, bool is_quoted) {
  Piece piece;
  piece.kind = kind;
  piece.is_quoted = is_quoted;
  piece.span.begin = at_;
  at_ += 2;
  piece.lists.push_back(read_list());
  if (has_failed()) return;
  if (peek() != ')' || at_end()) {
    return fail_at(piece.span.begin, "'{}(' is not closed", text_.substr(piece.span.begin, 1));
  }
  piece.span.end = ++at_;
  pieces.push_back(std::move(piece));
}

void Reader::read_backticks(std::vector<Piece>& pieces, bool is_quoted) {
  const Deeper deeper(*this);
  const std::size_t begin = at_;
  std::size_t close = begin + 1;
  while (close < end_ && text_[close] != '`') close += text_[close] == '\\' ? 2 : 1;
  if (close >= end_) return fail_at(begin, "a ` is not closed");
  Piece piece;
  piece.kind = PieceKind::command;
  piece.is_quoted = is_quoted;
  piece.span = {begin, close + 1};
  const std::size_t comments = script_.comments.size();
  within({begin + 1, close}, [&] { piece.lists.push_back(read_all()); });
  script_.comments.resize(comments);  // they end with the backtick, not with the line
  if (has_failed()) return;
  at_ = close + 1;
  pieces.push_back(std::move(piece));
}

void Reader::read_arithmetic(std::vector<Piece>& pieces, Span whole, Span inside, bool is_quoted) {
  Piece piece;
  piece.kind = PieceKind::arithmetic;
  piece.is_quoted = is_quoted;
  piece.span = whole;
  piece.text = text_.substr(inside.begin, inside.end - inside.begin);
  within(inside, [&] { read_text(piece.inner, '\0'); });
  pieces.push_back(std::move(piece));
}

// Where the "))" that closes a "((" lies, whose inside begins at `from`; nothing when there is none and the
// parentheses are those of commands.
std::optional<std::size_t> Reader::end_of_arithmetic(std::size_t from) const {
  int open = 0;
  char quote = '\0';
  for (std::size_t at = from; at < end_; ++at) {
    const char c = text_[at];
    if (c == '\\') {
      ++at;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(') {
      ++open;
    } else if (c == ')' && open-- == 0) {
      return at + 1 < end_ && text_[at + 1] == ')' ? std::optional(at) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace stoker::explain::bash
