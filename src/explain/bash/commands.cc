// Lists, pipelines, compound commands.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "explain/bash/reader.h"

namespace stoker::explain::bash {

// Whether what follows ends the list that is being read, whoever began it.
bool Reader::closes_list() const {
  if (peek() == ')' || sees(";;") || sees(";&")) return true;
  constexpr std::array<std::string_view, 8> kClosers = {"then", "do",   "done", "fi",
                                                        "esac", "elif", "else", "}"};
  const std::string_view word = next_word();
  return std::find(kClosers.begin(), kClosers.end(), word) != kClosers.end();
}

List Reader::read_list() {
  List list;
  const Deeper deeper(*this);
  bool wants_more = false;  // behind && or ||
  while (!has_failed()) {
    skip_newlines();
    if (at_end() || closes_list()) {
      if (wants_more) fail_at(at_, "a command is missing behind && or ||");
      break;
    }
    Item item;
    item.pipeline = read_pipeline();
    if (has_failed()) break;  // what was cut off is not as its author meant it
    item.next = read_connector();
    wants_more = item.next == Connector::and_ || item.next == Connector::or_;
    const bool is_last = item.next == Connector::end;
    list.items.push_back(std::move(item));
    if (is_last) break;
  }
  return list;
}

Connector Reader::read_connector() {
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
    return Connector::sequence;  // the line end is read with those before the next command
  }
  if (peek() != '&') return Connector::end;
  ++at_;
  return Connector::background;
}

Pipeline Reader::read_pipeline() {
  Pipeline pipeline;
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

Command Reader::read_command() {
  skip_blanks();
  if (take_word("coproc")) skip_blanks();
  Command command;
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

bool Reader::read_compound(Command& command) {
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

// The closing word of what began at `begin`.
void Reader::expect(std::string_view word, std::string_view of, std::size_t begin) {
  if (has_failed()) return;
  const bool is_there = word == ")" ? peek() == ')' && !at_end() : next_word() == word;
  if (is_there) {
    at_ += word.size();
  } else if (at_end()) {
    fail_at(begin, "'{}' without its '{}'", of, word);
  } else {
    const std::string_view found = next_word().empty() ? text_.substr(at_, 1) : next_word();
    fail_at(at_, "'{}' where '{}' should be", printable(found.substr(0, 20)), word);
  }
}

void Reader::read_group(Command& command, std::string_view close) {
  const std::size_t begin = command.span.begin;
  command.parts.push_back(read_list());
  expect(close, close == ")" ? "(" : "{", begin);
}

void Reader::read_if(Command& command) {
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

void Reader::read_while(Command& command) {
  const std::size_t begin = at_;
  const std::string of(next_word());
  command.kind = CommandKind::while_;
  at_ += of.size();
  command.parts.push_back(read_list());
  expect("do", of, begin);
  command.parts.push_back(read_list());
  expect("done", of, begin);
}

void Reader::read_for(Command& command) {
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
      return fail_at(begin, "'{}' without the name of a variable", of);
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

void Reader::read_for_words(Command& command) {
  skip_newlines();
  command.goes_over_arguments = !take_word("in");
  while (!has_failed() && !command.goes_over_arguments) {
    skip_blanks();
    if (at_end() || peek() == '\n' || peek() == ';') return;
    command.words.push_back(read_word());
    const Word& word = command.words.back();
    if (word.span.begin == word.span.end) fail_at(at_, "'{}' does not belong here", text_.substr(at_, 1));
  }
}

void Reader::read_case(Command& command) {
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

void Reader::read_case_branch(Command& command) {
  const std::size_t begin = at_;
  if (peek() == '(') ++at_;
  while (!has_failed()) {
    skip_blanks();
    command.words.push_back(read_word());
    const Word& word = command.words.back();
    if (word.span.begin == word.span.end) fail_at(begin, "a pattern of case is missing");
    skip_blanks();
    if (peek() != '|') break;
    ++at_;
  }
  expect(")", "a pattern of case", begin);
  command.parts.push_back(read_list());
}

void Reader::read_function(Command& command) {
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

void Reader::read_test(Command& command) {
  const std::size_t begin = at_;
  command.kind = CommandKind::test;
  at_ += 2;
  bool is_regex = false;
  while (!has_failed()) {
    skip_newlines();
    if (at_end()) return fail_at(begin, "'[[' without its ']]'");
    if (take_word("]]")) return;
    if (sees("&&") || sees("||")) {
      at_ += 2;
    } else if (!is_regex && (peek() == '(' || peek() == ')' || peek() == '<' || peek() == '>')) {
      ++at_;
    } else {
      command.words.push_back(read_word(is_regex ? WordKind::regex : WordKind::plain));
      const Word& word = command.words.back();
      if (word.span.begin == word.span.end) fail_at(at_, "'{}' does not belong here", text_.substr(at_, 1));
    }
    is_regex = !command.words.empty() && command.words.back().span.end == at_ &&
               literal(command.words.back()) == "=~";
  }
}

bool Reader::read_arithmetic_command(Command& command) {
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

}  // namespace stoker::explain::bash
