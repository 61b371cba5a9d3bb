// Goes through a script's tree in the order in which it is written, and notes every program that is run and
// every variable that is set. Internal to this folder; belongs to one call.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "explain/script/script.h"

namespace stoker::explain {

class Walker {
 public:
  /// Fills `calls`, `settings`, `variables` and `exported` of the script.
  explicit Walker(Script& script) : script_(script) {}
  void walk();

 private:
  void walk_list(const bash::List& list, const Context& context);
  void walk_command(const bash::Command& command, const Context& context);
  void walk_parts(const bash::Command& command, const Context& context);
  void walk_loop(const bash::Command& command, Context context);
  void walk_simple(const bash::Command& command, const Context& context);
  void walk_word(const bash::Word& word, const Context& context);
  void walk_piece(const bash::Piece& piece, const Context& context);
  void note_assignments(const bash::Command& command, const Context& context);
  void add_call(const bash::Command& command, std::size_t first, const Context& context);
  void add_inner(const bash::Command& command, std::size_t first, const Context& context);
  void walk_text(bash::Span span, const Context& context);
  void follow(const Call& call);
  std::string resolve(const std::string& flat);
  std::uint64_t count_of(const bash::Command& loop);

  Script& script_;
  const bash::Pipeline* pipeline_ = nullptr;
  std::size_t place_ = 0;
  int depth_ = 0;          // of scripts in scripts
  int wrappers_ = 0;       // of commands that run commands
  std::size_t grown_ = 0;  // bytes by which variables have made words longer
  std::string directory_;
};

}  // namespace stoker::explain
