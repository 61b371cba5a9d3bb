// What state a run is in, worked out from its events and from whether its supervisor lives: stored nowhere,
// so it cannot be wrong twice. Used by status, logs, resume and report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/run_events.h"
#include "record/run_folder.h"

namespace stoker::record {

enum class State {
  created,  ///< a folder without an attempt that started
  queued,   ///< its last attempt was submitted and has not begun
  running,
  done,  ///< the last attempt ended with every rank at exit code 0
  failed,
  stopped,  ///< ended on request: after a checkpoint (exit code 75) or by an interrupt
  lost,     ///< its supervisor is gone and left no ending: killed, or its node died
};
std::string_view to_text(State state);
/// Whether a run, or an attempt, that ended so was stopped as its time was over.
inline bool is_out_of_time(State state, std::optional<int> exit_code) {
  return state == State::stopped && exit_code == kOutOfTime;
}

struct RunState {
  State state = State::created;
  int attempts = 0;
  int last_attempt = 0;           ///< its number; 0 when there is none
  std::optional<int> exit_code;   ///< of the last attempt, when it ended
  std::optional<int> first_rank;  ///< whose end decided
  std::string reason;             ///< one line; "" for running and done
  bool is_loss = false;           ///< its first rank was killed from outside or not heard of any more
  double started = 0;             ///< of the first attempt, Unix seconds; 0 when there was none
  double last_started = 0;        ///< of the last one, when it has begun
  double ended = 0;  ///< of the last attempt; for a lost one its last sign of life; 0 while running

  // What the last attempt knows of the scheduler; empty for one that was started by hand outside of it.
  std::string scheduler_job;
  std::string comment;             ///< by which its job is found; set when it was submitted
  double submitted = 0;            ///< Unix seconds; 0 when it was not submitted
  std::vector<std::string> jobs;   ///< all that were submitted, where one array could not hold them
  bool is_submitting = false;      ///< submitted, and neither a job's id nor a failure is recorded
  bool is_cancelled = false;       ///< somebody has asked for its end
  std::vector<std::string> after;  ///< run folders that it waits for

  // Of a chain, which goes on in job after job.
  int links = 0;             ///< jobs at most; 0: no chain
  int link = 0;              ///< which of them the last attempt ran in, from 1; 0 before the first
  bool may_restart = false;  ///< without a chain: its job may be started again when it has ended
  bool has_no_next = false;  ///< it was decided that the run does not go on by itself
  std::string no_next_reason;
};

/// The calling process, as a supervisor records itself. `proc` is injectable for tests.
ProcessIdentity this_process(const Path& proc = "/proc");

/// Whether that process lives on this host, in this boot and pid namespace.
bool lives_here(const ProcessIdentity& who, const Path& proc = "/proc");

/// How liveness is asked for. A supervisor on this host is looked up by pid, start time and boot; one
/// elsewhere counts as running while files of its attempt changed within `silence_s`.
struct LivenessOptions {
  Path proc = "/proc";
  std::string host;       ///< this host's name; "" asks the kernel
  double now = 0;         ///< Unix seconds; 0 asks the clock
  double silence_s = 90;  ///< system samples come every second; NFS caches attributes for up to 60 s
};

/// Reads the events of the run's attempts. Damaged or absent files count as silence, never as an error.
RunState derive_state(const RunFolder& run, const LivenessOptions& options = {});

/// The newest change of a file in the attempt's folder, Unix seconds; 0 when it cannot be read.
double last_sign_of_life(const Attempt& attempt);

}  // namespace stoker::record
