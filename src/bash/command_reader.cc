#include "bash/command_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "bash/parser.h"
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

// --- lists, pipelines, compound commands

List CommandReader::read_all() {
  List list = read_list();
  if (!at_end() && !has_failed()) {
    const std::string_view word = next_word().empty() ? text_.substr(at_, 1) : next_word();
    fail_at(at_, "unexpected '{}'", printable(word.substr(0, 20)));
  }
  return list;
}

// Whether the next token ends the current list, for any enclosing construct.
bool CommandReader::closes_list() const {
  if (peek() == ')' || sees(";;") || sees(";&")) return true;
  constexpr std::array<std::string_view, 8> kClosers = {"then", "do",   "done", "fi",
                                                        "esac", "elif", "else", "}"};
  const std::string_view word = next_word();
  return std::find(kClosers.begin(), kClosers.end(), word) != kClosers.end();
}

List CommandReader::read_list() {
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

Connector CommandReader::read_connector() {
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

ShellPipeline CommandReader::read_pipeline() {
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

ShellCommand CommandReader::read_command() {
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

bool CommandReader::read_compound(ShellCommand& command) {
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
void CommandReader::expect(std::string_view word, std::string_view of, std::size_t begin) {
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

void CommandReader::read_group(ShellCommand& command, std::string_view close) {
  const std::size_t begin = command.span.begin;
  command.parts.push_back(read_list());
  expect(close, close == ")" ? "(" : "{", begin);
}

void CommandReader::read_if(ShellCommand& command) {
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

void CommandReader::read_while(ShellCommand& command) {
  const std::size_t begin = at_;
  const std::string of(next_word());
  command.kind = CommandKind::while_;
  at_ += of.size();
  command.parts.push_back(read_list());
  expect("do", of, begin);
  command.parts.push_back(read_list());
  expect("done", of, begin);
}

void CommandReader::read_for(ShellCommand& command) {
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

void CommandReader::read_for_words(ShellCommand& command) {
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

void CommandReader::read_case(ShellCommand& command) {
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

void CommandReader::read_case_branch(ShellCommand& command) {
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

void CommandReader::read_function(ShellCommand& command) {
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

void CommandReader::read_test(ShellCommand& command) {
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

bool CommandReader::read_arithmetic_command(ShellCommand& command) {
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

ShellCommand CommandReader::read_simple() {
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
bool CommandReader::read_function_of(ShellCommand& command) {
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
bool CommandReader::sees_assignment() const {
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

Assignment CommandReader::read_assignment() {
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

void CommandReader::read_elements(Assignment& assignment) {
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
bool CommandReader::read_redirection(ShellCommand& command) {
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

void CommandReader::start_heredoc(Redirection& redirection, bool strips_tabs) {
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

}  // namespace stoker::bash
