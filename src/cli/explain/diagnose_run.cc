#include "cli/explain/diagnose_run.h"

#include "cli/runs.h"
#include "diagnose/launches.h"
#include "diagnose/run_facts.h"
#include "launch/script/user_script.h"
#include "launch/state/task_record.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

using diagnose::FailureFacts;

constexpr std::size_t kMaxTasks = 64;

double now() { return unix_seconds(RealClock().wall()); }

// Adds the logs of failed array tasks, up to kMaxTasks.
void add_failed_tasks(const record::RunFolder& run, const launch::ArrayState& array, FailureFacts& facts) {
  for (const std::uint32_t task : array.failures) {
    if (facts.logs.size() >= kMaxTasks) return;
    const Path log = launch::task_log(run, task);
    if (path_exists(log))
      facts.logs.push_back({.file = log, .name = "tasks/" + log.filename().string(), .rank = -1});
  }
}

diagnose::AttemptEnd end_of(launch::Life life) {
  if (!launch::is_over(life)) return diagnose::AttemptEnd::none;
  if (life == launch::Life::done) return diagnose::AttemptEnd::done;
  return life == launch::Life::failed ? diagnose::AttemptEnd::failed : diagnose::AttemptEnd::other;
}

// Launchers that do not add up: as the cause in the diagnosis, or as the returned notes.
std::vector<Finding> join_recorded_launches(const record::RunFolder& run, const record::Attempt& attempt,
                                            const FailureFacts& facts, launch::Life life,
                                            diagnose::Diagnosis& diagnosis) {
  const Path script = launch::has_script(attempt.folder()) ? launch::script_of(attempt) : Path();
  const diagnose::RecordedLaunches launches = diagnose::read_recorded_launches(run, attempt, script);
  if (launches.findings.empty()) return {};
  return join_launches(launches, read_rank_lines(facts.logs, launches.logs), end_of(life), diagnosis);
}

}  // namespace

void add_state_evidence(launch::Life life, const std::string& note, const std::string& where,
                        FailureFacts& facts) {
  if (!launch::is_over(life) || life == launch::Life::done || life == launch::Life::failed) return;
  facts.records.push_back(
      {where,
       note.empty() ? format("state: {}", to_text(life)) : format("state: {} ({})", to_text(life), note),
       -1});
}

Result<RunDiagnosis> diagnose_run(const record::RunFolder& run, const launch::RunLife& life,
                                  std::int64_t number) {
  STOKER_ASSIGN_OR_RETURN(attempt, find_attempt(run, number));
  FailureFacts facts = diagnose::facts_of_run(run, attempt, life.records, now());
  if (life.array) add_failed_tasks(run, *life.array, facts);
  if (attempt.number() == life.records.attempts || number == 0)
    add_state_evidence(life.life, life.note, "records", facts);
  RunDiagnosis found{.diagnosis = explain_failure(facts), .launches = {}};
  found.launches = join_recorded_launches(run, attempt, facts, life.life, found.diagnosis);
  return found;
}

}  // namespace stoker::cli
