// Simple commands: assignments, words, redirections, and functions that begin like one.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "explain/bash/reader.h"

namespace stoker::explain::bash {
namespace {

// Behind these assignments may stand, arrays included.
bool declares(const Command& command) {
  constexpr std::array<std::string_view, 5> kWords = {"declare", "typeset", "local", "export", "readonly"};
  if (command.words.empty()) return false;
  const auto first = literal(command.words.front());
  return first && std::find(kWords.begin(), kWords.end(), *first) != kWords.end();
}

}  // namespace

Command Reader::read_simple() {
  Command command;
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
    fail_at(at_, "'{}' does not belong here", printable(text_.substr(at_, 1)));
  } else if (!has_failed() && peek() == '(' && !at_end()) {
    fail_at(at_, "'(' does not belong here");
  }
  return command;
}

// "name ()" and a body make a function of what looked like a command.
bool Reader::read_function_of(Command& command) {
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

// NAME= , NAME+= or NAME[...]= begins here.
bool Reader::sees_assignment() const {
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

Assignment Reader::read_assignment() {
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

void Reader::read_elements(Assignment& assignment) {
  const Deeper deeper(*this);
  const std::size_t begin = at_++;
  while (!has_failed()) {
    skip_newlines();
    if (at_end()) return fail_at(begin, "'(' without its ')'");
    if (peek() == ')') {
      ++at_;
      return;
    }
    Word word = read_word();
    if (word.span.begin == word.span.end)
      return fail_at(at_, "'{}' does not belong here", printable(text_.substr(at_, 1)));
    assignment.elements.push_back(std::move(word));
  }
}

// One redirection, if one begins here: "2>&1", "< file", "<<EOF".
bool Reader::read_redirection(Command& command) {
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
    fail_at(redirection.span.begin, "nothing behind '{}'", operation);
  } else if (operation == "<<" || operation == "<<-") {
    start_heredoc(redirection, operation == "<<-");
  }
  command.redirections.push_back(std::move(redirection));
  return true;
}

void Reader::start_heredoc(Redirection& redirection, bool strips_tabs) {
  Heredoc heredoc;
  for (const Piece& piece : redirection.target.pieces) {
    heredoc.is_quoted |= piece.is_quoted;
    heredoc.delimiter += piece.kind == PieceKind::literal
                             ? piece.text
                             : std::string(text_.substr(piece.span.begin, piece.span.end - piece.span.begin));
  }
  heredoc.is_closed = false;
  heredoc.body = {end_, end_};
  redirection.heredoc = script_.heredocs.size();
  script_.heredocs.push_back(std::move(heredoc));
  pending_.push_back({*redirection.heredoc, strips_tabs});
}

}  // namespace stoker::explain::bash
