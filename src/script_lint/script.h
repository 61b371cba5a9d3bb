// A batch script for the rules: its request to Slurm, every command with its context, and known values of
// variables. Built once from the text and then read-only. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bash/syntax.h"
#include "config/source.h"
#include "script_lint/name_index.h"
#include "script_lint/request.h"

namespace stoker::script_lint {

/// The context of a command.
struct Context {
  bool is_background = false;
  bool is_condition = false;    ///< its exit code is tested
  bool is_substituted = false;  ///< inside $(...): its output is captured
  bool is_subshell = false;
  bool is_remote = false;               ///< through ssh
  std::string function;                 ///< the enclosing function; "" outside
  int loops = 0;                        ///< number of enclosing loops
  std::uint64_t repeats = 1;            ///< product of known loop counts; at most kMaxRepeats
  std::optional<std::size_t> launcher;  ///< the srun or mpirun that starts it: an index into Script::calls
};

constexpr std::uint64_t kMaxRepeats = 1'000'000'000;

/// One call of a program. "srun python train.py" is two calls: srun, and python with `launcher` set.
struct ProgramCall {
  std::string program;                   ///< without its folder: "python3" of "/usr/bin/python3"
  std::vector<std::string> words;        ///< its arguments with known variables expanded
  std::vector<const bash::Word*> typed;  ///< the same arguments as written
  const bash::Word* program_word = nullptr;
  const bash::ShellCommand* command = nullptr;    ///< its simple command
  const bash::ShellPipeline* pipeline = nullptr;  ///< the pipeline of the command
  std::size_t pipeline_index = 0;                 ///< index in the pipeline
  bash::Span span;                                ///< from the program to the last word
  std::string directory;                          ///< the last cd; "" in the start folder
  Context context;

  /// Whether an argument is `word` or begins with "word=".
  bool has(std::string_view word) const;
  /// The value of "--name=value" or "--name value"; nothing without it.
  std::optional<std::string> option(std::string_view name) const;
};

/// An assignment to a variable.
struct VariableSetting {
  std::string name;
  std::string value;  ///< known variables expanded; others stay as $NAME
  const bash::Assignment* assignment = nullptr;
  bool is_exported = false;        ///< here; see also Script::exported
  bool is_command_scoped = false;  ///< only for one command
  Context context;
};

struct Script {
  std::string text;
  std::string lower;  ///< the text in lower case, with a zero byte for each comment
  std::shared_ptr<const config::Source> source;  ///< shared by all findings
  std::string interpreter;                       ///< "bash"; "" without "#!"
  bool is_shell = false;                         ///< bash or sh: commands can be parsed
  bash::SyntaxTree tree;
  std::deque<bash::SyntaxTree>
      inner;  ///< commands in the quotes of bash -c and in here-documents for a shell
  SlurmRequest request;
  std::size_t first_command = 0;   ///< end of the header; the size of the text if nothing follows
  std::vector<ProgramCall> calls;  ///< in the order of the text
  std::vector<VariableSetting> settings;
  std::map<std::string, std::string> variables;  ///< final values, where known
  std::vector<std::string> exported;
  NameIndex names;

  std::string_view at(bash::Span span) const {
    return std::string_view(text).substr(span.begin, span.end - span.begin);
  }
  /// Whether the text contains `letters`, ignoring case and comments.
  bool mentions(std::string_view letters) const;
  const ProgramCall* launcher_of(const ProgramCall& call) const;
  /// The line of a byte, without its line end.
  bash::Span line_of(std::size_t offset) const;
};

/// Parses any script. Never fails: tree.error has a syntax error.
std::unique_ptr<Script> read_script(const std::string& name, std::string text);

/// The text of a word, with variables as $NAME and commands as written.
std::string flatten(const bash::Word& word, std::string_view text);

bool is_python(std::string_view program);
/// torchrun, accelerate launch and similar programs, which start one process per GPU of a node.
bool is_agent(const ProgramCall& call);
/// A program that does the actual work, as far as known: Python with a script, a launcher, ./program.
bool is_work(const ProgramCall& call);

}  // namespace stoker::script_lint
