#include "cli/run_facts.h"

#include <set>

#include "base/language/translator.h"
#include "cli/explain/diagnose_run.h"
#include "cli/explain/explanation.h"
#include "cli/runs.h"
#include "launch/state/task_record.h"
#include "launch/status/life.h"

namespace stoker::cli {
namespace {

std::string_view to_text(launch::TaskState state) {
  switch (state) {
    case launch::TaskState::waiting:
      return "waiting";
    case launch::TaskState::running:
      return "running";
    case launch::TaskState::done:
      return "done";
    case launch::TaskState::failed:
      return "failed";
    case launch::TaskState::stopped:
      return "stopped";
  }
  return "";
}

void add_tasks(const record::RunFolder& run, const record::Attempt& last, report::RunFacts& facts) {
  const auto array = launch::read_array_file(last);
  if (!array.ok()) {
    facts.notes.emplace_back(array.status().message());
    return;
  }
  report::MediaRoom room = report::kRoomForTasks;
  const std::set<std::uint32_t> chosen(array->chosen.begin(), array->chosen.end());
  for (std::uint32_t number = 1; number <= array->tasks.size(); ++number) {
    const launch::TaskRecord record = launch::read_task(run, number, last.number(), chosen.contains(number));
    report::TaskFacts task{.number = number,
                           .values = array->tasks[number - 1].values,
                           .state = std::string(to_text(record.state)),
                           .exit_code = {},
                           .reason = record.reason,
                           .host = record.host,
                           .started = record.started,
                           .ended = record.ended,
                           .run = {}};
    const bool has_ended =
        record.state == launch::TaskState::done || record.state == launch::TaskState::failed;
    if (has_ended) task.exit_code = record.exit_code;
    if (record.state == launch::TaskState::running) task.ended = facts.now;
    if (!record.run.empty()) {
      const auto own = record::RunFolder::open(launch::tasks_folder(run) / record.run);
      if (own.ok()) {
        task.run = report::collect_task_run(*own, room);
      } else {
        facts.notes.push_back(format("task {}: {}", number, own.status().message()));
      }
    }
    facts.tasks.push_back(std::move(task));
  }
  report::add_task_metrics(run, facts, room);
}

bool has_failed(launch::Life life) {
  return launch::is_over(life) && life != launch::Life::done && life != launch::Life::stopped &&
         life != launch::Life::cancelled;
}

std::optional<report::CauseFacts> cause_of(const record::RunFolder& run, const launch::RunLife& life) {
  if (!has_failed(life.life)) return std::nullopt;
  const auto found = diagnose_run(run, life, 0);
  if (!found.ok()) return std::nullopt;
  const diagnose::Diagnosis& diagnosis = found->diagnosis;
  const bool is_likely = diagnosis.certainty == diagnose::Certainty::likely;
  if (!is_likely && diagnosis.certainty != diagnose::Certainty::known) return std::nullopt;
  const Translator english;
  report::CauseFacts cause{.rule = diagnosis.rule,
                           .text = cause_text(diagnosis, english),
                           .is_likely = is_likely,
                           .evidence = {},
                           .cure = english.render(diagnosis.cure)};
  for (const Evidence& each : diagnosis.evidence)
    cause.evidence.emplace_back(each.where, english.render(each.text));
  return cause;
}

}  // namespace

std::vector<report::RunFacts> collect_judged_facts(const std::vector<record::RunFolder>& runs) {
  auto scheduler = make_scheduler();
  const auto lives = launch::query_life(runs, scheduler, Deadline::after(kSchedulerTimeout));
  std::vector<report::RunFacts> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const launch::RunLife& life = lives[i];
    report::RunFacts facts = report::collect_run_facts(
        runs[i], {},
        report::JudgedState{std::string(to_text(life.life)), life.note, is_over(life.life), life.records});
    const auto last = runs[i].last_attempt();
    if (last.ok() && launch::is_array(*last)) add_tasks(runs[i], *last, facts);
    facts.cause = cause_of(runs[i], life);
    all.push_back(std::move(facts));
  }
  return all;
}

}  // namespace stoker::cli
