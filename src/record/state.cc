#include "record/state.h"

#include <algorithm>
#include <array>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"

namespace stoker::record {

namespace {

std::string kernel_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

std::string boot_of(const Path& proc) {
  const auto boot = read_pseudo_file(proc / "sys/kernel/random/boot_id");
  std::error_code error;
  const Path space = std::filesystem::read_symlink(proc / "self/ns/pid", error);
  return format("{} {}", boot ? trim(*boot) : std::string_view("unknown"), error ? "" : space.string());
}

/// Field 22 of stat, counted from behind the command name, which may hold blanks and parentheses; 0 without
/// one.
std::int64_t start_of(const Path& proc, std::int64_t pid) {
  const auto stat = read_pseudo_file(proc / std::to_string(pid) / "stat");
  if (!stat) return 0;
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 2 > stat->size()) return 0;
  const auto fields = split(std::string_view(*stat).substr(name_end + 2), ' ');
  constexpr std::size_t kStartTime = 22 - 3;  // the first field behind the name is the third
  std::int64_t start = 0;
  const bool is_gone = fields[0] == "Z" || fields[0] == "X";
  if (is_gone || fields.size() <= kStartTime || !parse_number(fields[kStartTime], &start)) return 0;
  return start;
}

/// What the supervisors of one attempt said.
struct Story {
  std::map<int, std::pair<double, AttemptStarted>> started;  // by node
  std::map<int, std::pair<double, AttemptEnded>> ended;
  std::optional<std::pair<double, Submitting>> submitting;
  std::size_t expected = 1;  // supervisors
  std::string scheduler_job;
  std::optional<std::pair<double, SubmitFailed>> submit_failed;
  bool is_cancelled = false;
  std::vector<std::string> jobs;
  std::vector<std::string> after;
  int links = 0;
  std::optional<std::string> no_next;
};

Story read_story(const Attempt& attempt) {
  Story story;
  const auto log = read_attempt_events(attempt.folder());
  if (!log) return story;
  for (const Event& event : log->events) {
    if (auto started = attempt_started(event)) {
      const int node = started->node;
      // A task of an array that Slurm starts again goes on in its attempt.
      story.ended.erase(node);
      story.started.insert_or_assign(node, std::pair(event.time, *std::move(started)));
    } else if (auto ended = attempt_ended(event)) {
      const int node = ended->node;
      story.ended.insert_or_assign(node, std::pair(event.time, *std::move(ended)));
    } else if (auto asked = submitting(event)) {
      story.expected = static_cast<std::size_t>(asked->tasks);
      story.submitting.emplace(event.time, *std::move(asked));
    } else if (auto taken = submitted(event)) {
      story.jobs.push_back(taken->scheduler_job);
      story.scheduler_job = std::move(taken->scheduler_job);
      story.after = std::move(taken->after);
      story.links = taken->links;
    } else if (auto refused = submit_failed(event)) {
      story.submit_failed.emplace(event.time, *std::move(refused));
    } else if (cancel_asked(event)) {
      story.is_cancelled = true;
    } else if (auto no_next = no_next_attempt(event)) {
      story.no_next = std::move(no_next->reason);
    }
  }
  for (const auto& [node, started] : story.started) {
    if (story.scheduler_job.empty() || started.second.links > 0)
      story.scheduler_job = started.second.scheduler_job;
    if (started.second.links > 0) story.links = started.second.links;
  }
  return story;
}

/// Asks the kernel of this host, or, for other hosts, how long the attempt has been silent.
class Liveness {
 public:
  explicit Liveness(const LivenessOptions& options) : options_(options), boot_(boot_of(options.proc)) {
    if (options_.host.empty()) options_.host = kernel_host();
    if (options_.now == 0) options_.now = unix_seconds(RealClock().wall());
  }

  bool lives(const ProcessIdentity& who, const Attempt& attempt) const {
    if (who.host == options_.host && who.boot == boot_) {
      return who.pid > 0 && who.pid_start != 0 && start_of(options_.proc, who.pid) == who.pid_start;
    }
    return is_fresh(attempt);
  }
  bool is_fresh(const Attempt& attempt) const {
    return options_.now - last_sign_of_life(attempt) < options_.silence_s;
  }

 private:
  LivenessOptions options_;
  std::string boot_;
};

State state_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return State::done;
    case Outcome::failed:
      return State::failed;
    case Outcome::stopped:
      return State::stopped;
  }
  return State::failed;
}

/// The ending that decides: the earliest failure, else the earliest stop, else the last to be done.
const std::pair<double, AttemptEnded>* deciding(const Story& story) {
  const std::pair<double, AttemptEnded>* best = nullptr;
  const auto weight = [](Outcome outcome) {
    return outcome == Outcome::failed ? 2 : outcome == Outcome::stopped ? 1 : 0;
  };
  for (const auto& [node, ending] : story.ended) {
    const int mine = weight(ending.second.outcome);
    const int its = best == nullptr ? -1 : weight(best->second.outcome);
    if (mine > its || (mine == its && mine > 0 && ending.first < best->first)) best = &ending;
  }
  return best;
}

void take_ending(const Story& story, RunState& state) {
  const auto* ending = deciding(story);
  state.state = state_of(ending->second.outcome);
  state.exit_code = ending->second.exit_code;
  state.first_rank = ending->second.first_rank;
  state.reason = ending->second.reason;
  state.is_loss = ending->second.is_loss;
  for (const auto& [node, each] : story.ended) state.ended = std::max(state.ended, each.first);
}

void judge_unfinished(const Story& story, const Attempt& attempt, const Liveness& liveness, RunState& state) {
  const ProcessIdentity* missing = nullptr;
  std::size_t over = story.ended.size();
  for (const auto& [node, started] : story.started) {
    if (story.ended.contains(node)) continue;
    if (liveness.lives(started.second.supervisor, attempt)) {
      state.state = State::running;
      return;
    }
    if (missing == nullptr) missing = &started.second.supervisor;
    ++over;
  }
  if (story.started.size() < story.expected) {
    state.state = State::queued;
    state.reason = format("{} of {} tasks are over", over, story.expected);
    return;
  }
  if (const auto* ending = deciding(story); ending != nullptr && ending->second.outcome != Outcome::done) {
    take_ending(story, state);
    return;
  }
  state.state = State::lost;
  state.ended = last_sign_of_life(attempt);
  state.reason = format("its supervisor (process {} on {}) is gone and left no ending", missing->pid,
                        printable(missing->host));
}

// What the scheduler took of an array before it refused the rest lives on, unless it was withdrawn.
bool was_refused(const Story& story) {
  return story.submit_failed && (story.jobs.empty() || story.submit_failed->second.is_withdrawn);
}

void judge_unstarted(const Story& story, const Attempt& attempt, const Liveness& liveness, RunState& state) {
  if (story.no_next) {  // it was decided before it began
    state.state = State::failed;
    state.reason = *story.no_next;
    state.ended = last_sign_of_life(attempt);
  } else if (was_refused(story)) {
    state.state = State::failed;
    state.ended = story.submit_failed->first;
    state.reason = story.submit_failed->second.reason;
  } else if (story.submitting) {
    state.state = State::queued;
  } else if (liveness.is_fresh(attempt)) {
    state.state = State::running;  // between mkdir and the first event
  } else {
    state.state = State::lost;
    state.ended = last_sign_of_life(attempt);
    state.reason = format("attempt {} never reported a start", attempt.number());
  }
}

// The link is the number behind the job: "812_3".
void add_chain(const Story& story, RunState& state) {
  state.has_no_next = story.no_next.has_value();
  state.no_next_reason = story.no_next.value_or("");
  state.links = story.links;
  for (const auto& [node, started] : story.started) state.may_restart |= started.second.may_restart;
  if (story.links == 0 || story.started.empty()) return;
  state.link = 1;
  const std::size_t mark = story.scheduler_job.find('_');
  std::int64_t link = 0;
  if (mark != std::string::npos && parse_number(story.scheduler_job.substr(mark + 1), &link) && link > 0)
    state.link = static_cast<int>(std::min<std::int64_t>(link, story.links));
}

void add_submission(const Story& story, RunState& state) {
  state.scheduler_job = story.scheduler_job;
  state.is_cancelled = story.is_cancelled;
  state.after = story.after;
  state.jobs = story.jobs;
  add_chain(story, state);
  if (!story.submitting) return;
  state.comment = story.submitting->second.comment;
  state.submitted = story.submitting->first;
  state.is_submitting = story.scheduler_job.empty() && !story.submit_failed;
}

}  // namespace

std::string_view to_text(State state) {
  switch (state) {
    case State::created:
      return "created";
    case State::queued:
      return "queued";
    case State::running:
      return "running";
    case State::done:
      return "done";
    case State::failed:
      return "failed";
    case State::stopped:
      return "stopped";
    case State::lost:
      return "lost";
  }
  return "lost";
}

double last_sign_of_life(const Attempt& attempt) {
  const auto names = list_directory(attempt.folder());
  double newest = 0;
  const auto look = [&](const Path& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return;
    newest = std::max(
        newest, static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec));
  };
  look(attempt.folder());
  if (names) {
    for (const std::string& name : *names) look(attempt.folder() / name);
  }
  return newest;
}

ProcessIdentity this_process(const Path& proc) {
  const std::int64_t pid = ::getpid();
  return {kernel_host(), pid, start_of(proc, pid), boot_of(proc)};
}

bool lives_here(const ProcessIdentity& who, const Path& proc) {
  return who.host == kernel_host() && who.boot == boot_of(proc) && who.pid > 0 && who.pid_start != 0 &&
         start_of(proc, who.pid) == who.pid_start;
}

RunState derive_state(const RunFolder& run, const LivenessOptions& options) {
  RunState state;
  const auto attempts = run.attempts();
  if (!attempts || attempts->empty()) return state;
  state.attempts = static_cast<int>(attempts->size());
  const Liveness liveness(options);
  const Story first = read_story(attempts->front());
  for (const auto& [node, started] : first.started) {
    if (state.started == 0 || started.first < state.started) state.started = started.first;
  }
  const Attempt& last = attempts->back();
  state.last_attempt = last.number();
  const Story story = attempts->size() == 1 ? first : read_story(last);
  add_submission(story, state);
  for (const auto& [node, started] : story.started) {
    if (state.last_started == 0 || started.first < state.last_started) state.last_started = started.first;
  }
  if (story.started.empty()) {
    judge_unstarted(story, last, liveness, state);
  } else if (story.ended.size() >= std::max(story.started.size(), story.expected)) {
    take_ending(story, state);
  } else {
    judge_unfinished(story, last, liveness, state);
  }
  return state;
}

}  // namespace stoker::record
