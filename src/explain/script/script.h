// A batch script as the rules see it: what it asks of Slurm, every command it runs with where and how it
// runs, and what its variables hold. Made once from the text; the rules only read it. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/source.h"
#include "explain/bash/syntax.h"
#include "explain/script/name_index.h"
#include "explain/script/request.h"

namespace stoker::explain {

/// How a command is run.
struct Context {
  bool is_background = false;
  bool is_condition = false;    ///< its exit code is looked at
  bool is_substituted = false;  ///< inside $(...): its output is taken
  bool is_subshell = false;
  bool is_remote = false;               ///< through ssh
  std::string function;                 ///< the function it is part of; "" outside
  int loops = 0;                        ///< how many it lies in
  std::uint64_t repeats = 1;            ///< by loops whose count can be read; at most kMostRepeats
  std::optional<std::size_t> launcher;  ///< the srun or mpirun that starts it: an index of Script::calls
};

constexpr std::uint64_t kMostRepeats = 1'000'000'000;

/// One program that is run. "srun python train.py" is two: srun, and python with `launcher` set.
struct Call {
  std::string program;                   ///< without its folder: "python3" of "/usr/bin/python3"
  std::vector<std::string> words;        ///< its arguments, variables replaced by what they are known to hold
  std::vector<const bash::Word*> typed;  ///< the same arguments as they stand in the script
  const bash::Word* program_word = nullptr;
  const bash::Command* command = nullptr;    ///< the simple command it is part of
  const bash::Pipeline* pipeline = nullptr;  ///< and that one's pipeline
  std::size_t place = 0;                     ///< in the pipeline
  bash::Span span;                           ///< from the program to the last word
  std::string directory;                     ///< where the last cd went; "" where the job starts
  Context context;

  /// Whether one of the arguments is this word, or begins with it and "=".
  bool has(std::string_view word) const;
  /// The value of "--name=value" or "--name value"; nothing without it.
  std::optional<std::string> option(std::string_view name) const;
};

/// A variable that is given a value.
struct Setting {
  std::string name;
  std::string value;  ///< known variables replaced; others stand as $NAME
  const bash::Assignment* assignment = nullptr;
  bool is_exported = false;    ///< here; see also Script::exported
  bool is_of_command = false;  ///< holds for one command alone
  Context context;
};

struct Script {
  std::string text;
  std::string lower;                             ///< the same in small letters, a zero byte for each comment
  std::shared_ptr<const config::Source> source;  ///< shared by all who show places of it
  std::string interpreter;                       ///< "bash"; "" without "#!"
  bool is_shell = false;                         ///< bash or sh: commands can be read
  bash::Script tree;
  std::deque<bash::Script> inner;  ///< commands in the quotes of bash -c and in here-documents for a shell
  Request request;
  std::size_t first_command = 0;  ///< where the header ends; the size of the text when nothing follows
  std::vector<Call> calls;        ///< in the order of the text
  std::vector<Setting> settings;
  std::map<std::string, std::string> variables;  ///< what each holds in the end, where that can be known
  std::vector<std::string> exported;
  NameIndex names;

  std::string_view at(bash::Span span) const {
    return std::string_view(text).substr(span.begin, span.end - span.begin);
  }
  /// Whether the text has these letters anywhere, comments left out.
  bool mentions(std::string_view letters) const;
  const Call* launcher_of(const Call& call) const;
  /// The begin of the line that a byte is in, and the end of it without its line end.
  bash::Span line_of(std::size_t offset) const;
};

/// Reads a script of any kind. Never fails: what cannot be read is in tree.error.
std::unique_ptr<Script> read_script(const std::string& name, std::string text);

/// A word's text with variables as $NAME, and commands as they stand.
std::string flat(const bash::Word& word, std::string_view text);

/// srun, mpirun and the like: starts its arguments as tasks of the job.
bool is_launcher(std::string_view program);
bool is_python(std::string_view program);
/// torchrun, accelerate launch and the like, which start one process for each GPU of a node themselves.
bool is_agent(const Call& call);
/// A program that does the job's work, as far as can be told: Python with a script, a launcher, ./program.
bool is_work(const Call& call);

/// The index of the first word of the command that `words` (a program and its arguments) runs in its turn,
/// behind its options: 1 of {"nohup", "python"}; nothing when the program starts no other.
std::optional<std::size_t> inner_command(const std::string& program, const std::vector<std::string>& words);

}  // namespace stoker::explain
