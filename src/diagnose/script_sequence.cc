#include "diagnose/script_sequence.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <re2/re2.h>

#include "diagnose/causal_link.h"

namespace stoker::diagnose {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Commands that fetch files, or go to their folder: without them a script lacks files.
constexpr std::array<std::string_view, 8> kFetchers = {
    "cd-failed",   "git-remote-failed", "curl-failed",       "curl-http-error",
    "wget-failed", "archive-cut-off",   "directory-refused", "port-refused"};
// Files, folders and programs that a later command lacks.
constexpr std::array<std::string_view, 14> kLackedFiles = {
    "python-file-missing",  "tool-file-missing", "file-of-script-missing", "data-file-missing",
    "file-not-found",       "entry-not-found",   "program-input-missing",  "command-not-found",
    "sh-command-not-found", "make-no-makefile",  "git-no-repository",      "jar-missing",
    "interpreter-missing",  "archive-cut-off"};
// What a program lacks without its modules or its environment.
constexpr std::array<std::string_view, 9> kLackedModules = {
    "module-missing",     "library-missing",   "glibc-too-old",        "no-gpu",
    "symbol-missing",     "command-not-found", "sh-command-not-found", "module-attribute-gone",
    "mpirun-cannot-start"};
constexpr std::array<std::string_view, 4> kPreparations = {"module-not-loaded", "conda-not-initialised",
                                                           "module-command-missing", "sh-is-not-bash"};
constexpr std::array<std::string_view, 7> kLoaders = {"conda", "mamba", "micromamba", "spack",
                                                      "uv",    "ml",    "module"};

// Whether a tool that only describes the node was not found, and the script then lacked something else; or
// one that loads programs, and the script then lacked a file.
bool is_missing_description(const Suspect& suspect, const std::vector<Suspect>& end) {
  static constexpr std::array<std::string_view, 4> kTools = {"nvidia-smi", "nvcc", "lscpu", "numactl"};
  const auto is_not_found = [](const Hit& hit) {
    return hit.rule->name == "command-not-found" || hit.rule->name == "sh-command-not-found" ||
           hit.rule->name == "module-command-missing";
  };
  const std::string& tool = suspect.hit->groups[0];
  const bool describes = is_one_of(tool, kTools);
  if (!is_not_found(*suspect.hit) || (!describes && !is_one_of(tool, kLoaders))) return false;
  return std::any_of(end.begin(), end.end(), [&](const Suspect& each) {
    if (each.log != suspect.log || each.hit->line <= suspect.hit->line) return false;
    if (each.hit->rule->name == "file-of-script-missing") return true;
    return describes && is_not_found(*each.hit) && !is_one_of(each.hit->groups[0], kTools);
  });
}

// Whether the text names a path at the root of the file system: "$FOLDER/run.log" with an empty variable.
bool has_path_at_root(std::string_view text) {
  static const RE2 kRoot(R"((?:^|[\s'"`=:])/[\w.-])");
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kRoot);
}

bool is_archive(std::string_view name) {
  static const RE2 kArchive(R"((?i)\.(?:tar|tgz|tbz2?|txz|zip|gz|bz2|xz|zst|7z)$)");
  return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), kArchive);
}

// Whether a later failure may follow from a command of the shell that was to prepare it: a module that was
// not loaded, a file that was not copied.
bool may_lead_to(const Hit& shell, const Hit& later) {
  const bool prepares = is_one_of(shell.rule->name, kPreparations) || is_one_of(shell.groups[0], kLoaders) ||
                        shell.groups[0].ends_with("activate");
  const bool fetches = is_one_of(shell.rule->name, kFetchers) ||
                       (shell.rule->name == "tool-file-missing" && is_archive(shell.groups[0]));
  if (prepares && is_one_of(later.rule->name, kLackedModules)) return true;
  if (fetches && is_one_of(later.rule->name, kLackedFiles)) return true;
  if (shell.rule->name == "operand-missing" && has_path_at_root(later.text)) return true;
  return share_a_subject(shell.groups[0], later.text);
}

}  // namespace

std::uint64_t position_of(const Hit& hit) { return hit.line + hit.overwrites; }
std::uint64_t end_of(const LogScan& log) { return log.result.lines + log.result.overwrites + 1; }

std::uint64_t quiet_lines(const Suspect& cause, std::uint64_t until) {
  std::uint64_t quiet = 0;
  std::uint64_t last = position_of(*cause.hit);
  const auto pass = [&](std::uint64_t begin, std::uint64_t end) {
    if (end <= last || end > until) return;
    quiet += begin > last + 1 ? begin - last - 1 : 0;
    last = end;
  };
  for (const Hit& hit : cause.log->result.hits) pass(hit.begin + hit.overwrites, position_of(hit));
  pass(until, until);
  return quiet;
}

bool script_continued_after(const Suspect& suspect, const std::vector<Suspect>& end) {
  if (!suspect.hit->rule->script_continues || suspect.log->is_record) return false;
  if (is_missing_description(suspect, end)) return true;
  for (const Suspect& each : end) {
    const FailureClass failure_class = each.hit->rule->failure_class;
    const bool is_failure = failure_class != FailureClass::effect && failure_class != FailureClass::slow &&
                            !each.hit->rule->script_continues && each.log == suspect.log &&
                            each.hit->line > suspect.hit->line;
    if (is_failure && !may_lead_to(*suspect.hit, *each.hit)) return true;
    if (is_failure) return quiet_lines(suspect, each.hit->begin + each.hit->overwrites) > kShortPause;
  }
  return quiet_lines(suspect, end_of(*suspect.log)) > kFinalLines;
}

}  // namespace stoker::diagnose
