// What `submit` and `resume` share: putting a request into the queue and saying where it is.
#include "cli/json.h"
#include "cli/running.h"
#include "cli/runs.h"
#include "launch/submit.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

// sbatch tries for a while when the controller is busy.
constexpr std::chrono::seconds kSubmitPatience{60};

std::string counted(std::uint64_t count, std::string_view what) {
  return format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "2 nodes x 4 ranks, 4 GPUs a node, partition gpu, 20 h"
std::string size_text(const job::Job& job) {
  const job::Resources& resources = job.resources;
  std::string text =
      format("{} x {}", counted(resources.nodes, "node"), counted(resources.ranks_per_node, "rank"));
  if (resources.gpus_per_rank > 0)
    text += format(", {} a node",
                   counted(std::uint64_t{resources.gpus_per_rank} * resources.ranks_per_node, "GPU"));
  if (job.slurm.partition) text += ", partition " + printable(*job.slurm.partition);
  if (resources.time) text += ", " + duration_text(*resources.time);
  return text;
}

int show_script(const launch::Request& request, Output& out) {
  // The numbers that are not taken yet stand for what they will be.
  const Path run = request.resumed ? request.resumed->folder() : request.job.record.directory / "RUN";
  const auto last = request.resumed ? request.resumed->last_attempt() : not_found("");
  const int number = last.ok() ? last->number() + 1 : 1;
  const record::Attempt attempt(run / "attempts" / std::to_string(number), number);
  const auto checked = launch::check_submission(request);
  if (!checked.ok()) return out.fail(checked);
  const auto script = launch::batch_script(request, attempt, run.filename());
  if (!script.ok()) return out.fail(script.error());
  out.raw(*script);
  out.json(dump({{"name", request.job.name},
                 {"resumes", request.resumed ? Json(request.resumed->id()) : Json(nullptr)},
                 {"script", *script}}));
  return exit_code::kOk;
}

}  // namespace

int submit_request(launch::Request request, bool dry_run, Output& out) {
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request.stoker = *program;
  if (dry_run) return show_script(request, out);
  slurm::SlurmCommands scheduler(launch::scheduler_environment(request.job, current_environment()));
  const auto submitted = launch::submit(request, scheduler, Deadline::after(kSubmitPatience));
  if (!submitted.ok()) return out.fail(submitted.error());
  const std::string name = name_to_type(submitted->folder);
  out.line("submitted {} ({})", submitted->scheduler_job, size_text(request.job));
  out.line("  run   {}", near(submitted->folder.folder()));
  if (submitted->attempt.number() > 1)
    out.line("  attempt {}, from the last valid checkpoint", submitted->attempt.number());
  out.line("  logs  {}         stoker logs -f {}", near(submitted->attempt.log(0)), name);
  out.line("  next  stoker status {}, stoker wait {}, stoker cancel {}", name, name, name);
  out.json(dump({{"run", submitted->folder.id()},
                 {"folder", std::filesystem::absolute(submitted->folder.folder()).string()},
                 {"attempt", submitted->attempt.number()},
                 {"job", submitted->scheduler_job},
                 {"script", std::filesystem::absolute(submitted->attempt.batch_script()).string()},
                 {"log", std::filesystem::absolute(submitted->attempt.batch_log()).string()}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
