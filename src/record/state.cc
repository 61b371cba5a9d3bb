#include "record/state.h"

#include <algorithm>
#include <array>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "stoker/time.h"

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

/// Field 22 of stat, counted after the command name, which may contain spaces and parentheses; 0 without one.
std::int64_t start_of(const Path& proc, std::int64_t pid) {
  const auto stat = read_pseudo_file(proc / std::to_string(pid) / "stat");
  if (!stat) return 0;
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 2 > stat->size()) return 0;
  const auto fields = split(std::string_view(*stat).substr(name_end + 2), ' ');
  constexpr std::size_t kStartTime = 22 - 3;  // the first field after the name is the third
  std::int64_t start = 0;
  const bool is_gone = fields[0] == "Z" || fields[0] == "X";
  if (is_gone || fields.size() <= kStartTime || !parse_number(fields[kStartTime], &start)) return 0;
  return start;
}

/// Events of the supervisors of one attempt.
struct AttemptHistory {
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

AttemptHistory read_history(const Attempt& attempt) {
  AttemptHistory history;
  const auto log = read_attempt_events(attempt.folder());
  if (!log) return history;
  for (const Event& event : log->events) {
    if (auto started = attempt_started(event)) {
      const int node = started->node;
      // A task of an array that Slurm restarts continues in its attempt.
      history.ended.erase(node);
      history.started.insert_or_assign(node, std::pair(event.time, *std::move(started)));
    } else if (auto ended = attempt_ended(event)) {
      const int node = ended->node;
      history.ended.insert_or_assign(node, std::pair(event.time, *std::move(ended)));
    } else if (auto asked = submitting(event)) {
      history.expected = static_cast<std::size_t>(asked->tasks);
      history.submitting.emplace(event.time, *std::move(asked));
    } else if (auto taken = submitted(event)) {
      history.jobs.push_back(taken->scheduler_job);
      history.scheduler_job = std::move(taken->scheduler_job);
      history.after = std::move(taken->after);
      history.links = taken->links;
    } else if (auto refused = submit_failed(event)) {
      history.submit_failed.emplace(event.time, *std::move(refused));
    } else if (cancel_requested(event)) {
      history.is_cancelled = true;
    } else if (auto no_next = no_next_attempt(event)) {
      history.no_next = std::move(no_next->reason);
    }
  }
  for (const auto& [node, started] : history.started) {
    if (history.scheduler_job.empty() || started.second.links > 0)
      history.scheduler_job = started.second.scheduler_job;
    if (started.second.links > 0) history.links = started.second.links;
  }
  return history;
}

/// Queries the kernel of this host or, for other hosts, the time since the attempt's last change.
class Liveness {
 public:
  explicit Liveness(const LivenessOptions& options) : options_(options), boot_(boot_of(options.proc)) {
    if (options_.host.empty()) options_.host = kernel_host();
    if (options_.now == 0) options_.now = unix_seconds(RealClock().wall());
  }

  bool is_alive(const ProcessIdentity& who, const Attempt& attempt) const {
    if (who.host == options_.host && who.boot == boot_) {
      return who.pid > 0 && who.pid_start != 0 && start_of(options_.proc, who.pid) == who.pid_start;
    }
    return is_fresh(attempt);
  }
  bool is_fresh(const Attempt& attempt) const {
    return options_.now - last_activity(attempt) < options_.silence_s;
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

/// The event that determines the result: the earliest failure, else the earliest stop, else the last success.
const std::pair<double, AttemptEnded>* deciding_ending(const AttemptHistory& history) {
  const std::pair<double, AttemptEnded>* best = nullptr;
  const auto weight = [](Outcome outcome) {
    return outcome == Outcome::failed ? 2 : outcome == Outcome::stopped ? 1 : 0;
  };
  for (const auto& [node, ending] : history.ended) {
    const int mine = weight(ending.second.outcome);
    const int its = best == nullptr ? -1 : weight(best->second.outcome);
    if (mine > its || (mine == its && mine > 0 && ending.first < best->first)) best = &ending;
  }
  return best;
}

void apply_ending(const AttemptHistory& history, RunState& state) {
  const auto* ending = deciding_ending(history);
  state.state = state_of(ending->second.outcome);
  state.exit_code = ending->second.exit_code;
  state.first_rank = ending->second.first_rank;
  state.reason = ending->second.reason;
  state.is_loss = ending->second.is_loss;
  for (const auto& [node, each] : history.ended) {
    state.ended = std::max(state.ended, each.first);
    if (state.lost_output.empty()) state.lost_output = each.second.lost_output;
  }
}

void derive_unfinished(const AttemptHistory& history, const Attempt& attempt, const Liveness& liveness,
                       RunState& state) {
  const ProcessIdentity* missing = nullptr;
  std::size_t over = history.ended.size();
  for (const auto& [node, started] : history.started) {
    if (history.ended.contains(node)) continue;
    if (liveness.is_alive(started.second.supervisor, attempt)) {
      state.state = State::running;
      return;
    }
    if (missing == nullptr) missing = &started.second.supervisor;
    ++over;
  }
  if (history.started.size() < history.expected) {
    state.state = State::queued;
    state.reason = format("{} of {} tasks have ended", over, history.expected);
    return;
  }
  if (const auto* ending = deciding_ending(history);
      ending != nullptr && ending->second.outcome != Outcome::done) {
    apply_ending(history, state);
    return;
  }
  state.state = State::lost;
  state.ended = last_activity(attempt);
  state.reason = format("its supervisor (process {} on {}) is gone without recording a result", missing->pid,
                        printable(missing->host));
}

// Jobs of an array that were accepted before the scheduler rejected the rest are still queued, unless they
// were withdrawn.
bool was_refused(const AttemptHistory& history) {
  return history.submit_failed && (history.jobs.empty() || history.submit_failed->second.is_withdrawn);
}

void derive_unstarted(const AttemptHistory& history, const Attempt& attempt, const Liveness& liveness,
                      RunState& state) {
  if (history.no_next) {  // decided before it started
    state.state = State::failed;
    state.reason = *history.no_next;
    state.ended = last_activity(attempt);
  } else if (was_refused(history)) {
    state.state = State::failed;
    state.ended = history.submit_failed->first;
    state.reason = history.submit_failed->second.reason;
  } else if (history.submitting) {
    state.state = State::queued;
  } else if (liveness.is_fresh(attempt)) {
    state.state = State::running;  // between mkdir and the first event
  } else {
    state.state = State::lost;
    state.ended = last_activity(attempt);
    state.reason = format("attempt {} did not report its start", attempt.number());
  }
}

// The link number follows the job ID: "812_3".
void add_chain(const AttemptHistory& history, RunState& state) {
  state.has_no_next = history.no_next.has_value();
  state.no_next_reason = history.no_next.value_or("");
  state.links = history.links;
  for (const auto& [node, started] : history.started) state.may_restart |= started.second.may_restart;
  if (history.links == 0 || history.started.empty()) return;
  state.link = 1;
  const std::size_t mark = history.scheduler_job.find('_');
  std::int64_t link = 0;
  if (mark != std::string::npos && parse_number(history.scheduler_job.substr(mark + 1), &link) && link > 0)
    state.link = static_cast<int>(std::min<std::int64_t>(link, history.links));
}

void add_submission(const AttemptHistory& history, RunState& state) {
  state.scheduler_job = history.scheduler_job;
  state.is_cancelled = history.is_cancelled;
  state.after = history.after;
  state.jobs = history.jobs;
  add_chain(history, state);
  if (!history.submitting) return;
  state.comment = history.submitting->second.comment;
  state.submitted = history.submitting->first;
  state.is_submitting = history.scheduler_job.empty() && !history.submit_failed;
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

double last_activity(const Attempt& attempt) {
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

ProcessIdentity this_process(const Path& proc) { return process_with_pid(::getpid(), proc); }

ProcessIdentity process_with_pid(std::int64_t pid, const Path& proc) {
  return {kernel_host(), pid, start_of(proc, pid), boot_of(proc)};
}

std::string identity_text(const ProcessIdentity& who) {
  return json_text(
      nlohmann::json{{"host", who.host}, {"pid", who.pid}, {"pid_start", who.pid_start}, {"boot", who.boot}});
}

ProcessIdentity parse_identity(const std::string& text) {
  const auto json = parse_json<nlohmann::json>(text);
  ProcessIdentity who;
  if (!json.is_object()) return who;
  const auto read = [&](const char* key, auto* field) {
    using T = std::remove_pointer_t<decltype(field)>;
    if (json.contains(key) && (json[key].is_string() == std::is_same_v<T, std::string>) &&
        !json[key].is_structured() && !json[key].is_null())
      *field = json[key].template get<T>();
  };
  read("host", &who.host);
  read("pid", &who.pid);
  read("pid_start", &who.pid_start);
  read("boot", &who.boot);
  return who;
}

bool is_alive_on_this_host(const ProcessIdentity& who, const Path& proc) {
  return who.host == kernel_host() && who.boot == boot_of(proc) && who.pid > 0 && who.pid_start != 0 &&
         start_of(proc, who.pid) == who.pid_start;
}

RunState derive_state(const RunFolder& run, const LivenessOptions& options) {
  RunState state;
  const auto attempts = run.attempts();
  if (!attempts || attempts->empty()) return state;
  state.attempts = static_cast<int>(attempts->size());
  const Liveness liveness(options);
  const AttemptHistory first = read_history(attempts->front());
  for (const auto& [node, started] : first.started) {
    if (state.started == 0 || started.first < state.started) state.started = started.first;
  }
  const Attempt& last = attempts->back();
  state.last_attempt = last.number();
  const AttemptHistory history = attempts->size() == 1 ? first : read_history(last);
  add_submission(history, state);
  for (const auto& [node, started] : history.started) {
    if (state.last_started == 0 || started.first < state.last_started) state.last_started = started.first;
  }
  if (history.started.empty()) {
    derive_unstarted(history, last, liveness, state);
  } else if (history.ended.size() >= std::max(history.started.size(), history.expected)) {
    apply_ending(history, state);
  } else {
    derive_unfinished(history, last, liveness, state);
  }
  return state;
}

}  // namespace stoker::record
