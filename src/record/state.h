// Derives the state of a run from its events and from whether its supervisor is alive. It is stored nowhere,
// so it cannot be inconsistent. Used by status, logs, resume and report.
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
  created,  ///< no attempt has started yet
  queued,   ///< its last attempt was submitted and has not started
  running,
  done,  ///< every rank of the last attempt ended with exit code 0
  failed,
  stopped,  ///< ended on request: after a checkpoint (exit code 75) or by an interrupt
  lost,     ///< its supervisor is gone without recording a result: it was killed, or its node died
};
std::string_view to_text(State state);
/// Whether a run or an attempt with that state and exit code was stopped at its time limit.
inline bool is_out_of_time(State state, std::optional<int> exit_code) {
  return state == State::stopped && exit_code == kOutOfTime;
}

struct RunState {
  State state = State::created;
  int attempts = 0;
  int last_attempt = 0;           ///< number of the attempt; 0 without one
  std::optional<int> exit_code;   ///< of the last attempt, once it has ended
  std::optional<int> first_rank;  ///< the rank whose end determined the result
  std::string reason;             ///< one line; "" for running and done
  bool is_loss = false;           ///< its first rank was killed from outside or stopped responding
  std::string lost_output;        ///< why a log of the last attempt lacks output; "" for complete logs
  double started = 0;             ///< of the first attempt, Unix seconds; 0 without one
  double last_started = 0;        ///< of the last attempt, once it has started
  double ended = 0;               ///< of the last attempt; for a lost one its last heartbeat; 0 while running

  // What the last attempt knows about the scheduler; empty if it was started by hand outside of it.
  std::string scheduler_job;
  std::string comment;             ///< identifies its job; set if it was submitted
  double submitted = 0;            ///< Unix seconds; 0 if it was not submitted
  std::vector<std::string> jobs;   ///< all jobs, if a single array could not contain them
  bool is_submitting = false;      ///< submitted, and neither a job ID nor a failure is recorded
  bool is_cancelled = false;       ///< a cancellation was requested
  std::vector<std::string> after;  ///< run folders that it waits for

  // For a chain, a sequence of jobs.
  int links = 0;             ///< maximum number of jobs; 0: no chain
  int link = 0;              ///< link of the last attempt, from 1; 0 before the first
  bool may_restart = false;  ///< without a chain: its job may be restarted after it has ended
  bool has_no_next = false;  ///< it was decided not to continue the run automatically
  std::string no_next_reason;
};

/// The identity of the calling process. `proc` can be replaced in tests.
ProcessIdentity this_process(const Path& proc = "/proc");
/// The identity of a process of this host; its pid_start is 0 if no process has that pid.
ProcessIdentity process_with_pid(std::int64_t pid, const Path& proc = "/proc");

/// An identity as one line of JSON, and back. Text that is not one gives an identity without a pid.
std::string identity_text(const ProcessIdentity& who);
ProcessIdentity parse_identity(const std::string& text);

/// Whether that process is alive on this host, in this boot and pid namespace.
bool is_alive_on_this_host(const ProcessIdentity& who, const Path& proc = "/proc");

/// How liveness is determined. A supervisor on this host is looked up by pid, start time and boot; one on
/// another host counts as running while files of its attempt have changed within `silence_s`.
struct LivenessOptions {
  Path proc = "/proc";
  std::string host;       ///< this host's name; "" queries the kernel
  double now = 0;         ///< Unix seconds; 0 queries the clock
  double silence_s = 90;  ///< system samples are written every second; NFS caches attributes for up to 60 s
};

/// Reads the events of the run's attempts. Damaged or absent files count as missing events, never as an
/// error.
RunState derive_state(const RunFolder& run, const LivenessOptions& options = {});

/// Latest modification time of a file in the attempt's folder, Unix seconds; 0 if it cannot be read.
double last_activity(const Attempt& attempt);

}  // namespace stoker::record
