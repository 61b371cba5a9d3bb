#include "cli/submit_request.h"

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/run_request.h"
#include "cli/runs.h"
#include "launch/array/submit_array.h"
#include "launch/next/attempt_decision.h"
#include "launch/start/submit.h"
#include "launch/state/task_record.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

// "2 nodes x 4 ranks, 4 GPUs a node, partition gpu, 20 h"
std::string size_text(const job::Job& job) {
  const job::Resources& resources = job.resources;
  std::string text =
      format("{} x {}", counted(resources.nodes, "node"), counted(resources.ranks_per_node, "rank"));
  if (resources.world_size() != resources.nodes * resources.ranks_per_node)
    text = format("{} on {}", counted(resources.world_size(), "rank"), counted(resources.nodes, "node"));
  if (job.launcher == job::Launcher::torchrun) text += " by torchrun";
  if (resources.gpus_per_node() > 0) text += format(", {} a node", counted(resources.gpus_per_node(), "GPU"));
  if (job.slurm.partition) text += ", partition " + printable(*job.slurm.partition);
  if (job.chain.is_enabled()) return text + format(", {} a link", duration_text(*job.chain.time_per_link));
  if (resources.time) text += ", " + duration_text(*resources.time);
  return text;
}

// The folder of the next attempt, with placeholders for names not known yet.
struct RunLocation {
  std::string run;
  record::Attempt attempt;
};
RunLocation next_run_location(const launch::Request& request) {
  const Path run = request.resumed ? request.resumed->folder() : request.job.record.directory / "RUN";
  const auto last = request.resumed ? request.resumed->last_attempt() : not_found("");
  const int number = last.ok() ? last->number() + 1 : 1;
  return {run.filename(), record::Attempt(run / "attempts" / std::to_string(number), number)};
}

int show_script(const launch::Request& request, Output& out) {
  const auto script = preview_batch_script(request);
  if (!script.ok()) return out.fail(script.error());
  out.raw(*script);
  out.json(json_text(
      nlohmann::ordered_json{{"name", request.job.name},
                             {"resumes", request.resumed ? Json(request.resumed->id()) : Json(nullptr)},
                             {"script", *script}}));
  return exit_code::kOk;
}

}  // namespace

Result<std::string> preview_batch_script(launch::Request request) {
  STOKER_ASSIGN_OR_RETURN(program, own_program());
  request.stoker = program;
  const RunLocation location = next_run_location(request);
  STOKER_RETURN_IF_ERROR(launch::check_submission(request));
  // No query to Slurm: the records of the predecessors suffice.
  STOKER_ASSIGN_OR_RETURN(predecessors,
                          launch::find_predecessors(request.job, launch::job_file_directory(request), nullptr,
                                                    Deadline::never()));
  return launch::batch_script(request, location.attempt, location.run,
                              launch::chain_order(launch::links_of(request), predecessors));
}

int submit_request(launch::Request request, bool dry_run, Output& out) {
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request.stoker = *program;
  if (request.job.array.is_enabled()) {
    const auto array = launch::make_array(request);
    if (!array.ok()) return out.fail(array.error());
    return submit_array_request(std::move(request), *array, dry_run, out);
  }
  if (dry_run) return show_script(request, out);
  slurm::SlurmCommands scheduler(launch::scheduler_environment(request.job, current_environment()));
  const auto submitted = launch::submit(request, scheduler, Deadline::after(kSubmitTimeout));
  if (!submitted.ok()) return out.fail(submitted.error());
  const std::string name = run_reference(submitted->folder);
  out.line("submitted {} ({})", submitted->scheduler_job, size_text(request.job));
  out.line("  run   {}", display_path(submitted->folder.folder()));
  const launch::Links& links = submitted->links;
  if (links.count > 0)
    out.line("  chain {} at most, until done ({})", counted(links.count, "link"), links.why);
  for (const launch::Predecessor& each : submitted->predecessors) {
    if (!each.dependency.empty()) out.line("  after {}", each.run.id());
  }
  if (submitted->attempt.number() > 1) {
    const Path from = launch::newest_checkpoint_shallow(request, submitted->folder);
    out.line("  attempt {}, from {}", submitted->attempt.number(),
             from.empty() ? "the start: there is no checkpoint yet" : display_path(from));
  }
  for (const std::string& note : submitted->notes) out.note("{}", note);
  out.line("  logs  {}         stoker logs -f {}", display_path(submitted->attempt.log(0)), name);
  out.line("  next  stoker status {}, stoker wait {}, stoker cancel {}", name, name, name);
  out.json(json_text(nlohmann::ordered_json{
      {"run", submitted->folder.id()},
      {"folder", std::filesystem::absolute(submitted->folder.folder()).string()},
      {"attempt", submitted->attempt.number()},
      {"job", submitted->scheduler_job},
      {"links", links.count > 0 ? Json(links.count) : Json(nullptr)},
      {"script", std::filesystem::absolute(submitted->attempt.batch_script()).string()},
      {"log", std::filesystem::absolute(submitted->attempt.batch_log()).string()}}));
  return exit_code::kOk;
}

namespace {

int show_array_script(const launch::Request& request, const launch::TaskArrayFile& array, Output& out) {
  const auto checked = launch::check_submission(request);
  if (!checked.ok()) return out.fail(checked);
  const RunLocation location = next_run_location(request);
  const auto script = launch::array_script(request, location.attempt, location.run, array);
  if (!script.ok()) return out.fail(script.error());
  out.raw(*script);
  out.json(json_text(
      nlohmann::ordered_json{{"name", request.job.name},
                             {"resumes", request.resumed ? Json(request.resumed->id()) : Json(nullptr)},
                             {"tasks", array.chosen.size()},
                             {"bundle", array.bundle},
                             {"script", *script}}));
  return exit_code::kOk;
}

// "300 tasks, 20 at once, 1 node x 1 rank, 10m"
std::string array_text(const job::Job& job, const launch::TaskArrayFile& array) {
  std::string text = counted(array.chosen.size(), "task");
  if (array.chosen.size() < array.tasks.size()) text += format(" of {}", array.tasks.size());
  if (job.array.at_once) text += format(", {} at once", *job.array.at_once);
  return text + ", " + size_text(job);
}

}  // namespace

int submit_array_request(launch::Request request, const launch::TaskArrayFile& array, bool dry_run,
                         Output& out) {
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request.stoker = *program;
  if (dry_run) return show_array_script(request, array, out);
  slurm::SlurmCommands scheduler(launch::scheduler_environment(request.job, current_environment()));
  const auto submitted = launch::submit_array(request, array, scheduler, Deadline::after(kSubmitTimeout));
  if (!submitted.ok()) return out.fail(submitted.error());
  const std::string name = run_reference(submitted->folder);
  out.line("submitted {} ({})", join(submitted->jobs, ","), array_text(request.job, array));
  out.line("  run   {}", display_path(submitted->folder.folder()));
  if (array.bundle > 1) {
    const std::string why = launch::choose_bundle(request.job, array.chosen.size()).why;
    out.line("  jobs  {} of {} tasks, one after the other ({})", array.jobs(), array.bundle,
             why.empty() ? "array.bundle" : why + ": array.bundle");
  }
  const std::size_t pieces = submitted->jobs.size() / std::max(1U, array.links);
  if (pieces > 1) out.line("  split {} arrays, because of this cluster's MaxArraySize", pieces);
  if (array.links > 0)
    out.line("  chain {} of each task at most, until done ({})", counted(array.links, "link"),
             launch::links_of(request).why);
  for (const launch::Predecessor& each : submitted->predecessors) {
    if (!each.dependency.empty()) out.line("  after {}", each.run.id());
  }
  out.line("  logs  {}", display_path(launch::task_log(submitted->folder, array.chosen.front())));
  out.line("  next  stoker status {}, stoker wait {}, stoker cancel {}", name, name, name);
  out.json(json_text(nlohmann::ordered_json{
      {"run", submitted->folder.id()},
      {"folder", std::filesystem::absolute(submitted->folder.folder()).string()},
      {"attempt", submitted->attempt.number()},
      {"job", join(submitted->jobs, ",")},
      {"jobs", submitted->jobs},
      {"tasks", array.chosen.size()},
      {"bundle", array.bundle},
      {"links", array.links > 0 ? Json(array.links) : Json(nullptr)},
      {"script", std::filesystem::absolute(submitted->attempt.batch_script()).string()},
      {"log", std::filesystem::absolute(submitted->attempt.batch_log()).string()}}));
  return exit_code::kOk;
}

Result<std::string> preview_user_script(const launch::PlannedScript& plan) {
  const Path run = plan.resumed ? plan.resumed->folder() : plan.job.record.directory / "RUN";
  const auto last = plan.resumed ? plan.resumed->last_attempt() : not_found("");
  const int number = last.ok() ? last->number() + 1 : 1;
  const record::Attempt attempt(run / "attempts" / std::to_string(number), number);
  return launch::wrapped_script(plan, attempt, run.filename());
}

namespace {

int show_user_script(const launch::PlannedScript& plan, Output& out) {
  const auto text = preview_user_script(plan);
  if (!text.ok()) return out.fail(text.error());
  out.raw(*text);
  nlohmann::ordered_json folders = nlohmann::ordered_json::array();
  for (const Path& folder : plan.log_folders) {
    out.note("would create {}: without it Slurm would kill the job silently", display_path(folder));
    folders.push_back(folder.string());
  }
  out.json(json_text(nlohmann::ordered_json{
      {"name", plan.job.name}, {"tasks", plan.tasks}, {"makes", folders}, {"script", *text}}));
  return exit_code::kOk;
}

}  // namespace

int submit_script_request(const launch::PlannedScript& plan, bool dry_run, Output& out) {
  if (dry_run) return show_user_script(plan, out);
  slurm::SlurmCommands scheduler(current_environment(), slurm::OptionPrecedence::shell);
  const auto submitted = launch::submit_script(plan, scheduler, Deadline::after(kSubmitTimeout));
  if (!submitted.ok()) return out.fail(submitted.error());
  const std::string name = run_reference(submitted->folder);
  out.line("submitted {} ({}{})", submitted->scheduler_job, printable(plan.request.script.string()),
           plan.tasks > 1 ? format(", {} tasks", plan.tasks) : "");
  out.line("  run   {}", display_path(submitted->folder.folder()));
  if (submitted->attempt.number() > 1) out.line("  attempt {}", submitted->attempt.number());
  for (const Path& folder : plan.log_folders)
    out.line("  made  {}: without it Slurm would kill the job silently", display_path(folder));
  out.line("  next  stoker status {0}, stoker logs -f {0}, stoker wait {0}, stoker cancel {0}", name);
  out.json(json_text(nlohmann::ordered_json{
      {"run", submitted->folder.id()},
      {"folder", std::filesystem::absolute(submitted->folder.folder()).string()},
      {"attempt", submitted->attempt.number()},
      {"job", submitted->scheduler_job},
      {"tasks", plan.tasks},
      {"script", std::filesystem::absolute(submitted->attempt.batch_script()).string()}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
