#include "launch/next/turn.h"

#include <chrono>

#include "base/file.h"
#include "checkpoint/catalog.h"
#include "checkpoint/foreign/latest.h"
#include "checkpoint/layout.h"
#include "launch/next/after.h"
#include "launch/next/history.h"
#include "launch/next/policy.h"
#include "record/run_events.h"
#include "record/state.h"
#include "slurm/allocation.h"
#include "slurm/queue/job_table.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

// Slurm kills what is still there at the end of its grace time (GraceTime), mostly a few minutes.
constexpr Duration kLongestGrace = 1h;
// Another host's records may be seen so much later.
constexpr Duration kLateRecords = 60s;

// This job's id, "" outside of one.
std::string job_here() {
  const auto here = slurm::current_allocation(slurm::process_environment());
  return here.ok() && *here ? (*here)->job_id : "";
}

// Best effort: a run goes on, or does not, also where its disk is full.
template <class Event>
void record_event(const record::RunFolder& run, const Event& event) {
  const auto last = run.last_attempt();
  if (!last.ok()) return;
  auto events = record::EventWriter::open(last->next_events());
  if (events.ok()) (void)write_event(*events, event);
}

// Best effort: what is not withdrawn finds the reason when it begins.
void give_up(const record::RunFolder& run, const std::string& why, bool is_chain, slurm::Scheduler& scheduler,
             Deadline deadline) {
  record_event(run, record::NoNextAttempt{.reason = why});
  const std::string id = job_here();
  if (is_chain && !id.empty()) (void)scheduler.cancel_waiting(slurm::submitted_job(id), deadline);
}

std::string link_text(const record::RunState& state) {
  return format("link {} of {}", state.link, state.links);
}

}  // namespace

Path newest_by_its_looks(const Request& request, const record::RunFolder& run) {
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

bool stay_if_preempted(const std::string& job, slurm::Scheduler& scheduler, Deadline deadline) {
  const auto preempted = scheduler.is_being_preempted(job, deadline);
  if (!preempted.ok() || !*preempted) return false;
  RealClock().sleep(kLongestGrace);
  return true;
}

Result<Turn> take_turn(Request& request, slurm::Scheduler& scheduler, Deadline deadline) {
  const record::RunFolder& run = *request.resumed;
  const bool is_chain = request.job.chain.is_on();
  const record::RunState state = record::derive_state(run);
  const std::string here = job_here();
  if (state.state == record::State::done && here.empty()) return invalid("run {}: is done already", run.id());
  if (state.state == record::State::done)
    return Turn{false, format("run {}: is done, nothing is left for this job", run.id()), 0};
  if (state.has_no_next) return Turn{false, format("run {}: {}", run.id(), state.no_next_reason), 1};
  if (state.last_started == 0) {
    const Status after = check_predecessors(request.job.after, Deadline::after(kLateRecords));
    if (!after.ok()) {
      give_up(run, std::string(after.message()), is_chain, scheduler, deadline);
      return Turn{false, std::string(after.message()), 1};
    }
  }
  OK_OR_RETURN(from, step_to_resume(request, run));
  request.resume_from = from;
  // The first attempt has no history; after it Slurm begins a job only when the one before it is gone.
  if (state.last_started == 0) return Turn{};
  const bool is_other_s = slurm::submitted_job(state.scheduler_job) != slurm::submitted_job(here);
  if (state.state == record::State::running && (here.empty() || is_other_s))
    return invalid("run {}: is still running", run.id()).cure("stoker logs -f {}", run.id());
  const Verdict verdict = judge_next(request.job, history_of(run, here), mark_of(from.step));
  if (verdict.goes_on) return Turn{};
  give_up(run, verdict.why, is_chain, scheduler, deadline);
  return Turn{false, format("run {}: does not go on: {}", run.id(), verdict.why), 1};
}

Next conclude_turn(const Request& request, const RunResult& result, slurm::Scheduler& scheduler,
                   Deadline deadline) {
  const rank::Ending& ending = result.ending;
  const bool is_chain = request.job.chain.is_on();
  const std::string id = job_here();
  const record::RunState state = record::derive_state(result.folder);
  if (ending.outcome == record::Outcome::done) {
    const bool has_more = is_chain && state.link < state.links && !id.empty();
    if (has_more) (void)scheduler.cancel_waiting(slurm::submitted_job(id), deadline);
    return {};
  }
  if (id.empty() || state.is_cancelled) return {};
  // Slurm is ending the job, and knows why: the next one reads it in the log. A preemption asks the ranks
  // alone to end, so that they seem to fail, or to stop, by themselves.
  const bool is_interrupted = ending.outcome == record::Outcome::stopped && ending.exit_code > 128;
  if (stay_if_preempted(id, scheduler, deadline) || is_interrupted) return {};
  const std::vector<PastAttempt> history = history_of(result.folder);
  // By somebody else: what comes then judges.
  if (!history.empty() && history.back().cause == Cause::requeued) return {};
  const Verdict verdict =
      judge_next(request.job, history, mark_of(newest_by_its_looks(request, result.folder)));
  if (!verdict.goes_on) {
    if (verdict.is_usual && !is_chain) return {};
    give_up(result.folder, verdict.why, is_chain, scheduler, deadline);
    return {.text = format("does not go on: {}", verdict.why), .exit_code = std::nullopt};
  }
  if (is_chain && state.link < state.links)
    return {
        .text = format("{} ends here, the next goes on", link_text(state)), .exit_code = 0, .goes_on = true};
  if (is_chain) {
    const std::string why = format("{} was the last (chain.links)", link_text(state));
    give_up(result.folder, why, false, scheduler, deadline);
    return {.text = why, .exit_code = std::nullopt};
  }
  record_event(result.folder, record::RequeueAsked{.job = id});
  const Status requeued = scheduler.requeue(id, deadline);
  if (requeued.ok())
    return {.text = format("job {} is started again", id), .exit_code = std::nullopt, .goes_on = true};
  give_up(result.folder, format("not started again: {}", requeued.message()), false, scheduler, deadline);
  return {.text = format("not started again: {}", requeued.message()), .exit_code = std::nullopt};
}

}  // namespace stoker::launch
