// What a rule over logs is. Rules stand in tables, one file of rules/ for each theme; a rule's own examples
// are its test. Internal to this room.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace stoker::explain {

/// What a line says about a failure: from what brings a job down to what only comes of it.
enum class Weight {
  root,     ///< the cause itself
  general,  ///< a cause as its program names it: an exception that no rule knows better
  hang,     ///< ranks wait for each other: the cause unless one of them says more
  outside,  ///< the end came from outside: a time limit, scancel, another job, a lost node
  ending,   ///< how it ended, not why: an exit code, a signal
  effect,   ///< somebody else failed first
  slow,     ///< nothing fails, but it costs time
  noise,    ///< looks bad and means nothing
};

/// One rule. All texts may hold {1} to {4}: what the groups of its pattern matched.
struct FailureRule {
  std::string_view name;  ///< "dev-shm-full"
  Weight weight;
  /// Words parted by '\n': a line that has none of them is never held against the pattern.
  std::string_view words;
  /// RE2, searched in the line without its prefix of a rank; empty: a word is enough.
  std::string_view pattern;
  std::string_view cause;    ///< one line, lower case, no full stop
  std::string_view cure;     ///< what mends it; may be empty
  std::string_view confirm;  ///< the command that would show it; may be empty
  std::string_view example;  ///< lines that have it, parted by '\n'
  std::string_view origin;   ///< where such lines stand in public, or "source" of which program prints them
  bool script_goes_on = false;  ///< a script without set -e goes on after it, and may end well
};

/// Last of a rule's fields, where it holds.
inline constexpr bool kScriptGoesOn = true;

/// A rank that ended as if all was well, before the first one failed: the cause where that one lost a peer.
inline constexpr std::string_view kEndedEarly = "rank-ended-early";

/// The tables of rules/.
std::span<const FailureRule> record_rules();
std::span<const FailureRule> slurm_rules();
std::span<const FailureRule> submit_rules();
std::span<const FailureRule> memory_rules();
std::span<const FailureRule> nccl_rules();
std::span<const FailureRule> rendezvous_rules();
std::span<const FailureRule> collective_rules();
std::span<const FailureRule> cuda_rules();
std::span<const FailureRule> python_rules();
std::span<const FailureRule> file_rules();
std::span<const FailureRule> environment_rules();
std::span<const FailureRule> noise_rules();
/// What a rank gave as its reason, where no rule knows it better.
std::span<const FailureRule> own_word_rules();

/// All of them, the more special first: of a line counts the first that matches.
const std::vector<const FailureRule*>& failure_rules();

}  // namespace stoker::explain
