#include "cli/interactive/allocation.h"

#include <chrono>

#include "base/json/json.h"
#include "launch/interactive/interactive.h"
#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

// Modules may be on a slow network file system.
constexpr std::chrono::minutes kLoadTimeout{2};

}  // namespace

Status check_not_in_allocation(std::string_view command, const JobChoice& choice) {
  const auto inside = slurm::current_allocation(slurm::process_environment());
  if (!inside.ok()) return inside.status();
  if (!*inside || choice.dry_run) return {};
  return invalid("{}: already in an allocation (SLURM_JOB_ID)", command)
      .cure("stoker run {}", shell_quote(choice.job));
}

Result<Environment> load_interactive_environment(const job::Job& job) {
  return launch::interactive_environment(job, current_environment(), Deadline::after(kLoadTimeout));
}

int show_command(const std::vector<std::string>& words, Output& out) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quote(word);
  out.line("{}", line);
  out.json(json_text(nlohmann::ordered_json{{"command", words}}));
  return exit_code::kOk;
}

Status explain_missing_salloc(const Status& error, const std::string& job_file) {
  if (error.code() != Code::not_found) return error;
  return unavailable("salloc: program not found in PATH (is this a machine with Slurm?)")
      .cure("stoker run {}", shell_quote(job_file));
}

}  // namespace stoker::cli
