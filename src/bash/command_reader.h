// Lists, pipelines, compound and simple commands: recursive descent, one pass from left to right. One
// instance per call of parse().
#pragma once

#include <string_view>

#include "bash/word_reader.h"

namespace stoker::bash {

class CommandReader final : private WordReader {
 public:
  CommandReader(std::string_view text, Span part, SyntaxTree& tree) : WordReader(text, part, tree) {}

  /// Reads the whole part. REQUIRES: called once, except for parts within.
  List read_all() override;

 private:
  List read_list() override;
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
};

}  // namespace stoker::bash
