// `stoker submit JOB|SCRIPT`: docs/commands/submit.md
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/environment/needs.h"
#include "cli/remote/host.h"
#include "cli/running.h"
#include "cli/runs.h"
#include "cli/site/sites.h"
#include "launch/script/own_script.h"

namespace stoker::cli {
namespace {

struct SubmitOptions {
  JobChoice choice;
  HostChoice host;
  std::vector<std::string> arguments;
  std::vector<std::string> behind;  // "--"
  std::vector<std::string> sbatch;
  bool check = false;
};

// Whether the word names a batch script: what it holds decides, not how it is called.
bool names_script(const std::string& word) {
  const auto file = File::open_read(word);
  if (!file.ok()) return false;
  std::array<std::byte, 2> start{};
  if (!file->read_at(0, start).ok()) return false;
  return slurm::is_script(std::string_view(reinterpret_cast<const char*>(start.data()), start.size()));
}

Result<launch::PlannedScript> plan_of(const SubmitOptions& o, std::span<const std::string> words) {
  OK_OR_RETURN(program, own_program());
  std::error_code error;
  launch::ScriptRequest request{.script = o.choice.job, .arguments = o.arguments};
  request.arguments.insert(request.arguments.end(), o.behind.begin(), o.behind.end());
  request.options = o.sbatch;
  request.set = o.choice.set;
  request.typed = typed_words("submit", words);
  request.stoker = program;
  request.directory = std::filesystem::current_path(error);
  if (error) return posix_error("current folder", error.value());
  return launch::plan_script(std::move(request));
}

// Asks Slurm whether and when it would start; nothing is queued and nothing stays.
int check_with_slurm(const std::string& text, slurm::SlurmCommands& scheduler, Output& out) {
  const TempDirectory folder;
  const Path script = folder / "job.sbatch";
  if (const Status written = write_file(script, text); !written.ok()) return out.fail(written);
  const auto said = scheduler.test(script, Deadline::after(kSubmitPatience));
  if (!said.ok()) return out.fail(said.error());
  out.line("would be taken: {}", *said);
  out.json(json_text(nlohmann::ordered_json{{"taken", true}, {"says", *said}}));
  return exit_code::kOk;
}

int submit_own_script(const SubmitOptions& o, std::span<const std::string> words, Output& out) {
  const auto plan = plan_of(o, words);
  if (!plan.ok()) return out.fail(plan.error());
  const auto asked = launch::site_request(*plan, slurm::process_environment());
  if (const Status judged = check_script_with_site(plan->job, asked, out); !judged.ok())
    return out.fail(judged);
  if (!o.check || o.choice.dry_run) return submit_script_request(*plan, o.choice.dry_run, out);
  slurm::SlurmCommands scheduler(current_environment(), slurm::Wins::shell);
  const auto text = script_to_show(*plan);
  return text.ok() ? check_with_slurm(*text, scheduler, out) : out.fail(text.error());
}

int submit_job_file(const SubmitOptions& o, std::span<const std::string> words, Output& out) {
  const bool has_arguments = !o.arguments.empty() || !o.behind.empty();
  if (has_arguments || !o.sbatch.empty()) {
    return out.fail(invalid("submit: {} is for batch scripts, and {} is a job file",
                            has_arguments ? "an argument behind it" : "--sbatch", printable(o.choice.job))
                        .cure("stoker submit JOB --set slurm.extra=[--constraint=v100]"));
  }
  auto request = request_of(o.choice, "submit", words);
  if (!request.ok()) return out.fail(request.error());
  if (const Status judged = check_with_site(request->job, out); !judged.ok()) return out.fail(judged);
  if (!o.choice.dry_run) {
    if (const Status missing = check_needs(request->job, out); !missing.ok()) return out.fail(missing);
  }
  if (o.check) {
    const auto text = script_of(*request);
    if (!text.ok()) return out.fail(text.error());
    slurm::SlurmCommands scheduler(launch::scheduler_environment(request->job, current_environment()));
    return check_with_slurm(*text, scheduler, out);
  }
  return submit_request(std::move(*request), o.choice.dry_run, out);
}

}  // namespace

int submit(std::span<const std::string> words, Output& out) {
  SubmitOptions o;
  Arguments arguments(
      "submit",
      "Puts a job, or a batch script as it is, into the queue of a Slurm cluster, with a run folder "
      "around it.");
  arguments.positional("JOB|SCRIPT", &o.choice.job, "the job file, or a batch script (its first line is #!)");
  arguments.positional_list("ARGUMENT", &o.arguments, "for the script; those with a dash behind --");
  arguments.rest("ARGUMENT", &o.behind, "for the script, as they are");
  arguments.option("--set", &o.choice.set, "KEY=VALUE",
                   "lays a value over the job file: --set resources.nodes=4");
  arguments.option("--sbatch", &o.sbatch, "OPTION",
                   "for sbatch, wins over the script's own lines: --sbatch=--time=1:00:00");
  arguments.flag("--check", &o.check, "ask Slurm whether it would take the job, and submit nothing");
  arguments.flag("--dry-run", &o.choice.dry_run, "show the batch script, and submit nothing");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker submit job.yaml --set resources.nodes=2 --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_elsewhere()) return run_elsewhere(o.host, "submit", words, o.choice.job, out);
  return names_script(o.choice.job) ? submit_own_script(o, words, out) : submit_job_file(o, words, out);
}

}  // namespace stoker::cli
