#include "launch/status/job_life.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "slurm/queue/batch_log.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;
using slurm::JobInfo;
using slurm::JobState;

constexpr Duration kFirstPause = 1s;
constexpr Duration kTick = 250ms;
constexpr std::uint64_t kEndOfLog = 64 * 1024;

Life life_of(JobState state) {
  if (state == JobState::pending) return Life::queued;
  if (state == JobState::completed) return Life::done;
  return ending_of(state).value_or(Life::running);
}

std::optional<int> shell_code(std::optional<int> code, std::optional<int> signal) {
  if (signal && *signal != 0) return 128 + *signal;
  return code;
}

std::string exit_text(std::optional<int> code, std::optional<int> signal) {
  if (signal == slurm::kLaunchFailure) return "Slurm could not start it: exit code 0:53";
  if (!code) return "";
  return to_text(Exit{*code, signal.value_or(0)});
}

// The failed step and its exit status; "" if unknown.
std::string step_note(const JobInfo& job) {
  if (job.failed) {
    const std::string how = exit_text(job.failed->exit_code, job.failed->exit_signal);
    const bool is_plain = job.failed->state == JobState::failed && !how.empty();
    return format("step {}: {}", printable(job.failed->id),
                  is_plain ? how : std::string(to_text(job.failed->state)));
  }
  if (job.worst_step_code.value_or(0) != 0)
    return format("a step ended with exit code {}", *job.worst_step_code);
  return "";
}

std::string ending_note(const JobInfo& job, Life life) {
  const std::size_t by = job.state_text.find(" by ");
  const std::string step = step_note(job);
  switch (life) {
    case Life::cancelled:
      return by == std::string::npos ? "" : "by user " + printable(job.state_text.substr(by + 4));
    case Life::done:
      return step.empty() ? "" : "its script exited with 0, but " + step;
    case Life::failed: {
      const std::string own = exit_text(job.exit_code, job.exit_signal);
      if (own.empty() || step.empty()) return own.empty() ? step : own;
      return own + ", " + step;
    }
    case Life::timeout:
      return "reached its time limit";
    case Life::out_of_memory:
      return step;
    default:
      return job.state == JobState::unknown ? "Slurm state " + printable(job.state_text) : "";
  }
}

std::string read_tail(const Path& path) {
  const auto log = File::open_regular(path);
  if (!log.ok()) return "";
  const auto size = log->size();
  if (!size.ok()) return "";
  std::string end(std::min(*size, kEndOfLog), '\0');
  return log->read_at(*size - end.size(), std::as_writable_bytes(std::span(end))).ok() ? end : "";
}

// Refines the state from the log: without cgroups, no state is OUT_OF_MEMORY, and a script that continues
// after a failure is COMPLETED.
void refine_from_log(JobLife& job) {
  const bool may_lack_memory = job.life == Life::failed || job.life == Life::cancelled;
  if (job.facts.log.empty() || !(may_lack_memory || job.life == Life::done)) return;
  if (job.life == Life::done) {
    job.doubts = observe::find_suspect_lines(job.facts.log);
    return;
  }
  const auto ending = slurm::last_termination(read_tail(job.facts.log), job.facts.id);
  if (!ending || ending->state != JobState::out_of_memory) return;
  job.life = Life::out_of_memory;
  job.note = ending->figures.empty() ? "" : "took " + ending->figures;
}

// Ended states from best to worst.
int weight(Life life) {
  constexpr std::array kOrder = {Life::done,    Life::stopped, Life::cancelled,   Life::preempted,
                                 Life::timeout, Life::failed,  Life::node_failed, Life::out_of_memory};
  const auto found = std::find(kOrder.begin(), kOrder.end(), life);
  return static_cast<int>(found - kOrder.begin());
}

const JobLife* worst_of(const std::vector<JobLife>& jobs) {
  const auto worst = std::max_element(jobs.begin(), jobs.end(), [](const JobLife& a, const JobLife& b) {
    return weight(a.life) < weight(b.life);
  });
  return worst == jobs.end() ? nullptr : &*worst;
}

bool are_all_over(const std::vector<JobLife>& jobs) {
  return std::all_of(jobs.begin(), jobs.end(), [](const JobLife& job) { return is_over(job.life); });
}

}  // namespace

JobLife judge_job(const JobInfo& facts, double now) {
  JobLife job{.facts = facts, .life = life_of(facts.state), .note = "", .exit_code = {}, .doubts = {}};
  job.exit_code = is_over(job.life) ? shell_code(facts.exit_code, facts.exit_signal) : std::nullopt;
  // A step exceeded the limit of its cgroup; the script itself may have failed later.
  const bool lacked_memory = facts.failed && facts.failed->state == JobState::out_of_memory;
  if (job.life == Life::failed && lacked_memory) job.life = Life::out_of_memory;
  job.note = job.life == Life::queued ? waiting_note(facts, now) : ending_note(facts, job.life);
  if (facts.state == JobState::suspended || facts.state == JobState::completing)
    job.note = to_text(facts.state);
  const int restarts = facts.restarts.value_or(0);
  if (restarts > 0)
    job.note += format("{}requeued {} by Slurm", job.note.empty() ? "" : ", ",
                       restarts == 1 ? "once" : format("{} times", restarts));
  return job;
}

Result<std::vector<JobLife>> query_job_lives(std::string_view id, slurm::Scheduler& scheduler,
                                             Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(list, scheduler.describe(id, deadline));
  const double now = unix_seconds(RealClock().wall());
  std::vector<JobLife> jobs;
  jobs.reserve(list.jobs.size());
  for (const JobInfo& facts : list.jobs) jobs.push_back(judge_job(facts, now));
  if (jobs.size() == 1) refine_from_log(jobs.front());
  return jobs;
}

std::string count_lives(const std::vector<JobLife>& jobs) {
  std::vector<std::pair<Life, std::uint64_t>> counts;
  for (const JobLife& job : jobs) {
    const auto found =
        std::find_if(counts.begin(), counts.end(), [&](const auto& each) { return each.first == job.life; });
    if (found == counts.end()) {
      counts.emplace_back(job.life, 1);
    } else {
      ++found->second;
    }
  }
  std::sort(counts.begin(), counts.end());
  std::vector<std::string> parts;
  for (const auto& [life, count] : counts) parts.push_back(format("{} {}", grouped(count), to_text(life)));
  return join(parts, ", ");
}

Life combined_life(const std::vector<JobLife>& jobs) {
  bool has_queued = false;
  for (const JobLife& job : jobs) {
    if (job.life == Life::running) return Life::running;
    has_queued = has_queued || !is_over(job.life);
  }
  if (has_queued) return Life::queued;
  const JobLife* worst = worst_of(jobs);
  return worst == nullptr ? Life::unknown : worst->life;
}

Result<std::vector<JobLife>> wait_for_job(std::string_view id, slurm::Scheduler& scheduler,
                                          const WaitOptions& options,
                                          const std::function<void(const std::vector<JobLife>&)>& on_change) {
  RealClock clock;
  Duration pause = kFirstPause;
  MonoTime next = clock.mono();
  std::string reported;
  std::optional<std::string> last;
  for (;;) {
    if (clock.mono() >= next) {
      const Duration left = options.deadline.left();
      auto jobs = query_job_lives(id, scheduler, Deadline::after(std::min(kAnswerLimit, left)));
      if (!jobs.ok() && jobs.error().code() == Code::not_found) return jobs;
      next = clock.mono() + pause;
      pause = std::min(kLongestPollInterval, pause + pause / 2);
      if (jobs.ok()) {
        const std::string now = count_lives(*jobs) + (jobs->size() == 1 ? jobs->front().note : "");
        if (now != reported && on_change) on_change(*jobs);
        reported = now;
        if (are_all_over(*jobs)) return jobs;
      }
      // A query that was cut short by the deadline is less informative than the previous one.
      const bool was_cut_short =
          !jobs.ok() && jobs.error().code() == Code::timeout && left < kAnswerLimit && last;
      if (!was_cut_short) last = jobs.ok() ? reported : std::string(jobs.error().message());
    }
    if (options.deadline.passed())
      return timeout("job {}: has not ended yet ({})", id, last.value_or("no answer yet"));
    if (options.should_stop && options.should_stop()) return cancelled("job {}: wait cancelled", id);
    clock.sleep(std::min(kTick, options.deadline.left()));
  }
}

int exit_code_of(const std::vector<JobLife>& jobs) {
  const JobLife* worst = worst_of(jobs);
  return worst == nullptr ? 1 : exit_code_of(worst->life, worst->exit_code);
}

}  // namespace stoker::launch
