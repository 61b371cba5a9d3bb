#include "launch/next/orphan_ranks.h"

#include <ctime>
#include <filesystem>
#include <map>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "job/job.h"
#include "rank/environment.h"
#include "rank/process/process_tree.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::launch {
namespace {

constexpr Duration kOrphanPollInterval = std::chrono::milliseconds(250);
// Tolerates clock adjustments; pids do not wrap around that fast.
constexpr double kClockStepSeconds = 5;
constexpr std::size_t kNamed = 3;

using Pids = std::map<int, std::int64_t>;  // by rank

// Boot time of this host's kernel, Unix seconds.
double boot_time() {
  timespec since{};
  ::clock_gettime(CLOCK_BOOTTIME, &since);
  return unix_seconds(RealClock().wall()) - static_cast<double>(since.tv_sec) -
         1e-9 * static_cast<double>(since.tv_nsec);
}

// A reused pid belongs to a process that started after the rank's event.
bool lives_since_before(std::int64_t pid, double recorded) {
  const auto facts = rank::process_facts(static_cast<pid_t>(pid));
  if (!facts.ok() || facts->state == 'Z' || facts->state == 'X') return false;
  const double ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return boot_time() + static_cast<double>(facts->start) / ticks_per_s <= recorded + kClockStepSeconds;
}

// The commands in the supervisor's records.
void add_recorded(const record::Attempt& attempt, Pids& found) {
  const auto log = record::read_attempt_events(attempt.folder());
  if (!log.ok()) return;
  const record::ProcessIdentity here = record::this_process();
  for (const record::Event& event : log->events) {
    const auto started = record::attempt_started(event);
    // From another boot or pid namespace: its pids are meaningless here.
    if (started && started->supervisor.host == here.host && started->supervisor.boot != here.boot) return;
    const auto rank = record::rank_started(event);
    if (rank && rank->host == here.host && rank->pid > 0 && lives_since_before(rank->pid, event.time))
      found.insert_or_assign(rank->rank, rank->pid);
  }
}

Environment environment_of(const std::string& pid) {
  Environment variables;
  const auto text = read_pseudo_file(Path("/proc") / pid / "environ");
  if (!text.ok()) return variables;
  for (std::string_view entry : split(*text, '\0')) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos)
      variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

// The rank number in the environment of a `stoker rank`.
int rank_in(const Environment& variables) {
  const auto place = rank::parse_placement(variable(variables, rank::kPlaceVariable));
  if (place.ok()) return place->rank.value;
  for (std::string_view name : {"RANK", "SLURM_PROCID"}) {
    std::int64_t number = 0;
    if (parse_number(variable(variables, name), &number)) return static_cast<int>(number);
  }
  return 0;
}

// A command (a shell, for example) may exit while its children still save. Its `stoker rank` stays until the
// last of them exits.
void add_rank_supervisors(const record::Attempt& attempt, Pids& found) {
  const auto names = list_directory("/proc");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    std::int64_t pid = 0;
    if (!parse_number(name, &pid)) continue;
    const Environment variables = environment_of(name);
    // Commands do not have this variable.
    if (variable(variables, rank::kWorldVariable).empty()) continue;
    std::error_code error;
    const Path folder = variable(variables, "STOKER_ATTEMPT_DIR");
    if (std::filesystem::equivalent(folder, attempt.folder(), error)) found.emplace(rank_in(variables), pid);
  }
}

// "rank 0 (pid 4242), rank 1 (pid 4243) and 6 more".
std::string names_of(const std::vector<OrphanRank>& left) {
  std::string text;
  for (std::size_t i = 0; i < left.size() && i < kNamed; ++i)
    text += format("{}rank {} (pid {})", i == 0 ? "" : ", ", left[i].rank, left[i].pid);
  if (left.size() > kNamed) text += format(" and {} more", left.size() - kNamed);
  return text;
}

Status refusal(const record::RunFolder& run, const record::Attempt& attempt,
               const std::vector<OrphanRank>& left, Duration grace) {
  std::string pids;
  for (const OrphanRank& each : left) pids += format(" {}", each.pid);
  return unavailable("run {}: {} of attempt {} did not end on {} within {} (timeouts.grace: {})", run.id(),
                     names_of(left), attempt.number(), printable(record::this_process().host),
                     duration_text(grace + kOrphanMargin), duration_text(grace))
      .cure("kill -9{}&& stoker resume {}", pids, run.id());
}

}  // namespace

std::vector<OrphanRank> find_orphan_ranks(const record::Attempt& attempt) {
  Pids found;
  add_recorded(attempt, found);
  add_rank_supervisors(attempt, found);
  std::vector<OrphanRank> left;
  for (const auto& [rank, pid] : found) left.push_back({rank, pid});
  return left;
}

Status wait_for_orphan_ranks(const record::RunFolder& run, const OrphanWait& how, Clock& clock) {
  const auto attempt = run.last_attempt();
  if (!attempt.ok()) return {};
  std::vector<OrphanRank> left = find_orphan_ranks(*attempt);
  if (left.empty()) return {};
  how.on_wait(format("waiting for {} of attempt {} to end ...", names_of(left), attempt->number()));
  const auto job = job::load(attempt->job());
  const Duration grace = job.ok() ? job->timeouts.grace : Duration::zero();
  const MonoTime end = clock.mono() + grace + kOrphanMargin;
  while (!left.empty()) {
    if (how.should_stop()) {
      return cancelled("run {}: not resumed: {} of attempt {} has not ended", run.id(), names_of(left),
                       attempt->number());
    }
    if (clock.mono() >= end) return refusal(run, *attempt, left, grace);
    clock.sleep(kOrphanPollInterval);
    left = find_orphan_ranks(*attempt);
  }
  return {};
}

}  // namespace stoker::launch
