// What a rule over a batch script is, and how it tells what it found. Rules stand in tables, one file of
// rules/ for each theme; a rule's own examples are its test. Internal to this room.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "explain/script/lint.h"
#include "explain/script/script.h"

namespace stoker::explain {

/// From here on an array has many tasks, for whatever rule asks.
constexpr std::uint64_t kManyTasks = 100;
/// A task of at most this long costs the scheduler more than it is worth.
constexpr std::chrono::minutes kShortTask{5};

/// What a rule writes to.
class Report {
 public:
  /// Findings are of that level unless the rule says otherwise. Both must outlive this.
  Report(const Script& script, const ScriptPlace& place, Level level)
      : script_(script), place_(place), level_(level) {}

  /// Something found at that place. The reference holds until the next call.
  ScriptFinding& add(bash::Span at, const Said& text);
  /// The same with the text that should stand there instead.
  ScriptFinding& replace(bash::Span at, const Said& text, std::string instead);
  /// The same with a line put before the one that `at` lies in.
  ScriptFinding& insert_line(bash::Span at, const Said& text, std::string line);

  const ScriptPlace& place() const { return place_; }
  /// A text of the rule's own, or of a fix that is more than a command, in the reader's language.
  template <typename... Args>
  Said say(std::string_view pattern, const Args&... args) const {
    return place_.words.say(pattern, args...);
  }
  /// The same with a line put before the script's first command.
  ScriptFinding& insert_first(bash::Span at, const Said& text, std::string line);

  /// The findings so far; they are the caller's now.
  std::vector<ScriptFinding> take() { return std::move(findings_); }

 private:
  const Script& script_;
  const ScriptPlace& place_;
  const Level level_;
  std::vector<ScriptFinding> findings_;
};

struct Rule {
  std::string_view name;
  Level level;              ///< of its findings, unless one says otherwise
  std::string_view why;     ///< why it hurts, a sentence for the docs
  std::string_view bad;     ///< a script that has it
  std::string_view good;    ///< the same, mended
  std::string_view origin;  ///< where such lines stand, for people to look up
  void (*find)(const Script& script, Report& report);
};

/// Whether `word` is among `words`.
bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words);
bool is_one_of(std::string_view word, std::span<const std::string_view> words);

/// On the node's own disk, which no other node sees and which is emptied after the job.
bool is_local_path(std::string_view path);

/// Whether a program that the script starts lies below that folder: then the folder is there.
bool holds_program(const Script& script, std::string_view folder);

/// What a guide's author left to be filled in: "<username>", "xxx", "your_account"; nothing without one.
std::optional<std::string> placeholder_in(std::string_view value);

/// The tables of rules/.
std::span<const Rule> header_rules();
std::span<const Rule> line_rules();
std::span<const Rule> value_rules();
std::span<const Rule> omission_rules();
std::span<const Rule> clash_rules();
std::span<const Rule> placeholder_rules();
std::span<const Rule> log_rules();
std::span<const Rule> node_rules();
std::span<const Rule> rank_rules();
std::span<const Rule> ending_rules();
std::span<const Rule> shell_rules();
std::span<const Rule> name_rules();
std::span<const Rule> step_rules();
std::span<const Rule> load_rules();
std::span<const Rule> habit_rules();
std::span<const Rule> tool_rules();
std::span<const Rule> cluster_rules();
std::span<const Rule> site_rules();
std::span<const Rule> word_rules();
std::span<const Rule> program_rules();
std::span<const Rule> variable_rules();
std::span<const Rule> end_rules();
std::span<const Rule> nothing_rules();
std::span<const Rule> path_rules();
std::span<const Rule> language_rules();
std::span<const Rule> list_rules();
/// All of them, in the order in which they find.
std::vector<std::span<const Rule>> rule_tables();

}  // namespace stoker::explain
