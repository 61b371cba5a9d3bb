// A bash script as a tree: lists of pipelines of commands, words in pieces, every part with its place in the
// text. Made by parser.h, read by the rules over people's own scripts. Plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language/words.h"

namespace stoker::explain::bash {

/// Bytes of the script's text, from `begin` up to before `end`.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

struct List;

enum class PieceKind {
  literal,     ///< text as it is; quotes and backslashes are taken off
  variable,    ///< $NAME, ${NAME...}, $1, $@
  command,     ///< $(...) or `...`
  arithmetic,  ///< $((...))
  process,     ///< <(...) or >(...)
};

/// A part of a word that is expanded, or not, as one.
struct Piece {
  PieceKind kind = PieceKind::literal;
  Span span;                 ///< with its $ and braces
  bool is_quoted = false;    ///< in quotes, or behind a backslash: neither split nor taken for a pattern
  std::string text;          ///< the literal, or the variable's name
  std::string operation;     ///< what follows the name in ${NAME:-x}: ":-x"
  std::vector<List> lists;   ///< of a command or process: one
  std::vector<Piece> inner;  ///< expansions inside ${...} and $((...))
};

struct Word {
  Span span;
  std::vector<Piece> pieces;
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
  bool is_quoted = false;  ///< nothing in it is expanded by this shell
  bool is_closed = true;   ///< false: the text ended before its delimiter came
  Span body;
  std::vector<Piece> pieces;
};

struct Redirection {
  Span span;
  std::string operation;   ///< "<", ">", ">>", "<<", "<<<", "&>", ">&", ...
  std::string descriptor;  ///< before it: "2" of "2>"; may be empty
  Word target;
  std::optional<std::size_t> heredoc;  ///< which one of Script::heredocs
};

enum class CommandKind {
  simple,
  group,       ///< { ...; }
  subshell,    ///< ( ... )
  if_,         ///< parts: condition, body, condition, body, ..., the body of else
  while_,      ///< while and until; parts: condition, body
  for_,        ///< for and select; words: what it goes over; parts: body
  case_,       ///< words: what is looked at, then every pattern; parts: bodies
  function,    ///< parts: its body
  test,        ///< [[ ... ]]
  arithmetic,  ///< (( ... ))
};

struct Command {
  CommandKind kind = CommandKind::simple;
  Span span;
  std::vector<Assignment> assignments;
  std::vector<Word> words;
  std::vector<Redirection> redirections;
  std::vector<List> parts;
  std::string name;                  ///< the variable of a for, the name of a function
  bool goes_over_arguments = false;  ///< a for without "in"
};

struct Pipeline {
  Span span;
  std::vector<Command> commands;
  bool is_negated = false;
};

/// What comes behind a pipeline in a list.
enum class Connector { end, sequence, background, and_, or_ };

struct Item {
  Pipeline pipeline;
  Connector next = Connector::end;
};

struct List {
  std::vector<Item> items;
};

/// A comment from its # to before the end of the line.
struct Comment {
  Span span;
};

struct SyntaxError {
  std::size_t at = 0;
  std::string_view pattern;  ///< "'{}' without its '{}'"
  std::string word;          ///< "fi": what the pattern is filled with; may be empty
  std::string other;         ///< "if"

  /// The same in somebody's language.
  std::string in(const Words& words) const { return words.say(pattern, word, other); }
  std::string what() const { return in(Words()); }
};

struct Script {
  List list;
  std::vector<Comment> comments;
  std::vector<Heredoc> heredocs;
  std::optional<SyntaxError> error;  ///< then the list holds what came before
};

}  // namespace stoker::explain::bash
