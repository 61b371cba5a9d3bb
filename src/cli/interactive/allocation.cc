#include "cli/interactive/allocation.h"

#include <chrono>

#include "base/json/json.h"
#include "launch/interactive/interactive.h"
#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

// Modules may lie on a file system that is slow to wake.
constexpr std::chrono::minutes kLoadPatience{2};

}  // namespace

Status check_outside(std::string_view command, const JobChoice& choice) {
  const auto inside = slurm::current_allocation(slurm::process_environment());
  if (!inside.ok()) return inside.status();
  if (!*inside || choice.dry_run) return {};
  return invalid("{}: this is an allocation already (SLURM_JOB_ID)", command)
      .cure("stoker run {}", shell_quote(choice.job));
}

Result<Environment> environment_of(const job::Job& job) {
  return launch::interactive_environment(job, current_environment(), Deadline::after(kLoadPatience));
}

int show_command(const std::vector<std::string>& words, Output& out) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quote(word);
  out.line("{}", line);
  out.json(json_text(nlohmann::ordered_json{{"command", words}}));
  return exit_code::kOk;
}

Status without_salloc(const Status& error, const std::string& job_file) {
  if (error.code() != Code::not_found) return error;
  return unavailable("salloc: no such program in PATH (is this a machine with Slurm?)")
      .cure("stoker run {}", shell_quote(job_file));
}

}  // namespace stoker::cli
