// The position of the parser in its text, and the words there: quoting, expansions, bodies of here-documents.
// Expansions contain commands, which CommandReader reads. One instance per call of parse().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bash/characters.h"
#include "bash/parser.h"

namespace stoker::bash {

class WordReader {
 protected:
  // Which characters end a word, besides blanks.
  enum class WordKind { plain, regex };

  class Deeper;  // one nesting level during its lifetime

  // Adds comments, here-documents and the error to `tree`. `text` and `tree` must outlive the reader.
  WordReader(std::string_view text, Span part, SyntaxTree& tree)
      : text_(text), at_(part.begin), end_(part.end), tree_(tree) {}
  ~WordReader() = default;

  // The commands of a substitution, up to its closing character.
  virtual List read_list() = 0;
  // The commands up to the end of the part.
  virtual List read_all() = 0;

  bool at_end() const { return at_ >= end_; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view what) const { return text_.substr(at_, end_ - at_).starts_with(what); }
  bool has_failed() const { return tree_.error.has_value(); }
  void fail_at(std::size_t at, std::string_view pattern, std::string_view word = {},
               std::string_view other = {});
  void skip_blanks();
  void skip_newlines();
  void read_newline();
  std::string_view next_word() const;
  bool take_word(std::string_view word);
  template <typename Work>
  void within(Span part, Work work);

  Word read_word(WordKind kind = WordKind::plain);
  void add_literal(std::vector<WordPiece>& pieces, Span span, std::string_view text, bool is_quoted);
  void read_text(std::vector<WordPiece>& pieces, char stop);
  void read_arithmetic(std::vector<WordPiece>& pieces, Span whole, Span inside, bool is_quoted);
  std::optional<std::size_t> end_of_arithmetic(std::size_t from) const;

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

 private:
  void read_heredoc_body(std::size_t heredoc, bool strips_tabs);
  bool read_word_piece(Word& word, WordKind kind, int& open);
  void read_single_quoted(std::vector<WordPiece>& pieces);
  void read_ansi_quoted(std::vector<WordPiece>& pieces);
  void read_double_quoted(std::vector<WordPiece>& pieces);
  void read_dollar(std::vector<WordPiece>& pieces, bool is_quoted);
  void read_braces(std::vector<WordPiece>& pieces, bool is_quoted);
  void read_operation(WordPiece& piece, bool is_quoted);
  void read_name(WordPiece& piece);
  void read_substitution(std::vector<WordPiece>& pieces, PieceKind kind, bool is_quoted);
  void read_backticks(std::vector<WordPiece>& pieces, bool is_quoted);
  void read_extended_pattern(Word& word);
};

class WordReader::Deeper {
 public:
  explicit Deeper(WordReader& reader) : reader_(reader) {
    if (++reader_.depth_ > kDeepest) reader_.fail_at(reader_.at_, "commands are nested too deeply");
  }
  ~Deeper() { --reader_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  WordReader& reader_;
};

/// Runs `work` on `part` and then restores the position, unless an error occurred.
template <typename Work>
void WordReader::within(Span part, Work work) {
  const std::size_t at = at_;
  const std::size_t end = end_;
  at_ = part.begin;
  end_ = part.end;
  work();
  end_ = end;
  at_ = has_failed() ? end_ : at;
}

}  // namespace stoker::bash
