// The recursive descent parser of parser.h: one pass from left to right. One instance per call.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bash/characters.h"
#include "bash/parser.h"

namespace stoker::bash {

class Parser {
 public:
  /// Adds comments, here-documents and the error to `tree`. `text` and `tree` must outlive the parser.
  Parser(std::string_view text, Span part, SyntaxTree& tree)
      : text_(text), at_(part.begin), end_(part.end), tree_(tree) {}

  /// Parses the whole part. REQUIRES: called once.
  List read_all();

 private:
  // Which characters end a word, besides blanks.
  enum class WordKind { plain, regex };

  class Deeper;  // one nesting level during its lifetime

  // --- position and text
  bool at_end() const { return at_ >= end_; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view what) const { return text_.substr(at_, end_ - at_).starts_with(what); }
  bool has_failed() const { return tree_.error.has_value(); }
  void fail_at(std::size_t at, std::string_view pattern, std::string_view word = {},
               std::string_view other = {});
  void skip_blanks();
  void skip_newlines();
  void read_newline();
  void read_heredoc_body(std::size_t heredoc, bool strips_tabs);
  std::string_view next_word() const;
  bool take_word(std::string_view word);
  template <typename Work>
  void within(Span part, Work work);

  // --- words
  Word read_word(WordKind kind = WordKind::plain);
  bool read_word_piece(Word& word, WordKind kind, int& open);
  void add_literal(std::vector<WordPiece>& pieces, Span span, std::string_view text, bool is_quoted);
  void read_single_quoted(std::vector<WordPiece>& pieces);
  void read_ansi_quoted(std::vector<WordPiece>& pieces);
  void read_double_quoted(std::vector<WordPiece>& pieces);
  void read_text(std::vector<WordPiece>& pieces, char stop);
  void read_dollar(std::vector<WordPiece>& pieces, bool is_quoted);
  void read_braces(std::vector<WordPiece>& pieces, bool is_quoted);
  void read_operation(WordPiece& piece, bool is_quoted);
  void read_name(WordPiece& piece);
  void read_substitution(std::vector<WordPiece>& pieces, PieceKind kind, bool is_quoted);
  void read_backticks(std::vector<WordPiece>& pieces, bool is_quoted);
  void read_arithmetic(std::vector<WordPiece>& pieces, Span whole, Span inside, bool is_quoted);
  void read_extended_pattern(Word& word);
  std::optional<std::size_t> end_of_arithmetic(std::size_t from) const;

  // --- commands
  List read_list();
  bool closes_list() const;
  Connector read_connector();
  ShellPipeline read_pipeline();
  ShellCommand read_command();
  bool read_compound(ShellCommand& command);
  ShellCommand read_simple();
  bool read_function_of(ShellCommand& command);
  void read_group(ShellCommand& command, std::string_view close);
  void read_if(ShellCommand& command);
  void read_while(ShellCommand& command);
  void read_for(ShellCommand& command);
  void read_for_words(ShellCommand& command);
  void read_case(ShellCommand& command);
  void read_case_branch(ShellCommand& command);
  void read_function(ShellCommand& command);
  void read_test(ShellCommand& command);
  bool read_arithmetic_command(ShellCommand& command);
  bool sees_assignment() const;
  Assignment read_assignment();
  void read_elements(Assignment& assignment);
  bool read_redirection(ShellCommand& command);
  void start_heredoc(Redirection& redirection, bool strips_tabs);
  void expect(std::string_view word, std::string_view of, std::size_t begin);

  const std::string_view text_;
  std::size_t at_;
  std::size_t end_;
  SyntaxTree& tree_;
  int depth_ = 0;
  struct Pending {
    std::size_t heredoc;
    bool strips_tabs;
  };
  std::vector<Pending> pending_;  // here-documents that begin after the next line end
};

class Parser::Deeper {
 public:
  explicit Deeper(Parser& parser) : parser_(parser) {
    if (++parser_.depth_ > kDeepest) parser_.fail_at(parser_.at_, "commands are nested too deeply");
  }
  ~Deeper() { --parser_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Parser& parser_;
};

/// Runs `work` on `part` and then restores the position, unless an error occurred.
template <typename Work>
void Parser::within(Span part, Work work) {
  const std::size_t at = at_;
  const std::size_t end = end_;
  at_ = part.begin;
  end_ = part.end;
  work();
  end_ = end;
  at_ = has_failed() ? end_ : at;
}

}  // namespace stoker::bash
