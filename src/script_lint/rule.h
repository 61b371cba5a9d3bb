// Rules for batch scripts and their reporting. Each file in rules/ has a table for one topic; the examples of
// a rule are its test. Internal to this folder.
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
#include "script_lint/lint.h"
#include "script_lint/script.h"

namespace stoker::script_lint {

/// Threshold for a large array, for all rules.
constexpr std::uint64_t kManyTasks = 100;
/// Tasks up to this length cost the scheduler too much.
constexpr std::chrono::minutes kShortTask{5};

/// Receives the findings of a rule.
class FindingReport {
 public:
  /// Findings have `level` by default. `script` and `context` must outlive this.
  FindingReport(const Script& script, const LintContext& context, Level level)
      : script_(script), context_(context), level_(level) {}

  /// Adds a finding. The reference is valid until the next call.
  ScriptFinding& add(bash::Span at, const Message& text);
  /// Adds a finding that replaces the text.
  ScriptFinding& replace(bash::Span at, const Message& text, std::string instead);
  /// Adds a finding that inserts a line before the line of `at`.
  ScriptFinding& insert_line(bash::Span at, const Message& text, std::string line);

  const LintContext& context() const { return context_; }
  /// Adds a finding that inserts a line before the first command.
  ScriptFinding& insert_first(bash::Span at, const Message& text, std::string line);

  /// Returns the findings and clears them.
  std::vector<ScriptFinding> take() { return std::move(findings_); }

 private:
  const Script& script_;
  const LintContext& context_;
  const Level level_;
  std::vector<ScriptFinding> findings_;
};

struct Rule {
  std::string_view name;
  Level level;              ///< default level of its findings
  std::string_view why;     ///< the effect, a sentence for the docs
  std::string_view bad;     ///< a script with the problem
  std::string_view good;    ///< the same script, fixed
  std::string_view origin;  ///< public source of such lines
  void (*find)(const Script& script, FindingReport& report);
};

/// Whether `word` is among `words`.
bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words);
bool is_one_of(std::string_view word, std::span<const std::string_view> words);

/// A path on the node-local disk, which is emptied after the job.
bool is_local_path(std::string_view path);

/// Whether the script starts a program inside that folder, which therefore exists.
bool holds_program(const Script& script, std::string_view folder);

/// A placeholder from a guide: "<username>", "xxx", "your_account"; nothing without one.
std::optional<std::string> placeholder_in(std::string_view value);

/// The tables of rules/.
std::span<const Rule> header_rules();
std::span<const Rule> line_rules();
std::span<const Rule> value_rules();
std::span<const Rule> omission_rules();
std::span<const Rule> conflict_rules();
std::span<const Rule> placeholder_rules();
std::span<const Rule> log_rules();
std::span<const Rule> node_rules();
std::span<const Rule> rank_rules();
std::span<const Rule> launch_rules();
std::span<const Rule> signal_rules();
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
std::span<const Rule> continuation_rules();
std::span<const Rule> no_work_rules();
std::span<const Rule> path_rules();
std::span<const Rule> language_rules();
std::span<const Rule> list_rules();
/// All tables, in evaluation order.
std::vector<std::span<const Rule>> rule_tables();

/// Whether the rule `site-limit` reports the default time of the script's partition.
bool has_default_time_of_site(const Script& script, const LintContext& context);

}  // namespace stoker::script_lint
