// The reader behind parser.h: goes over the text once, from left to right, and builds the tree as it goes.
// words.cc has what lies inside words, commands.cc what is made of them. Belongs to one call.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/bash/characters.h"
#include "explain/bash/parser.h"

namespace stoker::explain::bash {

class Reader {
 public:
  /// `script` gets comments, here-documents and the error; both must outlive the reader.
  Reader(std::string_view text, Span part, Script& script)
      : text_(text), at_(part.begin), end_(part.end), script_(script) {}

  /// The whole part. REQUIRES: called once.
  List read_all();

 private:
  // Which characters end a word, beside blanks.
  enum class WordKind { plain, regex };

  class Deeper;  // one level of depth, for as long as it lives

  // --- place and text
  bool at_end() const { return at_ >= end_; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view what) const { return text_.substr(at_, end_ - at_).starts_with(what); }
  bool has_failed() const { return script_.error.has_value(); }
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
  void add_literal(std::vector<Piece>& pieces, Span span, std::string_view text, bool is_quoted);
  void read_single_quoted(std::vector<Piece>& pieces);
  void read_ansi_quoted(std::vector<Piece>& pieces);
  void read_double_quoted(std::vector<Piece>& pieces);
  void read_text(std::vector<Piece>& pieces, char stop);
  void read_dollar(std::vector<Piece>& pieces, bool is_quoted);
  void read_braces(std::vector<Piece>& pieces, bool is_quoted);
  void read_operation(Piece& piece, bool is_quoted);
  void read_name(Piece& piece);
  void read_substitution(std::vector<Piece>& pieces, PieceKind kind, bool is_quoted);
  void read_backticks(std::vector<Piece>& pieces, bool is_quoted);
  void read_arithmetic(std::vector<Piece>& pieces, Span whole, Span inside, bool is_quoted);
  void read_extended_pattern(Word& word);
  std::optional<std::size_t> end_of_arithmetic(std::size_t from) const;

  // --- commands
  List read_list();
  bool closes_list() const;
  Connector read_connector();
  Pipeline read_pipeline();
  Command read_command();
  bool read_compound(Command& command);
  Command read_simple();
  bool read_function_of(Command& command);
  void read_group(Command& command, std::string_view close);
  void read_if(Command& command);
  void read_while(Command& command);
  void read_for(Command& command);
  void read_for_words(Command& command);
  void read_case(Command& command);
  void read_case_branch(Command& command);
  void read_function(Command& command);
  void read_test(Command& command);
  bool read_arithmetic_command(Command& command);
  bool sees_assignment() const;
  Assignment read_assignment();
  void read_elements(Assignment& assignment);
  bool read_redirection(Command& command);
  void start_heredoc(Redirection& redirection, bool strips_tabs);
  void expect(std::string_view word, std::string_view of, std::size_t begin);

  const std::string_view text_;
  std::size_t at_;
  std::size_t end_;
  Script& script_;
  int depth_ = 0;
  struct Pending {
    std::size_t heredoc;
    bool strips_tabs;
  };
  std::vector<Pending> pending_;  // here-documents whose text begins after the next line end
};

class Reader::Deeper {
 public:
  explicit Deeper(Reader& reader) : reader_(reader) {
    if (++reader_.depth_ > kDeepest) reader_.fail_at(reader_.at_, "commands lie too deep in each other");
  }
  ~Deeper() { --reader_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Reader& reader_;
};

/// Does `work` as if the text ended with `part`, then goes on where it was, unless that failed.
template <typename Work>
void Reader::within(Span part, Work work) {
  const std::size_t at = at_;
  const std::size_t end = end_;
  at_ = part.begin;
  end_ = part.end;
  work();
  end_ = end;
  at_ = has_failed() ? end_ : at;
}

}  // namespace stoker::explain::bash
