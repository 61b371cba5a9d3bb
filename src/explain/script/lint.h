// What is wrong with a batch script of people's own, found by rules over its commands and what it asks of
// Slurm. Looks at the script, at the folder it would be submitted from and at the site's profile; runs
// nothing. Used by `stoker check SCRIPT`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/language/words.h"
#include "base/status.h"
#include "base/time.h"
#include "job/site/site.h"
#include "slurm/allocation.h"

namespace stoker::explain {

/// Where the script would be submitted.
struct ScriptPlace {
  Path directory;                     ///< the folder in which sbatch is called
  const job::Site* site = nullptr;    ///< the cluster, when it is known; must outlive the call
  std::optional<Duration> took = {};  ///< the longest of the script's runs that were done
  std::size_t times = 0;              ///< how many of those there are
  slurm::Lookup environment = {};  ///< variables such as SBATCH_ACCOUNT, which sbatch obeys; none when empty
  Words words = {};                ///< that findings are told in
  std::optional<std::uint32_t> slurm = {};  ///< release of Slurm there, 2302 for 23.02; empty: not known
};

/// A change of the script: these bytes become that text.
struct Edit {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;

  friend bool operator==(const Edit&, const Edit&) = default;
};

struct ScriptFinding {
  std::string rule;  ///< its name: "misspelt-option"
  Level level = Level::advice;
  std::uint32_t line = 1;
  std::uint32_t column = 1;  ///< in characters
  std::string text;          ///< what is wrong and why it hurts, one line
  std::string fix;           ///< the corrected line or the command that mends it; may be empty
  std::vector<Edit> edits;   ///< what mends it in the script; may be empty
  Path folder;               ///< that has to be made before the script is submitted; may be empty
  std::string excerpt;       ///< the line with a caret, as two indented lines with a line end before each
};

struct Lint {
  std::string text;                     ///< of the script, with line ends of Unix: what the edits change
  std::vector<ScriptFinding> findings;  ///< by line
  bool loses_job() const;
};

/// What a rule looks for; for `stoker check --rules` and the docs.
struct RuleText {
  std::string_view name;
  Level level;
  std::string_view why;
  std::string_view example;  ///< the line that has it
  std::string_view origin;
};

/// Whether a file's text is a batch script and not a job file: it begins with "#!", or has an #SBATCH line.
bool looks_like_script(std::string_view text);

/// Reads the script's file. Invalid for what is no file, larger than Slurm takes, or has a zero byte.
Result<std::string> load_script(const Path& path);

/// Holds the script against every rule. `name` is how people know it.
Lint lint_script(const std::string& name, std::string text, const ScriptPlace& place);

/// The script with all edits made that do not meet another one; `left` counts those.
std::string apply_edits(std::string_view text, const std::vector<ScriptFinding>& findings,
                        std::size_t* left = nullptr);

/// The lines that one finding changes: as they are and as they become, each with its line ends.
struct ChangedLines {
  std::string before;
  std::string after;
  std::uint32_t first = 1;
};
ChangedLines changed_lines(std::string_view text, const std::vector<Edit>& edits);

std::vector<RuleText> rule_texts();

}  // namespace stoker::explain
