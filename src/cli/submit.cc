// `stoker submit JOB|SCRIPT`: docs/commands/submit.md
#include "launch/start/submit.h"

#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/check/inspect.h"
#include "cli/remote/host.h"
#include "cli/run_request.h"
#include "cli/runs.h"
#include "cli/site/sites.h"
#include "cli/submit_request.h"
#include "launch/script/user_script.h"

namespace stoker::cli {
namespace {

struct SubmitOptions {
  JobChoice choice;
  HostChoice host;
  std::vector<std::string> arguments;
  std::vector<std::string> passthrough;  // "--"
  std::vector<std::string> sbatch;
  bool check = false;
  bool force = false;
};

// Detects a batch script by its content, not by its name.
bool is_script_file(const std::string& word) {
  const auto file = File::open_read(word);
  if (!file.ok()) return false;
  std::array<std::byte, 2> start{};
  if (!file->read_at(0, start).ok()) return false;
  return slurm::is_script(std::string_view(reinterpret_cast<const char*>(start.data()), start.size()));
}

Result<launch::PlannedScript> plan_user_script(const SubmitOptions& o, std::span<const std::string> words) {
  STOKER_ASSIGN_OR_RETURN(program, own_program());
  std::error_code error;
  launch::ScriptRequest request{.script = o.choice.job, .arguments = o.arguments};
  request.arguments.insert(request.arguments.end(), o.passthrough.begin(), o.passthrough.end());
  request.options = o.sbatch;
  request.set = o.choice.set;
  request.typed = typed_command("submit", words);
  request.stoker = program;
  request.directory = std::filesystem::current_path(error);
  if (error) return posix_error("current folder", error.value());
  return launch::plan_script(std::move(request));
}

// Asks Slurm whether and when the job would start, without submitting it.
int check_with_slurm(const std::string& text, slurm::SlurmCommands& scheduler, Output& out) {
  const TempDirectory folder;
  const Path script = folder / "job.sbatch";
  if (const Status written = write_file(script, text); !written.ok()) return out.fail(written);
  const auto response = scheduler.test(script, Deadline::after(kSubmitTimeout));
  if (!response.ok()) return out.fail(response.error());
  out.line("would be accepted: {}", *response);
  out.json(json_text(nlohmann::ordered_json{{"accepted", true}, {"message", *response}}));
  return exit_code::kOk;
}

int submit_user_script(const SubmitOptions& o, std::span<const std::string> words, Output& out) {
  const auto plan = plan_user_script(o, words);
  if (!plan.ok()) return out.fail(plan.error());
  const auto asked = launch::site_request(*plan, slurm::process_environment());
  if (const Status judged = check_script_site_limits(plan->job, asked, out); !judged.ok())
    return out.fail(judged);
  if (!o.choice.dry_run) {
    const Status lost = refuse_lost_script(o.choice.job, o.sbatch, {o.force}, out);
    if (!lost.ok()) return out.fail(lost);
  }
  if (!o.check || o.choice.dry_run) return submit_script_request(*plan, o.choice.dry_run, out);
  slurm::SlurmCommands scheduler(current_environment(), slurm::OptionPrecedence::shell);
  const auto text = preview_user_script(*plan);
  return text.ok() ? check_with_slurm(*text, scheduler, out) : out.fail(text.error());
}

int submit_job_file(const SubmitOptions& o, std::span<const std::string> words, Output& out) {
  const bool has_arguments = !o.arguments.empty() || !o.passthrough.empty();
  if (has_arguments || !o.sbatch.empty()) {
    return out.fail(invalid("submit: {} needs a batch script, but {} is a job file",
                            has_arguments ? "a script argument" : "--sbatch", printable(o.choice.job))
                        .cure("stoker submit JOB --set slurm.extra=[--constraint=v100]"));
  }
  auto request = request_of(o.choice, "submit", words);
  if (!request.ok()) return out.fail(request.error());
  auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request->stoker = *std::move(program);
  if (const Status checked = launch::check_submission(*request); !checked.ok()) return out.fail(checked);
  if (const Status judged = check_site_limits(request->job, out); !judged.ok()) return out.fail(judged);
  if (!o.choice.dry_run) {
    if (const Status lost = refuse_lost_job(request->job, {o.force}, out); !lost.ok()) return out.fail(lost);
  }
  if (o.check) {
    const auto text = preview_batch_script(*request);
    if (!text.ok()) return out.fail(text.error());
    slurm::SlurmCommands scheduler(launch::scheduler_environment(request->job, current_environment()));
    return check_with_slurm(*text, scheduler, out);
  }
  return submit_request(std::move(*request), o.choice.dry_run, out);
}

}  // namespace

int submit(std::span<const std::string> words, Output& out) {
  SubmitOptions o;
  Arguments arguments("submit", "Submit a job or an unchanged batch script to Slurm, with a run folder.");
  arguments.positional("JOB|SCRIPT", &o.choice.job, "Job file, or batch script (first line #!)");
  arguments.positional_list("ARGUMENT", &o.arguments,
                            "Arguments of the script; after -- if they begin with a dash");
  arguments.rest("ARGUMENT", &o.passthrough, "Arguments of the script, verbatim");
  arguments.option("--set", &o.choice.set, "KEY=VALUE", "Override a job file value: --set resources.nodes=4");
  arguments.option("--sbatch", &o.sbatch, "OPTION",
                   "Pass an option to sbatch; it overrides the script's: --sbatch=--time=1:00:00");
  arguments.flag("--check", &o.check, "Ask Slurm whether it would accept the job, submit nothing");
  arguments.flag("--dry-run", &o.choice.dry_run, "Show the batch script, submit nothing");
  arguments.flag("--force", &o.force, "Submit a job that stoker check expects to be lost");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker submit job.yaml --set resources.nodes=2 --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_remote()) return run_on_host(o.host, "submit", words, o.choice.job, out);
  return is_script_file(o.choice.job) ? submit_user_script(o, words, out) : submit_job_file(o, words, out);
}

}  // namespace stoker::cli
