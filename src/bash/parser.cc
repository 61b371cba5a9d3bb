#include "bash/parser.h"

#include <algorithm>
#include <array>

#include "bash/parser_internal.h"
#include "stoker/text.h"

namespace stoker::bash {
namespace {

// Commands that accept assignments as arguments, including arrays.
bool declares(const ShellCommand& command) {
  constexpr std::array<std::string_view, 5> kWords = {"declare", "typeset", "local", "export", "readonly"};
  if (command.words.empty()) return false;
  const auto first = literal(command.words.front());
  return first && std::find(kWords.begin(), kWords.end(), *first) != kWords.end();
}

}  // namespace

void Parser::fail_at(std::size_t at, std::string_view pattern, std::string_view word,
                     std::string_view other) {
  if (!has_failed()) tree_.error = ParseFailure{at, pattern, std::string(word), std::string(other)};
  at_ = end_;  // ends every loop
}

void Parser::skip_blanks() {
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

void Parser::read_newline() {
  ++at_;
  const std::vector<Pending> pending = std::move(pending_);
  pending_.clear();
  for (const Pending& each : pending) read_heredoc_body(each.heredoc, each.strips_tabs);
}

void Parser::skip_newlines() {
  for (skip_blanks(); !at_end() && peek() == '\n'; skip_blanks()) read_newline();
}

void Parser::read_heredoc_body(std::size_t heredoc, bool strips_tabs) {
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
std::string_view Parser::next_word() const {
  std::size_t end = at_;
  while (end < end_ && !is_blank(text_[end]) && text_[end] != '\n' && !is_meta(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}

bool Parser::take_word(std::string_view word) {
  if (next_word() != word) return false;
  at_ += word.size();
  return true;
}

// --- words

void Parser::add_literal(std::vector<WordPiece>& pieces, Span span, std::string_view text, bool is_quoted) {
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

Word Parser::read_word(WordKind kind) {
  Word word;
  word.span.begin = at_;
  int open = 0;  // parentheses of a regular expression, which may contain blanks
  while (!at_end() && read_word_piece(word, kind, open)) {
  }
  word.span.end = at_;
  return word;
}

// Consumes one character or expansion; false at the end of the word.
bool Parser::read_word_piece(Word& word, WordKind kind, int& open) {
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
void Parser::read_extended_pattern(Word& word) {
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

void Parser::read_single_quoted(std::vector<WordPiece>& pieces) {
  const std::size_t begin = at_;
  const std::size_t close = text_.find('\'', begin + 1);
  if (close >= end_) return fail_at(begin, "a ' is not closed");
  at_ = close + 1;
  add_literal(pieces, {begin, at_}, text_.substr(begin + 1, close - begin - 1), true);
}

// $'...', in which a backslash escapes the quote.
void Parser::read_ansi_quoted(std::vector<WordPiece>& pieces) {
  const std::size_t begin = at_;
  std::size_t close = begin + 2;
  while (close < end_ && text_[close] != '\'') close += text_[close] == '\\' ? 2 : 1;
  if (close >= end_) return fail_at(begin, "a ' is not closed");
  at_ = close + 1;
  add_literal(pieces, {begin, at_}, text_.substr(begin + 2, close - begin - 2), true);
}

void Parser::read_double_quoted(std::vector<WordPiece>& pieces) {
  const std::size_t begin = at_;
  const Deeper deeper(*this);
  ++at_;
  add_literal(pieces, {begin, begin + 1}, "", true);  // "" is a word too
  read_text(pieces, '"');
  if (at_end() && !has_failed()) return fail_at(begin, "a \" is not closed");
  if (!has_failed()) ++at_;
}

// Text in double quotes up to `stop` (not consumed); '\0': the text of a here-document.
void Parser::read_text(std::vector<WordPiece>& pieces, char stop) {
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

void Parser::read_dollar(std::vector<WordPiece>& pieces, bool is_quoted) {
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
void Parser::read_name(WordPiece& piece) {
  const std::size_t begin = at_;
  if (is_name_start(peek())) {
    while (!at_end() && is_name(peek())) ++at_;
  } else if (!at_end() && std::string_view("0123456789@*#?-$!").find(peek()) != std::string_view::npos) {
    ++at_;
  }
  piece.text = text_.substr(begin, at_ - begin);
}

void Parser::read_braces(std::vector<WordPiece>& pieces, bool is_quoted) {
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
void Parser::read_operation(WordPiece& piece, bool is_quoted) {
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

void Parser::read_substitution(std::vector<WordPiece>& pieces, PieceKind kind, bool is_quoted) {
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

void Parser::read_backticks(std::vector<WordPiece>& pieces, bool is_quoted) {
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

void Parser::read_arithmetic(std::vector<WordPiece>& pieces, Span whole, Span inside, bool is_quoted) {
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
std::optional<std::size_t> Parser::end_of_arithmetic(std::size_t from) const {
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

// --- lists, pipelines, compound commands

List Parser::read_all() {
  List list = read_list();
  if (!at_end() && !has_failed()) {
    const std::string_view word = next_word().empty() ? text_.substr(at_, 1) : next_word();
    fail_at(at_, "unexpected '{}'", printable(word.substr(0, 20)));
  }
  return list;
}

// Whether the next token ends the current list, for any enclosing construct.
bool Parser::closes_list() const {
  if (peek() == ')' || sees(";;") || sees(";&")) return true;
  constexpr std::array<std::string_view, 8> kClosers = {"then", "do",   "done", "fi",
                                                        "esac", "elif", "else", "}"};
  const std::string_view word = next_word();
  return std::find(kClosers.begin(), kClosers.end(), word) != kClosers.end();
}

List Parser::read_list() {
  List list;
  const Deeper deeper(*this);
  bool wants_more = false;  // behind && or ||
  while (!has_failed()) {
    skip_newlines();
    if (at_end() || closes_list()) {
      if (wants_more) fail_at(at_, "a command is missing after && or ||");
      break;
    }
    Item item;
    item.pipeline = read_pipeline();
    if (has_failed()) break;  // a truncated pipeline would misrepresent the script
    item.next = read_connector();
    wants_more = item.next == Connector::and_ || item.next == Connector::or_;
    const bool is_last = item.next == Connector::end;
    list.items.push_back(std::move(item));
    if (is_last) break;
  }
  return list;
}

Connector Parser::read_connector() {
  skip_blanks();
  if (at_end()) return Connector::end;
  if (sees("&&") || sees("||")) {
    const bool is_and = peek() == '&';
    at_ += 2;
    return is_and ? Connector::and_ : Connector::or_;
  }
  if (sees(";;") || sees(";&")) return Connector::end;
  if (peek() == ';' || peek() == '\n') {
    if (peek() == ';') ++at_;
    return Connector::sequence;  // the line end is consumed before the next command
  }
  if (peek() != '&') return Connector::end;
  ++at_;
  return Connector::background;
}

ShellPipeline Parser::read_pipeline() {
  ShellPipeline pipeline;
  pipeline.span.begin = at_;
  while (true) {
    if (take_word("!")) {
      pipeline.is_negated = !pipeline.is_negated;
    } else if (take_word("time")) {
      skip_blanks();
      take_word("-p");
    } else {
      break;
    }
    skip_blanks();
    if (at_end() || peek() == '\n' || peek() == ';') return pipeline;
  }
  while (!has_failed()) {
    pipeline.commands.push_back(read_command());
    pipeline.span.end = pipeline.commands.back().span.end;
    skip_blanks();
    if (at_end() || peek() != '|' || peek(1) == '|') break;
    at_ += peek(1) == '&' ? 2 : 1;
    skip_newlines();
  }
  return pipeline;
}

ShellCommand Parser::read_command() {
  skip_blanks();
  if (take_word("coproc")) skip_blanks();
  ShellCommand command;
  command.span.begin = at_;
  if (!read_compound(command)) return read_simple();
  command.span.end = at_;
  while (!has_failed()) {
    skip_blanks();
    if (!read_redirection(command)) break;
    command.span.end = at_;
  }
  return command;
}

bool Parser::read_compound(ShellCommand& command) {
  if (peek() == '(') {
    if (sees("((") && read_arithmetic_command(command)) return true;
    command.kind = CommandKind::subshell;
    ++at_;
    read_group(command, ")");
    return true;
  }
  const std::string_view word = next_word();
  if (word == "{") {
    command.kind = CommandKind::group;
    ++at_;
    read_group(command, "}");
  } else if (word == "if") {
    read_if(command);
  } else if (word == "while" || word == "until") {
    read_while(command);
  } else if (word == "for" || word == "select") {
    read_for(command);
  } else if (word == "case") {
    read_case(command);
  } else if (word == "function") {
    read_function(command);
  } else if (word == "[[") {
    read_test(command);
  } else {
    return false;
  }
  return true;
}

// Expects the closing word of the construct that begins at `begin`.
void Parser::expect(std::string_view word, std::string_view of, std::size_t begin) {
  if (has_failed()) return;
  const bool is_there = word == ")" ? peek() == ')' && !at_end() : next_word() == word;
  if (is_there) {
    at_ += word.size();
  } else if (at_end()) {
    fail_at(begin, "'{}' without '{}'", of, word);
  } else {
    const std::string_view found = next_word().empty() ? text_.substr(at_, 1) : next_word();
    fail_at(at_, "'{}' where '{}' is expected", printable(found.substr(0, 20)), word);
  }
}

void Parser::read_group(ShellCommand& command, std::string_view close) {
  const std::size_t begin = command.span.begin;
  command.parts.push_back(read_list());
  expect(close, close == ")" ? "(" : "{", begin);
}

void Parser::read_if(ShellCommand& command) {
  const std::size_t begin = at_;
  command.kind = CommandKind::if_;
  at_ += 2;
  while (!has_failed()) {
    command.parts.push_back(read_list());
    expect("then", "if", begin);
    command.parts.push_back(read_list());
    if (!take_word("elif")) break;
  }
  if (take_word("else")) command.parts.push_back(read_list());
  expect("fi", "if", begin);
}

void Parser::read_while(ShellCommand& command) {
  const std::size_t begin = at_;
  const std::string of(next_word());
  command.kind = CommandKind::while_;
  at_ += of.size();
  command.parts.push_back(read_list());
  expect("do", of, begin);
  command.parts.push_back(read_list());
  expect("done", of, begin);
}

void Parser::read_for(ShellCommand& command) {
  const std::size_t begin = at_;
  const std::string of(next_word());
  command.kind = CommandKind::for_;
  at_ += of.size();
  skip_blanks();
  if (sees("((")) {
    const auto close = end_of_arithmetic(at_ + 2);
    if (!close) return fail_at(begin, "'((' is not closed");
    Word word;
    word.span = {at_, *close + 2};
    add_literal(word.pieces, word.span, text_.substr(at_, *close + 2 - at_), false);
    command.words.push_back(std::move(word));
    at_ = *close + 2;
  } else {
    command.name = next_word();
    at_ += command.name.size();
    if (command.name.empty() || !is_name_start(command.name[0]))
      return fail_at(begin, "'{}' without a variable name", of);
    read_for_words(command);
  }
  skip_blanks();
  if (peek() == ';') ++at_;
  skip_newlines();
  const bool has_braces = take_word("{");
  if (!has_braces) expect("do", of, begin);
  command.parts.push_back(read_list());
  expect(has_braces ? "}" : "done", of, begin);
}

void Parser::read_for_words(ShellCommand& command) {
  skip_newlines();
  command.iterates_arguments = !take_word("in");
  while (!has_failed() && !command.iterates_arguments) {
    skip_blanks();
    if (at_end() || peek() == '\n' || peek() == ';') return;
    command.words.push_back(read_word());
    const Word& word = command.words.back();
    if (word.span.begin == word.span.end) fail_at(at_, "unexpected '{}'", text_.substr(at_, 1));
  }
}

void Parser::read_case(ShellCommand& command) {
  const std::size_t begin = at_;
  command.kind = CommandKind::case_;
  at_ += 4;
  skip_blanks();
  command.words.push_back(read_word());
  skip_newlines();
  expect("in", "case", begin);
  while (!has_failed()) {
    skip_newlines();
    if (at_end() || take_word("esac")) break;
    read_case_branch(command);
    if (sees(";;&")) {
      at_ += 3;
    } else if (sees(";;") || sees(";&")) {
      at_ += 2;
    } else {
      skip_newlines();
      return expect("esac", "case", begin);
    }
  }
  if (text_.substr(0, at_).ends_with("esac")) return;
  expect("esac", "case", begin);
}

void Parser::read_case_branch(ShellCommand& command) {
  const std::size_t begin = at_;
  if (peek() == '(') ++at_;
  while (!has_failed()) {
    skip_blanks();
    command.words.push_back(read_word());
    const Word& word = command.words.back();
    if (word.span.begin == word.span.end) fail_at(begin, "a case pattern is missing");
    skip_blanks();
    if (peek() != '|') break;
    ++at_;
  }
  expect(")", "a case pattern", begin);
  command.parts.push_back(read_list());
}

void Parser::read_function(ShellCommand& command) {
  command.kind = CommandKind::function;
  at_ += std::string_view("function").size();
  skip_blanks();
  command.name = next_word();
  at_ += command.name.size();
  skip_blanks();
  if (sees("()")) at_ += 2;
  skip_newlines();
  const std::size_t begin = at_;
  List body;
  body.items.emplace_back();
  body.items.back().pipeline.commands.push_back(read_command());
  body.items.back().pipeline.span = {begin, at_};
  command.parts.push_back(std::move(body));
}

void Parser::read_test(ShellCommand& command) {
  const std::size_t begin = at_;
  command.kind = CommandKind::test;
  at_ += 2;
  bool is_regex = false;
  while (!has_failed()) {
    skip_newlines();
    if (at_end()) return fail_at(begin, "'[[' without ']]'");
    if (take_word("]]")) return;
    if (sees("&&") || sees("||")) {
      at_ += 2;
    } else if (!is_regex && (peek() == '(' || peek() == ')' || peek() == '<' || peek() == '>')) {
      ++at_;
    } else {
      command.words.push_back(read_word(is_regex ? WordKind::regex : WordKind::plain));
      const Word& word = command.words.back();
      if (word.span.begin == word.span.end) fail_at(at_, "unexpected '{}'", text_.substr(at_, 1));
    }
    is_regex = !command.words.empty() && command.words.back().span.end == at_ &&
               literal(command.words.back()) == "=~";
  }
}

bool Parser::read_arithmetic_command(ShellCommand& command) {
  const auto close = end_of_arithmetic(at_ + 2);
  if (!close) return false;
  command.kind = CommandKind::arithmetic;
  Word word;
  word.span = {at_, *close + 2};
  read_arithmetic(word.pieces, word.span, {at_ + 2, *close}, true);
  command.words.push_back(std::move(word));
  at_ = *close + 2;
  return true;
}

// --- simple commands: assignments, words, redirections, and functions that begin like one

ShellCommand Parser::read_simple() {
  ShellCommand command;
  command.span = {at_, at_};
  while (!has_failed()) {
    skip_blanks();
    if (at_end() || peek() == '\n') break;
    if (read_redirection(command)) {
      command.span.end = at_;
      continue;
    }
    if (peek() == '(' && read_function_of(command)) return command;
    if (is_meta(peek()) && peek(1) != '(') break;
    if (peek() == '(' || peek() == ')' || peek() == ';' || peek() == '&' || peek() == '|') break;
    if ((command.words.empty() || declares(command)) && sees_assignment()) {
      command.assignments.push_back(read_assignment());
    } else {
      command.words.push_back(read_word());
    }
    command.span.end = at_;
  }
  const bool is_empty = command.words.empty() && command.assignments.empty() && command.redirections.empty();
  if (!has_failed() && is_empty) {
    if (at_end() || peek() == '\n') return fail_at(at_, "a command is missing"), command;
    fail_at(at_, "unexpected '{}'", printable(text_.substr(at_, 1)));
  } else if (!has_failed() && peek() == '(' && !at_end()) {
    fail_at(at_, "unexpected '('");
  }
  return command;
}

// "name ()" and a body turn the command into a function.
bool Parser::read_function_of(ShellCommand& command) {
  if (command.words.size() != 1 || !command.assignments.empty()) return false;
  const auto name = literal(command.words.front());
  std::size_t close = at_ + 1;
  while (close < end_ && is_blank(text_[close])) ++close;
  if (!name || close >= end_ || text_[close] != ')') return false;
  at_ = close + 1;
  skip_newlines();
  command.kind = CommandKind::function;
  command.name = *name;
  command.words.clear();
  const std::size_t begin = at_;
  List body;
  body.items.emplace_back();
  body.items.back().pipeline.commands.push_back(read_command());
  body.items.back().pipeline.span = {begin, at_};
  command.parts.push_back(std::move(body));
  command.span.end = at_;
  return true;
}

// Whether NAME= , NAME+= or NAME[...]= begins here.
bool Parser::sees_assignment() const {
  if (!is_name_start(peek())) return false;
  std::size_t at = at_;
  while (at < end_ && is_name(text_[at])) ++at;
  if (at < end_ && text_[at] == '[') {
    while (at < end_ && text_[at] != ']' && text_[at] != '\n') ++at;
    if (at < end_) ++at;
  }
  if (at < end_ && text_[at] == '+') ++at;
  return at < end_ && text_[at] == '=';
}

Assignment Parser::read_assignment() {
  Assignment assignment;
  assignment.span.begin = at_;
  while (!at_end() && is_name(peek())) assignment.name += text_[at_++];
  at_ = std::min(text_.find('=', at_), end_ - 1);
  assignment.appends = text_[at_ - 1] == '+';
  assignment.is_array = text_[at_ - 1] == ']';
  ++at_;
  if (peek() == '(' && !at_end()) {
    assignment.is_array = true;
    read_elements(assignment);
  } else {
    assignment.value = read_word();
  }
  assignment.span.end = at_;
  return assignment;
}

void Parser::read_elements(Assignment& assignment) {
  const Deeper deeper(*this);
  const std::size_t begin = at_++;
  while (!has_failed()) {
    skip_newlines();
    if (at_end()) return fail_at(begin, "'(' without ')'");
    if (peek() == ')') {
      ++at_;
      return;
    }
    Word word = read_word();
    if (word.span.begin == word.span.end)
      return fail_at(at_, "unexpected '{}'", printable(text_.substr(at_, 1)));
    assignment.elements.push_back(std::move(word));
  }
}

// Parses one redirection if one begins here: "2>&1", "< file", "<<EOF".
bool Parser::read_redirection(ShellCommand& command) {
  constexpr std::array<std::string_view, 11> kOperations = {"<<<", "&>>", "<<-", "<<", "<&", "<>",
                                                            ">>",  ">&",  ">|",  "&>", "<"};
  std::size_t at = at_;
  if (peek() == '{') {
    ++at;
    while (at < end_ && is_name(text_[at])) ++at;
    if (at >= end_ || text_[at] != '}') return false;
    ++at;
  } else {
    while (at < end_ && is_digit(text_[at])) ++at;
  }
  const std::string_view rest = text_.substr(at, end_ - at);
  std::string_view operation = rest.starts_with('>') ? ">" : "";
  for (std::string_view each : kOperations) {
    if (rest.starts_with(each) && (operation.size() < each.size())) operation = each;
  }
  if (operation.empty() || (operation.starts_with('&') && at != at_)) return false;
  if (operation.size() == 1 && rest.size() > 1 && rest[1] == '(') return false;  // <(...) is a word
  Redirection redirection;
  redirection.span.begin = at_;
  redirection.descriptor = text_.substr(at_, at - at_);
  redirection.operation = operation;
  at_ = at + operation.size();
  skip_blanks();
  redirection.target = read_word();
  redirection.span.end = at_;
  if (redirection.target.span.begin == redirection.target.span.end && !has_failed()) {
    fail_at(redirection.span.begin, "nothing after '{}'", operation);
  } else if (operation == "<<" || operation == "<<-") {
    start_heredoc(redirection, operation == "<<-");
  }
  command.redirections.push_back(std::move(redirection));
  return true;
}

void Parser::start_heredoc(Redirection& redirection, bool strips_tabs) {
  Heredoc heredoc;
  for (const WordPiece& piece : redirection.target.pieces) {
    heredoc.is_quoted |= piece.is_quoted;
    heredoc.delimiter += piece.kind == PieceKind::literal
                             ? piece.text
                             : std::string(text_.substr(piece.span.begin, piece.span.end - piece.span.begin));
  }
  heredoc.is_closed = false;
  heredoc.body = {end_, end_};
  redirection.heredoc = tree_.heredocs.size();
  tree_.heredocs.push_back(std::move(heredoc));
  pending_.push_back({*redirection.heredoc, strips_tabs});
}

// --- parser.h

SyntaxTree parse(std::string_view text, Span part) {
  SyntaxTree tree;
  Parser parser(text, {part.begin, std::min(part.end, text.size())}, tree);
  tree.list = parser.read_all();
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
