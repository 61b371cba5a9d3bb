#include "bash/word_reader.h"

#include <algorithm>
#include <utility>

#include "stoker/text.h"

namespace stoker::bash {

void WordReader::fail_at(std::size_t at, std::string_view pattern, std::string_view word,
                         std::string_view other) {
  if (!has_failed()) tree_.error = ParseFailure{at, pattern, std::string(word), std::string(other)};
  at_ = end_;  // ends every loop
}

void WordReader::skip_blanks() {
  while (!at_end()) {
    if (is_blank(peek())) {
      ++at_;
    } else if (sees("\\\n")) {
      at_ += 2;
    } else if (peek() == '#') {
      const std::size_t end = std::min(text_.find('\n', at_), end_);
      tree_.comments.push_back({{at_, end}});
      at_ = end;
    } else {
      return;
    }
  }
}

void WordReader::read_newline() {
  ++at_;
  const std::vector<Pending> pending = std::move(pending_);
  pending_.clear();
  for (const Pending& each : pending) read_heredoc_body(each.heredoc, each.strips_tabs);
}

void WordReader::skip_newlines() {
  for (skip_blanks(); !at_end() && peek() == '\n'; skip_blanks()) read_newline();
}

void WordReader::read_heredoc_body(std::size_t heredoc, bool strips_tabs) {
  const std::string delimiter = tree_.heredocs[heredoc].delimiter;
  const std::size_t begin = at_;
  std::size_t body_end = end_;
  bool is_closed = false;
  while (!at_end() && !is_closed) {
    const std::size_t line_end = std::min(text_.find('\n', at_), end_);
    std::string_view line = text_.substr(at_, line_end - at_);
    if (strips_tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
    is_closed = line == delimiter;
    if (is_closed) body_end = at_;
    at_ = std::min(line_end + 1, end_);
  }
  tree_.heredocs[heredoc].is_closed = is_closed;
  tree_.heredocs[heredoc].body = {begin, body_end};
  if (tree_.heredocs[heredoc].is_quoted || has_failed()) return;
  // The reader of the here-document reports errors in expansions, because they appear only on expansion.
  std::vector<WordPiece> pieces;
  const std::size_t after = at_;
  within({begin, body_end}, [&] { read_text(pieces, '\0'); });
  tree_.error.reset();
  at_ = after;
  tree_.heredocs[heredoc].pieces = std::move(pieces);
}

// The characters up to the next blank, line end or operator; ignores quotes and expansions.
std::string_view WordReader::next_word() const {
  std::size_t end = at_;
  while (end < end_ && !is_blank(text_[end]) && text_[end] != '\n' && !is_meta(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}

bool WordReader::take_word(std::string_view word) {
  if (next_word() != word) return false;
  at_ += word.size();
  return true;
}

void WordReader::add_literal(std::vector<WordPiece>& pieces, Span span, std::string_view text,
                             bool is_quoted) {
  if (!pieces.empty()) {
    WordPiece& last = pieces.back();
    if (last.kind == PieceKind::literal && last.is_quoted == is_quoted) {
      last.text += text;
      last.span.end = span.end;
      return;
    }
  }
  WordPiece piece;
  piece.span = span;
  piece.is_quoted = is_quoted;
  piece.text = text;
  pieces.push_back(std::move(piece));
}

Word WordReader::read_word(WordKind kind) {
  Word word;
  word.span.begin = at_;
  int open = 0;  // parentheses of a regular expression, which may contain blanks
  while (!at_end() && read_word_piece(word, kind, open)) {
  }
  word.span.end = at_;
  return word;
}

// Consumes one character or expansion; false at the end of the word.
bool WordReader::read_word_piece(Word& word, WordKind kind, int& open) {
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

// An extended pattern such as @(a|b), as literal text.
void WordReader::read_extended_pattern(Word& word) {
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

void WordReader::read_single_quoted(std::vector<WordPiece>& pieces) {
  const std::size_t begin = at_;
  const std::size_t close = text_.find('\'', begin + 1);
  if (close >= end_) return fail_at(begin, "a ' is not closed");
  at_ = close + 1;
  add_literal(pieces, {begin, at_}, text_.substr(begin + 1, close - begin - 1), true);
}

// $'...', in which a backslash escapes the quote.
void WordReader::read_ansi_quoted(std::vector<WordPiece>& pieces) {
  const std::size_t begin = at_;
  std::size_t close = begin + 2;
  while (close < end_ && text_[close] != '\'') close += text_[close] == '\\' ? 2 : 1;
  if (close >= end_) return fail_at(begin, "a ' is not closed");
  at_ = close + 1;
  add_literal(pieces, {begin, at_}, text_.substr(begin + 2, close - begin - 2), true);
}

void WordReader::read_double_quoted(std::vector<WordPiece>& pieces) {
  const std::size_t begin = at_;
  const Deeper deeper(*this);
  ++at_;
  add_literal(pieces, {begin, begin + 1}, "", true);  // "" is a word too
  read_text(pieces, '"');
  if (at_end() && !has_failed()) return fail_at(begin, "a \" is not closed");
  if (!has_failed()) ++at_;
}

// Text in double quotes up to `stop` (not consumed); '\0': the text of a here-document.
void WordReader::read_text(std::vector<WordPiece>& pieces, char stop) {
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

void WordReader::read_dollar(std::vector<WordPiece>& pieces, bool is_quoted) {
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
  WordPiece piece;
  piece.kind = PieceKind::variable;
  piece.is_quoted = is_quoted;
  ++at_;
  if (next == '[') {
    // Array subscripts may be inside: $[${#names[@]} - 1].
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
    // $"..." is translatable text; any other $ is literal.
    if (next != '"' || is_quoted) add_literal(pieces, {begin, at_}, "$", is_quoted);
    return;
  }
  piece.span = {begin, at_};
  pieces.push_back(std::move(piece));
}

// The name of a variable or of a special parameter: $1, $@, $?.
void WordReader::read_name(WordPiece& piece) {
  const std::size_t begin = at_;
  if (is_name_start(peek())) {
    while (!at_end() && is_name(peek())) ++at_;
  } else if (!at_end() && std::string_view("0123456789@*#?-$!").find(peek()) != std::string_view::npos) {
    ++at_;
  }
  piece.text = text_.substr(begin, at_ - begin);
}

void WordReader::read_braces(std::vector<WordPiece>& pieces, bool is_quoted) {
  WordPiece piece;
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

// The text between the name and its closing brace.
void WordReader::read_operation(WordPiece& piece, bool is_quoted) {
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

void WordReader::read_substitution(std::vector<WordPiece>& pieces, PieceKind kind, bool is_quoted) {
  WordPiece piece;
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

void WordReader::read_backticks(std::vector<WordPiece>& pieces, bool is_quoted) {
  const Deeper deeper(*this);
  const std::size_t begin = at_;
  std::size_t close = begin + 1;
  while (close < end_ && text_[close] != '`') close += text_[close] == '\\' ? 2 : 1;
  if (close >= end_) return fail_at(begin, "a ` is not closed");
  WordPiece piece;
  piece.kind = PieceKind::command;
  piece.is_quoted = is_quoted;
  piece.span = {begin, close + 1};
  const std::size_t comments = tree_.comments.size();
  within({begin + 1, close}, [&] { piece.lists.push_back(read_all()); });
  tree_.comments.resize(comments);  // they end at the backtick, not at the line end
  if (has_failed()) return;
  at_ = close + 1;
  pieces.push_back(std::move(piece));
}

void WordReader::read_arithmetic(std::vector<WordPiece>& pieces, Span whole, Span inside, bool is_quoted) {
  WordPiece piece;
  piece.kind = PieceKind::arithmetic;
  piece.is_quoted = is_quoted;
  piece.span = whole;
  piece.text = text_.substr(inside.begin, inside.end - inside.begin);
  within(inside, [&] { read_text(piece.inner, '\0'); });
  pieces.push_back(std::move(piece));
}

// The position of the "))" that closes the "((" before `from`; nothing if there is no such pair and the
// parentheses belong to commands.
std::optional<std::size_t> WordReader::end_of_arithmetic(std::size_t from) const {
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

}  // namespace stoker::bash
