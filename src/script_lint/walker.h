// Walks the syntax tree in text order and records every call and every assignment. Internal to this folder;
// one instance per call.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "script_lint/script.h"

namespace stoker::script_lint {

class Walker {
 public:
  /// Fills `calls`, `settings`, `variables` and `exported` of the script.
  explicit Walker(Script& script) : script_(script) {}
  void walk();

 private:
  void walk_list(const bash::List& list, const Context& context);
  void walk_command(const bash::ShellCommand& command, const Context& context);
  void walk_parts(const bash::ShellCommand& command, const Context& context);
  void walk_loop(const bash::ShellCommand& command, Context context);
  void walk_simple(const bash::ShellCommand& command, const Context& context);
  void walk_word(const bash::Word& word, const Context& context);
  void walk_piece(const bash::WordPiece& piece, const Context& context);
  void record_assignments(const bash::ShellCommand& command, const Context& context);
  void add_call(const bash::ShellCommand& command, std::size_t first, const Context& context);
  void add_inner(const bash::ShellCommand& command, std::size_t first, const Context& context);
  void walk_text(bash::Span span, const Context& context);
  void follow(const ProgramCall& call);
  std::string resolve(const std::string& text);
  std::uint64_t count_of(const bash::ShellCommand& loop);

  Script& script_;
  const bash::ShellPipeline* pipeline_ = nullptr;
  std::size_t pipeline_index_ = 0;
  int depth_ = 0;          // nested scripts
  int wrappers_ = 0;       // commands that run commands
  std::size_t grown_ = 0;  // bytes added by expanding variables
  std::string directory_;
};

}  // namespace stoker::script_lint
