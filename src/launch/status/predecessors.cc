#include "launch/status/predecessors.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "launch/status/life.h"
#include "slurm/queue/job_table.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPredecessorPollInterval = 500ms;

bool is_job_file(std::string_view entry) { return entry.ends_with(".yaml") || entry.ends_with(".yml"); }

// The newest run with that name, or nothing.
Result<std::optional<record::RunFolder>> newest_of(const Path& runs, std::string_view name) {
  STOKER_ASSIGN_OR_RETURN(listed, record::list_runs(runs));
  for (auto each = listed.rbegin(); each != listed.rend(); ++each) {
    if (each->run && each->run->description().name == name) return each->run;
  }
  return std::optional<record::RunFolder>();
}

Result<record::RunFolder> find_predecessor(const job::Job& job, const Path& base, const std::string& entry) {
  const Path& runs = job.record.directory;
  std::string name = entry;
  if (is_job_file(entry)) {
    auto other = job::load(base / entry);
    if (!other.ok()) return std::move(other).error().with_context("after");
    name = other->name;
  }
  STOKER_ASSIGN_OR_RETURN(newest, newest_of(runs, name));
  if (newest) return *newest;
  if (is_job_file(entry)) {
    return not_found("after: {}: no run of it in {} yet", printable(entry), runs)
        .cure("stoker submit {}", shell_quote((base / entry).lexically_normal().string()));
  }
  auto found = record::RunFolder::find(runs, entry);
  if (!found.ok()) return std::move(found).error().with_context("after");
  return std::move(*found);
}

// Without a scheduler query.
RunLife recorded_life(const record::RunFolder& run) {
  const double now = unix_seconds(RealClock().wall());
  return judge_life(read_recorded_status(run, now), {}, now);
}

std::string with_note(const RunLife& life) {
  return life.note.empty() ? std::string(to_text(life.life))
                           : format("{}: {}", to_text(life.life), life.note);
}

Result<Predecessor> depend_on(record::RunFolder run, const RunLife& life) {
  if (life.life == Life::done) return Predecessor{std::move(run), ""};
  if (is_over(life.life)) {
    return invalid("after: run {}: {}", run.id(), with_note(life)).cure("stoker resume {}", run.id());
  }
  if (life.life == Life::unknown)
    return unavailable("after: run {}: unknown whether it is queued or running ({})", run.id(), life.note);
  if (life.scheduler_job.empty()) {
    return invalid("after: run {}: is {} outside a queue", run.id(), to_text(life.life))
        .cure("stoker wait {}", run.id());
  }
  // The last jobs of a chain may be cancelled as unused: then the records decide.
  const std::string_view kind = life.records.links > 0 ? "afterany" : "afterok";
  std::vector<std::string> parts;
  for (std::string_view id : split(life.scheduler_job, ','))
    parts.push_back(format("{}:{}", kind, slurm::base_job_id(id)));
  return Predecessor{std::move(run), join(parts, ",")};
}

}  // namespace

Result<std::vector<Predecessor>> find_predecessors(const job::Job& job, const Path& base,
                                                   slurm::Scheduler* scheduler, Deadline deadline) {
  std::vector<Predecessor> found;
  for (const std::string& entry : job.after) {
    STOKER_ASSIGN_OR_RETURN(run, find_predecessor(job, base, entry));
    const RunLife life = scheduler == nullptr ? recorded_life(run) : query_life(run, *scheduler, deadline);
    STOKER_ASSIGN_OR_RETURN(predecessor, depend_on(std::move(run), life));
    found.push_back(std::move(predecessor));
  }
  return found;
}

std::string dependency_of(std::span<const Predecessor> predecessors) {
  std::vector<std::string> parts;
  for (const Predecessor& each : predecessors) {
    if (!each.dependency.empty()) parts.push_back(each.dependency);
  }
  return join(parts, ",");
}

std::vector<std::string> folders_of(std::span<const Predecessor> predecessors) {
  std::vector<std::string> folders;
  for (const Predecessor& each : predecessors)
    folders.push_back(std::filesystem::absolute(each.run.folder()).lexically_normal().string());
  return folders;
}

Status check_predecessors(std::span<const std::string> folders, Deadline deadline) {
  RealClock clock;
  for (const std::string& folder : folders) {
    STOKER_ASSIGN_OR_RETURN(run, record::RunFolder::open(folder));
    for (;;) {
      const RunLife life = recorded_life(run);
      if (life.life == Life::done) break;
      if (is_over(life.life) || deadline.passed())
        return invalid("after: run {}: {}", run.id(), with_note(life));
      clock.sleep(std::min<Duration>(kPredecessorPollInterval, deadline.left()));
    }
  }
  return {};
}

std::string describe_predecessors(std::span<const std::string> folders) {
  std::string waited_for;
  for (const std::string& folder : folders) {
    const auto run = record::RunFolder::open(folder);
    if (!run.ok()) return format("after {}, which is gone", printable(folder));
    const RunLife life = recorded_life(*run);
    if (life.life == Life::done) continue;
    if (is_over(life.life)) return format("after run {}, which is {}", run->id(), with_note(life));
    if (waited_for.empty()) waited_for = format("after run {}, {}", run->id(), to_text(life.life));
  }
  return waited_for;
}

}  // namespace stoker::launch
