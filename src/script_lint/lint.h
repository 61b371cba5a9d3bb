// Lints a user script: applies rules to its commands and sbatch options. Reads the script, the submission
// folder and the site profile; executes nothing. Used by `stoker check SCRIPT`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/language/message.h"
#include "job/site/site.h"
#include "slurm/allocation.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::script_lint {

/// Where the script would be submitted.
struct LintContext {
  Path directory;                            ///< current folder of sbatch
  const job::Site* site = nullptr;           ///< the cluster, if known; must outlive the call
  std::optional<Duration> longest_run = {};  ///< the longest successful run of the script
  std::size_t run_count = 0;                 ///< number of successful runs
  slurm::Lookup environment = {};            ///< variables for sbatch such as SBATCH_ACCOUNT; none if empty
  std::optional<std::uint32_t> slurm = {};   ///< Slurm release, 2302 for 23.02; empty if unknown
  std::vector<std::string> options = {};     ///< for sbatch, which override options of the script
  /// Unix seconds: called scripts and configuration files that changed later are not read. Empty: all are.
  std::optional<double> as_of = {};
};

/// Replaces bytes of the script by a text.
struct Edit {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;

  friend bool operator==(const Edit&, const Edit&) = default;
};

/// Copies of a launcher that start together.
struct LauncherCopies {
  std::uint64_t count = 0;     ///< on all nodes; 0 for findings that are not about copies
  std::uint64_t per_node = 0;  ///< on one node, at most; 0 if unknown

  friend bool operator==(const LauncherCopies&, const LauncherCopies&) = default;
};

struct ScriptFinding {
  std::string rule;  ///< its name: "misspelt-option"
  Level level = Level::advice;
  std::uint32_t line = 1;
  std::uint32_t column = 1;  ///< in characters
  Message text;              ///< the problem and its effect, one line
  Message fix;               ///< the corrected line or a command; may be empty
  std::vector<Edit> edits;   ///< edits that fix the script; may be empty
  Path folder;               ///< a missing folder to create before submission; may be empty
  std::string excerpt;       ///< the line with a caret: two indented lines, each preceded by a line end
  LauncherCopies copies;     ///< of the rule "separate-trainings": the trainings
};

struct LintResult {
  std::string text;                     ///< the script with Unix line ends, which the edits refer to
  std::vector<ScriptFinding> findings;  ///< by line
  bool loses_job() const;
};

/// The texts of a rule, for `stoker check --rules` and the docs.
struct RuleText {
  std::string_view name;
  Level level;
  std::string_view why;
  std::string_view example;  ///< a line with the problem
  std::string_view origin;
};

/// Whether a text is a batch script and not a job file: it begins with "#!" or has an #SBATCH line.
bool looks_like_script(std::string_view text);

/// Reads the script. Invalid for anything but a regular file, above Slurm's size limit, or with a zero byte.
Result<std::string> load_script(const Path& path);

/// Applies all rules. `name`: display name of the script.
LintResult lint_script(const std::string& name, std::string text, const LintContext& context);

/// Applies all edits that do not overlap; `left` receives the number of skipped findings.
std::string apply_edits(std::string_view text, const std::vector<ScriptFinding>& findings,
                        std::size_t* left = nullptr);

/// The lines that one finding changes: before and after, with line ends.
struct ChangedLines {
  std::string before;
  std::string after;
  std::uint32_t first = 1;
};
ChangedLines changed_lines(std::string_view text, const std::vector<Edit>& edits);

std::vector<RuleText> rule_texts();

}  // namespace stoker::script_lint
