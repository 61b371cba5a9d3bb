#include "launch/next/attempt_decision.h"

#include <chrono>

#include "base/file.h"
#include "checkpoint/foreign/latest.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"
#include "launch/next/policy.h"
#include "launch/state/history.h"
#include "launch/status/predecessors.h"
#include "record/run_events.h"
#include "record/state.h"
#include "slurm/allocation.h"
#include "slurm/queue/job_table.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

// Slurm kills the remaining processes at the end of its grace time (GraceTime), usually a few minutes.
constexpr Duration kLongestGrace = 1h;
// Records from another host may arrive this late.
constexpr Duration kLateRecords = 60s;

// The id of the current job, "" outside a job.
std::string current_job_id() {
  const auto here = slurm::current_allocation(slurm::process_environment());
  return here.ok() && *here ? (*here)->job_id : "";
}

// Best effort: a full disk must not change the decision.
template <class Event>
void record_event(const record::RunFolder& run, const Event& event) {
  const auto last = run.last_attempt();
  if (!last.ok()) return;
  auto events = record::EventWriter::open(last->next_events());
  if (events.ok()) (void)write_event(*events, event);
}

// Best effort: a job that is not cancelled finds the reason when it starts.
void abandon_run(const record::RunFolder& run, const std::string& why, bool is_chain,
                 slurm::Scheduler& scheduler, Deadline deadline) {
  record_event(run, record::NoNextAttempt{.reason = why});
  const std::string id = current_job_id();
  if (is_chain && !id.empty()) (void)scheduler.cancel_pending(slurm::base_job_id(id), deadline);
}

std::string link_text(const record::RunState& state) {
  return format("link {} of {}", state.link, state.links);
}

}  // namespace

Path newest_checkpoint_shallow(const Request& request, const record::RunFolder& run) {
  const Path folder =
      checkpoint::directory_of_run(request.job.checkpoint.directory, std::filesystem::absolute(run.folder()));
  const auto steps = checkpoint::list_steps(folder, checkpoint::Depth::structure, RealClock().wall());
  for (std::size_t i = 0; steps.ok() && i < steps->size(); ++i) {
    if ((*steps)[i].state == checkpoint::StepState::valid) return (*steps)[i].folder;
  }
  RealClock clock;
  NoProgress progress;
  const auto latest =
      checkpoint::find_latest(folder, {.match = "", .settle = Duration::zero()}, clock, progress);
  return latest.ok() && latest->path ? *latest->path : Path();
}

bool block_while_preempted(const std::string& job, slurm::Scheduler& scheduler, Deadline deadline) {
  const auto preempted = scheduler.is_being_preempted(job, deadline);
  if (!preempted.ok() || !*preempted) return false;
  RealClock().sleep(kLongestGrace);
  return true;
}

Result<StartDecision> decide_start(Request& request, slurm::Scheduler& scheduler, Deadline deadline) {
  const record::RunFolder& run = *request.resumed;
  const bool is_chain = request.job.chain.is_enabled();
  const record::RunState state = record::derive_state(run);
  const std::string here = current_job_id();
  if (state.state == record::State::done && here.empty()) return invalid("run {}: is done already", run.id());
  if (state.state == record::State::done)
    return StartDecision{false, format("run {}: is done, nothing is left for this job", run.id()), 0};
  if (state.has_no_next) return StartDecision{false, format("run {}: {}", run.id(), state.no_next_reason), 1};
  if (state.last_started == 0) {
    const Status after = check_predecessors(request.job.after, Deadline::after(kLateRecords));
    if (!after.ok()) {
      abandon_run(run, std::string(after.message()), is_chain, scheduler, deadline);
      return StartDecision{false, std::string(after.message()), 1};
    }
  }
  STOKER_ASSIGN_OR_RETURN(from, find_resume_point(request, run));
  request.resume_from = from;
  // The first attempt has no history. Later, Slurm starts a job only after the previous one is gone.
  if (state.last_started == 0) return StartDecision{};
  const bool is_other_s = slurm::base_job_id(state.scheduler_job) != slurm::base_job_id(here);
  if (state.state == record::State::running && (here.empty() || is_other_s))
    return invalid("run {}: is still running", run.id()).cure("stoker logs -f {}", run.id());
  const Verdict verdict = judge_next(request.job, history_of(run, here), checkpoint_stamp(from.step));
  if (verdict.will_continue) return StartDecision{};
  abandon_run(run, verdict.why, is_chain, scheduler, deadline);
  return StartDecision{false, format("run {}: does not continue: {}", run.id(), verdict.why), 1};
}

NextAction decide_next(const Request& request, const RunResult& result, slurm::Scheduler& scheduler,
                       Deadline deadline) {
  const rank::Ending& ending = result.ending;
  if (ending.is_folder_lost) return {};  // the next attempt would start from this folder
  const bool is_chain = request.job.chain.is_enabled();
  const std::string id = current_job_id();
  const record::RunState state = record::derive_state(result.folder);
  if (ending.outcome == record::Outcome::done) {
    const bool has_more = is_chain && state.link < state.links && !id.empty();
    if (has_more) (void)scheduler.cancel_pending(slurm::base_job_id(id), deadline);
    return {};
  }
  if (id.empty() || state.is_cancelled) return {};
  // Slurm is ending the job and logs the reason; the next job reads it. A preemption signals only the ranks,
  // so they seem to fail or stop by themselves.
  const bool is_interrupted = ending.outcome == record::Outcome::stopped && ending.exit_code > 128;
  if (block_while_preempted(id, scheduler, deadline) || is_interrupted) return {};
  const std::vector<PastAttempt> history = history_of(result.folder);
  // Requeued by somebody else: the next job decides.
  if (!history.empty() && history.back().cause == Cause::requeued) return {};
  const Verdict verdict =
      judge_next(request.job, history, checkpoint_stamp(newest_checkpoint_shallow(request, result.folder)));
  if (!verdict.will_continue) {
    if (verdict.is_restart_disabled && !is_chain) return {};
    abandon_run(result.folder, verdict.why, is_chain, scheduler, deadline);
    return {.text = format("does not continue: {}", verdict.why), .exit_code = std::nullopt};
  }
  if (is_chain && state.link < state.links)
    return {.text = format("{} ends here, the next one continues", link_text(state)),
            .exit_code = 0,
            .will_continue = true};
  if (is_chain) {
    const std::string why = format("{} was the last (chain.links)", link_text(state));
    abandon_run(result.folder, why, false, scheduler, deadline);
    return {.text = why, .exit_code = std::nullopt};
  }
  record_event(result.folder, record::RequeueRequested{.job = id});
  const Status requeued = scheduler.requeue(id, deadline);
  if (requeued.ok())
    return {.text = format("job {} is requeued", id), .exit_code = std::nullopt, .will_continue = true};
  abandon_run(result.folder, format("not requeued: {}", requeued.message()), false, scheduler, deadline);
  return {.text = format("not requeued: {}", requeued.message()), .exit_code = std::nullopt};
}

}  // namespace stoker::launch
