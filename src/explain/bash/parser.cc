#include "explain/bash/parser.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "explain/bash/reader.h"

namespace stoker::explain::bash {

void Reader::fail_at(std::size_t at, std::string_view pattern, std::string_view word,
                     std::string_view other) {
  if (!has_failed()) script_.error = SyntaxError{at, pattern, std::string(word), std::string(other)};
  at_ = end_;  // every loop ends with the text
}

void Reader::skip_blanks() {
  while (!at_end()) {
    if (is_blank(peek())) {
      ++at_;
    } else if (sees("\\\n")) {
      at_ += 2;
    } else if (peek() == '#') {
      const std::size_t end = std::min(text_.find('\n', at_), end_);
      script_.comments.push_back({{at_, end}});
      at_ = end;
    } else {
      return;
    }
  }
}

void Reader::read_newline() {
  ++at_;
  const std::vector<Pending> pending = std::move(pending_);
  pending_.clear();
  for (const Pending& each : pending) read_heredoc_body(each.heredoc, each.strips_tabs);
}

void Reader::skip_newlines() {
  for (skip_blanks(); !at_end() && peek() == '\n'; skip_blanks()) read_newline();
}

void Reader::read_heredoc_body(std::size_t heredoc, bool strips_tabs) {
  const std::string delimiter = script_.heredocs[heredoc].delimiter;
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
  script_.heredocs[heredoc].is_closed = is_closed;
  script_.heredocs[heredoc].body = {begin, body_end};
  if (script_.heredocs[heredoc].is_quoted || has_failed()) return;
  // What is wrong in it shows only when it is expanded, and is the business of what reads it.
  std::vector<Piece> pieces;
  const std::size_t after = at_;
  within({begin, body_end}, [&] { read_text(pieces, '\0'); });
  script_.error.reset();
  at_ = after;
  script_.heredocs[heredoc].pieces = std::move(pieces);
}

// The letters up to the next blank, line end or operator, without looking into quotes or expansions.
std::string_view Reader::next_word() const {
  std::size_t end = at_;
  while (end < end_ && !is_blank(text_[end]) && text_[end] != '\n' && !is_meta(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}

bool Reader::take_word(std::string_view word) {
  if (next_word() != word) return false;
  at_ += word.size();
  return true;
}

List Reader::read_all() {
  List list = read_list();
  if (!at_end() && !has_failed()) {
    const std::string_view word = next_word().empty() ? text_.substr(at_, 1) : next_word();
    fail_at(at_, "'{}' does not belong here", printable(word.substr(0, 20)));
  }
  return list;
}

Script parse(std::string_view text, Span part) {
  Script script;
  Reader reader(text, {part.begin, std::min(part.end, text.size())}, script);
  script.list = reader.read_all();
  return script;
}

Script parse(std::string_view text) { return parse(text, {0, text.size()}); }

bool is_reserved(std::string_view word) {
  constexpr std::array<std::string_view, 21> kWords = {
      "if",     "then", "else",     "elif", "fi", "for", "while", "until", "do", "done", "case",
      "select", "esac", "function", "time", "{",  "}",   "!",     "[[",    "]]", "in"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

std::optional<std::string> literal(const Word& word) {
  std::string text;
  for (const Piece& piece : word.pieces) {
    if (piece.kind != PieceKind::literal) return std::nullopt;
    text += piece.text;
  }
  return text;
}

}  // namespace stoker::explain::bash
