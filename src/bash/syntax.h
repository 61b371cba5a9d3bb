// The syntax tree of a bash script: lists of pipelines of commands, and words in pieces. Every node has its
// span in the text. Built by parser.h and read by the script rules. Plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language/message.h"

namespace stoker::bash {

/// Bytes `begin` up to `end` of the script.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

struct List;

enum class PieceKind {
  literal,     ///< literal text without quotes and backslashes
  variable,    ///< $NAME, ${NAME...}, $1, $@
  command,     ///< $(...) or `...`
  arithmetic,  ///< $((...))
  process,     ///< <(...) or >(...)
};

/// A part of a word that is expanded as a unit, or literal.
struct WordPiece {
  PieceKind kind = PieceKind::literal;
  Span span;                     ///< including $ and braces
  bool is_quoted = false;        ///< quoted or escaped: no word splitting, no patterns
  std::string text;              ///< the literal, or the variable's name
  std::string operation;         ///< the operator after the name in ${NAME:-x}: ":-x"
  std::vector<List> lists;       ///< one list for a command or process substitution
  std::vector<WordPiece> inner;  ///< expansions inside ${...} and $((...))
};

struct Word {
  Span span;
  std::vector<WordPiece> pieces;
};

/// NAME=value, NAME+=value or NAME=(...).
struct Assignment {
  Span span;
  std::string name;
  bool appends = false;
  bool is_array = false;
  Word value;
  std::vector<Word> elements;
};

struct Heredoc {
  std::string delimiter;
  bool is_quoted = false;  ///< this shell expands nothing in it
  bool is_closed = true;   ///< false: the text ends before the delimiter
  Span body;
  std::vector<WordPiece> pieces;
};

struct Redirection {
  Span span;
  std::string operation;   ///< "<", ">", ">>", "<<", "<<<", "&>", ">&", ...
  std::string descriptor;  ///< before the operator: "2" of "2>"; may be empty
  Word target;
  std::optional<std::size_t> heredoc;  ///< index into SyntaxTree::heredocs
};

enum class CommandKind {
  simple,
  group,       ///< { ...; }
  subshell,    ///< ( ... )
  if_,         ///< parts: condition, body, condition, body, ..., else body
  while_,      ///< while and until; parts: condition, body
  for_,        ///< for and select; words: the values; parts: body
  case_,       ///< words: the subject, then every pattern; parts: bodies
  function,    ///< parts: the body
  test,        ///< [[ ... ]]
  arithmetic,  ///< (( ... ))
};

struct ShellCommand {
  CommandKind kind = CommandKind::simple;
  Span span;
  std::vector<Assignment> assignments;
  std::vector<Word> words;
  std::vector<Redirection> redirections;
  std::vector<List> parts;
  std::string name;                 ///< the variable of a for, or the name of a function
  bool iterates_arguments = false;  ///< a for without "in"
};

struct ShellPipeline {
  Span span;
  std::vector<ShellCommand> commands;
  bool is_negated = false;
};

/// The operator after a pipeline in a list.
enum class Connector { end, sequence, background, and_, or_ };

struct Item {
  ShellPipeline pipeline;
  Connector next = Connector::end;
};

struct List {
  std::vector<Item> items;
};

/// A comment from its # up to the end of the line.
struct Comment {
  Span span;
};

struct ParseFailure {
  std::size_t at = 0;
  std::string_view pattern;  ///< "'{}' without its '{}'"
  std::string word;          ///< "fi": fills the pattern; may be empty
  std::string other;         ///< "if"

  Message what() const { return message(pattern, word, other); }
};

struct SyntaxTree {
  List list;
  std::vector<Comment> comments;
  std::vector<Heredoc> heredocs;
  std::optional<ParseFailure> error;  ///< if set, the list has the commands before the error
};

}  // namespace stoker::bash
