#include "report/facts.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "base/exit_code.h"
#include "base/file.h"
#include "base/secrets.h"
#include "observe/job_termination.h"
#include "observe/suspect_lines.h"
#include "report/learning.h"
#include "report/log_tails.h"
#include "report/media.h"
#include "report/metric_curves.h"
#include "report/samples/samples.h"
#include "report/sources.h"
#include "report/traces.h"
#include "stoker/time.h"

namespace stoker::report {

namespace {

using record::Event;

constexpr std::string_view kArrayFile = "array.json";

// Of a step folder: ".../step-200".
std::optional<std::int64_t> step_in_name(const std::string& checkpoint) {
  constexpr std::string_view kStep = "step-";
  const std::string name = Path(checkpoint).filename().string();
  std::int64_t step = 0;
  const bool is_step = name.starts_with(kStep) && parse_number(name.substr(kStep.size()), &step);
  return is_step ? std::optional(step) : std::nullopt;
}

void apply_event(const Event& event, AttemptFacts& facts) {
  if (const auto started = record::attempt_started(event)) {
    if (facts.started == 0) facts.started = event.time;
    facts.world_size = std::max(facts.world_size, started->world_size);
    facts.hosts.push_back(started->supervisor.host);
    facts.scheduler_job = started->scheduler_job;
    facts.resume = started->resume;
    facts.resume_step = started->resume_step ? started->resume_step : step_in_name(started->resume);
  } else if (const auto resumed = record::resumed(event)) {
    facts.resume_step = resumed->step;
    facts.resume = resumed->folder;
  } else if (auto ended = record::rank_ended(event)) {
    facts.ends.push_back(*std::move(ended));
  }
  facts.ended = std::max(facts.ended, event.time);
}

record::State to_state(record::Outcome outcome) {
  switch (outcome) {
    case record::Outcome::done:
      return record::State::done;
    case record::Outcome::failed:
      return record::State::failed;
    case record::Outcome::stopped:
      return record::State::stopped;
  }
  return record::State::failed;
}

AttemptFacts read_attempt(const record::Attempt& attempt, RunFacts& run) {
  AttemptFacts facts;
  facts.number = attempt.number();
  const auto log = record::read_attempt_events(attempt.folder());
  if (!log) {
    run.notes.push_back(format("attempt {}: {}", attempt.number(), log.status().message()));
    return facts;
  }
  bool has_ending = false;
  for (const Event& event : log->events) {
    apply_event(event, facts);
    const auto ended = record::attempt_ended(event);
    if (!ended || (has_ending && facts.state == record::State::failed)) continue;
    has_ending = true;
    facts.state = to_state(ended->outcome);
    facts.exit_code = ended->exit_code;
    facts.first_rank = ended->first_rank;
    facts.reason = ended->reason;
    facts.is_loss = ended->is_loss;
  }
  if (!has_ending) facts.is_loss = true;
  for (const Event& event : log->events) {
    if (auto saved = record::checkpoint_saved(event)) {
      run.checkpoints.push_back({event.time, attempt.number(), *std::move(saved)});
    }
  }
  note_damage(run, attempt.folder() / "events-*.jsonl", log->damaged, log->truncated);
  if (!has_ending) facts.ended = std::max(facts.ended, record::last_activity(attempt));
  return facts;
}

/// Reads Slurm's messages about the end, unless the attempt had ended before.
void read_slurm_ending(const record::RunFolder& run, const record::Attempt& attempt, AttemptFacts& facts) {
  const auto ending = observe::job_termination(run, attempt, facts.scheduler_job);
  const bool has_own_ending = facts.exit_code && facts.state == record::State::failed;
  if (!ending || (has_own_ending && !observe::explains_end(*ending, facts.ended, facts.exit_code))) return;
  facts.ending = observe::termination_text(ending->state);
  if (!ending->figures.empty())
    facts.reason = format("took {}{}{}", ending->figures, facts.reason.empty() ? "" : "; ", facts.reason);
}

/// Refines the ending beyond the state. `next`: the one after it, or null.
void read_ending(const record::RunFolder& run, const record::Attempt& attempt, const AttemptFacts* next,
                 AttemptFacts& facts) {
  if (facts.state == record::State::done || facts.exit_code == exit_code::kStoppedAfterCheckpoint) return;
  if (record::is_out_of_time(facts.state, facts.exit_code)) facts.ending = "timeout";
  if (facts.reason.find(", out of memory") != std::string::npos) facts.ending = "out of memory";
  read_slurm_ending(run, attempt, facts);
  // Other requeue requests appear in the log.
  const bool is_started_again =
      next != nullptr && !facts.scheduler_job.empty() && next->scheduler_job == facts.scheduler_job;
  if (facts.is_loss && is_started_again && facts.ending.empty()) facts.ending = "node failed";
}

/// Notes log lines that contradict a successful end.
void note_doubts(const record::Attempt& last, RunFacts& facts) {
  if (facts.state.state != record::State::done) return;
  for (const observe::SuspectLine& doubt : observe::attempt_suspect_lines(last)) {
    const Path file = doubt.file.lexically_relative(facts.folder);
    facts.notes.push_back(
        format("the run is done, but {}:{} contains a failure: {}", file, doubt.line, doubt.text));
  }
}

/// Compares each attempt's job with the previous one. Skips unreadable jobs, of early failures or other
/// Stoker versions.
void note_changes(const std::vector<record::Attempt>& attempts, RunFacts& facts) {
  std::optional<job::Job> before;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    auto job = job::load(attempts[i].job());
    if (!job.ok()) continue;
    if (before) facts.attempts[i].changes = job::differences(*before, *job);
    facts.job = *job;
    for (job::Difference& change : facts.attempts[i].changes) {
      change.before = hide_setting(change.key, change.before);
      change.after = hide_setting(change.key, change.after);
    }
    before = std::move(*job);
  }
}

/// Copies the run's state to its last attempt.
void apply_state(RunFacts& facts) {
  if (facts.attempts.empty()) return;
  AttemptFacts& last = facts.attempts.back();
  last.state = facts.state.state;
  if (last.state == record::State::running) last.ended = facts.now;
  if (last.reason.empty()) last.reason = facts.state.reason;
  if (!last.exit_code) last.exit_code = facts.state.exit_code;
}

/// The run's word, and the same word for its last attempt.
void apply_judged(const std::optional<JudgedState>& judged, RunFacts& facts) {
  AttemptFacts* last = facts.attempts.empty() ? nullptr : &facts.attempts.back();
  if (!judged) {
    const bool has_ending = last != nullptr && !last->ending.empty();
    facts.state_word = has_ending ? last->ending : std::string(to_text(facts.state.state));
    return;
  }
  facts.state_word = judged->state;
  facts.state.reason = judged->note;
  if (judged->is_over && last != nullptr)
    last->ending = judged->state == to_text(last->state) ? "" : judged->state;
}

/// A batch script or an array has no job file that starts it again: its own command line does.
std::string rerun_command_of(const record::RunFolder& run, const std::vector<record::Attempt>& attempts) {
  const record::RunDescription& what = run.description();
  const bool was_submitted =
      std::any_of(attempts.begin(), attempts.end(),
                  [](const record::Attempt& attempt) { return path_exists(attempt.submit_events()); });
  const bool is_array = std::any_of(attempts.begin(), attempts.end(), [](const record::Attempt& attempt) {
    return path_exists(attempt.folder() / kArrayFile);
  });
  const bool is_first = what.typed.size() > 2 && what.typed[1] == "submit";
  if ((is_array || what.job_file.empty()) && was_submitted && is_first) {
    std::string text;
    for (const std::string& word : what.typed)
      text += (text.empty() ? "" : " ") + shell_quote(printable(word));
    return text;
  }
  std::error_code error;
  const Path folder = std::filesystem::absolute(run.folder(), error).lexically_normal();
  if (was_submitted && what.job_file.empty())
    return "stoker rerun " + shell_quote(printable(folder.string()));
  const auto job = job::load(run.job());
  const bool needs_queue = was_submitted || (job.ok() && job->resources.nodes > 1);
  return format("stoker {} {}", needs_queue ? "submit" : "run",
                shell_quote(printable((folder / "job.yaml").string())));
}

void place_checkpoints(const std::vector<AttemptSource>& sources, RunFacts& facts) {
  for (CheckpointPoint& point : facts.checkpoints) {
    for (const AttemptSource& source : sources) {
      if (source.attempt.number() == point.attempt) point.run_time = source.run_time(point.run_time);
    }
  }
}

}  // namespace

std::string_view to_text(TimePart part) {
  constexpr std::string_view kNames[] = {"wait for data", "forward",    "backward",
                                         "communication", "optimizer",  "checkpoint",
                                         "other",         "validation", "start-up and rest"};
  return kNames[static_cast<int>(part)];
}

std::string_view key_of(TimePart part) {
  constexpr std::string_view kKeys[] = {"data",       "forward", "backward",   "communication", "optimizer",
                                        "checkpoint", "other",   "validation", "outside"};
  return kKeys[static_cast<int>(part)];
}

double RankTime::step_total() const {
  double sum = 0;
  for (TimePart part : kStepParts) sum += seconds_in(part);
  return sum;
}

double RankTime::total() const {
  double sum = 0;
  for (TimePart part : kAllParts) sum += seconds_in(part);
  return sum;
}

int RunFacts::resumes() const {
  return static_cast<int>(
      std::count_if(attempts.begin(), attempts.end(), [](const AttemptFacts& a) { return a.is_resumed(); }));
}

int RunFacts::world_size() const {
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    if (attempt->world_size > 0) return attempt->world_size;
  }
  return description.world_size;
}

namespace {

RunFacts describe(const record::RunFolder& run) {
  RunFacts facts;
  facts.id = run.id();
  facts.folder = run.folder();
  facts.description = run.description();
  return facts;
}

/// Reads the events and jobs of the attempts, after the run's state.
void read_attempts(const std::vector<record::Attempt>& attempts, RunFacts& facts) {
  for (const record::Attempt& attempt : attempts) facts.attempts.push_back(read_attempt(attempt, facts));
  note_changes(attempts, facts);
  apply_state(facts);
}

/// Opens the attempts of the run, with their offsets in running time.
std::vector<AttemptSource> open_attempts(const std::vector<record::Attempt>& attempts, RunFacts& facts) {
  std::vector<AttemptSource> sources;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    sources.push_back({attempts[i], &facts.attempts[i], facts.running_s});
    facts.running_s += facts.attempts[i].seconds();
  }
  return sources;
}

/// Every n-th element and the last one, at most `most`.
template <typename T>
void thin(std::vector<T>& values, std::size_t most) {
  const std::size_t stride = (values.size() + most - 1) / most;
  if (stride < 2) return;
  std::size_t kept = 0;
  for (std::size_t i = stride - 1; i < values.size(); i += stride) values[kept++] = values[i];
  if (values.size() % stride != 0) values[kept++] = values.back();
  values.resize(kept);
}

}  // namespace

RunFacts collect_run_facts(const record::RunFolder& run, const record::LivenessOptions& options,
                           const std::optional<JudgedState>& judged) {
  RunFacts facts = describe(run);
  facts.now = options.now > 0 ? options.now : unix_seconds(RealClock().wall());
  facts.state = judged ? judged->records : record::derive_state(run, options);
  facts.state_word = judged ? judged->state : std::string(to_text(facts.state.state));
  facts.capsule = record::read_capsule(run);
  for (const std::string& problem : facts.capsule.problems) facts.notes.push_back(problem);
  const auto attempts = run.attempts();
  if (!attempts) {
    facts.notes.emplace_back(attempts.status().message());
    return facts;
  }
  read_attempts(*attempts, facts);
  for (std::size_t i = 0; i < attempts->size(); ++i) {
    const AttemptFacts* next = i + 1 < attempts->size() ? &facts.attempts[i + 1] : nullptr;
    read_ending(run, (*attempts)[i], next, facts.attempts[i]);
  }
  if (facts.state.is_cancelled && facts.state.state == record::State::stopped && !facts.attempts.empty())
    facts.attempts.back().ending = "cancelled";
  apply_judged(judged, facts);
  facts.rerun_command = rerun_command_of(run, *attempts);
  if (!facts.state.lost_output.empty()) facts.notes.push_back(facts.state.lost_output);
  if (!attempts->empty()) note_doubts(attempts->back(), facts);
  const std::vector<AttemptSource> sources = open_attempts(*attempts, facts);
  place_checkpoints(sources, facts);
  read_learning(sources, facts);
  // The tasks of an array have its points.
  const bool is_array = !attempts->empty() && path_exists(attempts->back().folder() / kArrayFile);
  if (!is_array) {
    read_metric_curves(sources, facts);
    MediaRoom room;
    read_media(sources, facts, room);
  }
  read_samples(sources, facts);
  read_traces(sources, facts);
  if (!attempts->empty()) read_logs(attempts->back(), facts);
  return facts;
}

RunFacts collect_task_run(const record::RunFolder& run, MediaRoom& room, std::size_t most_points) {
  RunFacts facts = describe(run);
  facts.state = record::derive_state(run);
  facts.state_word = to_text(facts.state.state);
  const auto attempts = run.attempts();
  if (!attempts) {
    facts.notes.emplace_back(attempts.status().message());
    return facts;
  }
  read_attempts(*attempts, facts);
  const std::vector<AttemptSource> sources = open_attempts(*attempts, facts);
  read_learning(sources, facts);
  read_metric_curves(sources, facts);
  read_media(sources, facts, room);
  thin(facts.learning.steps, most_points);
  for (MetricCurve& curve : facts.metrics) thin(curve.points, most_points);
  return facts;
}

void add_task_metrics(const record::RunFolder& run, RunFacts& array, MediaRoom& room,
                      std::size_t most_points) {
  const auto attempts = run.attempts();
  if (!attempts) return;  // the facts of the array have the reason
  std::vector<AttemptSource> sources;
  // An attempt that began since is not among the facts.
  for (std::size_t i = 0; i < std::min(attempts->size(), array.attempts.size()); ++i)
    sources.push_back({(*attempts)[i], &array.attempts[i], 0});
  read_task_curves(sources, array.tasks);
  read_task_media(sources, array.tasks, room);
  for (TaskFacts& task : array.tasks) {
    for (MetricCurve& curve : task.run.metrics) thin(curve.points, most_points);
  }
}

}  // namespace stoker::report
