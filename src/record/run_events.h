// The event kinds of a run's history, declared once: writers call write_*, readers use the names and the same
// structs. `derive_state` and the report are based on them. Format: docs/formats/run.md#events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/events.h"

namespace stoker::record {

inline constexpr std::string_view kAttemptStarted = "attempt_started";
inline constexpr std::string_view kAttemptEnded = "attempt_ended";
inline constexpr std::string_view kRankStarted = "rank_started";
inline constexpr std::string_view kRankEnded = "rank_ended";
inline constexpr std::string_view kStopping = "stopping";
inline constexpr std::string_view kCheckpointSaved = "checkpoint_saved";
inline constexpr std::string_view kResumed = "resumed";
inline constexpr std::string_view kSubmitting = "submitting";
inline constexpr std::string_view kSubmitted = "submitted";
inline constexpr std::string_view kSubmitFailed = "submit_failed";
inline constexpr std::string_view kCancelRequested = "cancel_asked";
inline constexpr std::string_view kNoNextAttempt = "no_next_attempt";
inline constexpr std::string_view kRequeueRequested = "requeue_asked";
inline constexpr std::string_view kStaged = "staged";
inline constexpr std::string_view kGpuFound = "gpu_found";
inline constexpr std::string_view kGpuFault = "gpu_xid";
inline constexpr std::string_view kNodeSampled = "node_sampled";

/// Identifies a process, so that a reader on the same host can check whether it is alive. Process IDs are
/// reused, so its start time (field 22 of /proc/<pid>/stat) is included, and they are only unique within one
/// boot of one host and one pid namespace.
struct ProcessIdentity {
  std::string host;
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;
  std::string boot;  ///< "<boot id> <pid namespace>"

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// By the supervisor of each node, as the first event.
struct AttemptStarted {
  int node = 0;
  ProcessIdentity supervisor;  ///< record::this_process()
  int world_size = 1;
  std::vector<std::string> command;
  std::string resume;  ///< checkpoint step folder; "" without a checkpoint
  std::optional<std::int64_t> resume_step;
  std::string scheduler_job;  ///< "" without Slurm; for a link of a chain "812_3"
  double resume_written = 0;  ///< modification time of its checkpoint, Unix seconds; 0 without one
  int links = 0;              ///< maximum number of jobs in the chain; 0 without a chain
  bool may_restart = false;   ///< the job may be restarted after some kinds of end
};

/// By the supervisor, for each rank it starts.
struct RankStarted {
  int rank = 0;
  std::string host;
  std::int64_t pid = 0;
};

/// By the supervisor, when a rank has ended. Exactly one of exit_code and signal is set.
struct RankEnded {
  int rank = 0;
  std::string host;
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool stopped_by_us = false;  ///< terminated because another rank failed or a stop was requested
  std::string phase;           ///< from the beacon; "" without one
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> step;
  std::string reason;  ///< one readable line: "killed by signal 9, out of memory (...)"
  std::string
      lost_output;    ///< why its log lacks output: "rank-0000.log: no space left on device; 3 MB of ..."
  std::string stack;  ///< of a rank that was stopped because of a hang: "recv (socket.py:12), called by ..."
};

/// By the supervisor, when it starts to terminate the ranks: "rank 1 failed", "interrupted", "time limit".
struct Stopping {
  std::string reason;
};

/// The result of an attempt.
enum class Outcome { done, failed, stopped };
std::string_view to_text(Outcome outcome);
/// Exit code of a run that was stopped at its time limit. If the ranks saved before, the exit code is 75.
inline constexpr int kOutOfTime = 1;

/// By the supervisor of each node, as the last event.
struct AttemptEnded {
  int node = 0;
  Outcome outcome = Outcome::done;
  int exit_code = 0;
  std::optional<int> first_rank;  ///< the rank whose end determined the result
  std::string reason;
  std::string
      job_state;  ///< the scheduler's state of the job when a signal ended it: "TIMEOUT"; "" if not queried
  /// That rank was killed from outside or stopped responding; a dying node looks the same.
  bool is_loss = false;
  std::string lost_output;  ///< "rank 0 (n1): ...": the first log that lacks output, or why the run folder is
                            ///< lost; "" for complete logs
};

/// By rank 0 of the trainer, when a checkpoint is committed.
struct CheckpointSaved {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::string folder;
  std::int64_t bytes = 0;
  double seconds = 0;  ///< from the start of the save to the commit
  double stall_s = 0;  ///< how long the training was blocked by it
};

/// By rank 0 of the trainer, after it has loaded one.
struct Resumed {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::string folder;
};

/// By the submitter of an attempt, before it calls the scheduler: from here on a job may exist.
struct Submitting {
  std::string host;
  std::string comment;  ///< identifies the job in the scheduler
  int tasks = 1;        ///< for an array: number of supervisors that will report a start
};

/// By the submitter, once the scheduler has accepted the job.
struct Submitted {
  std::string scheduler_job;
  int links = 0;                        ///< maximum number of jobs in the chain; 0 without a chain
  std::vector<std::string> after = {};  ///< run folders that must be done before it starts
};

/// By the submitter, if the scheduler has rejected the job or could not be reached.
struct SubmitFailed {
  std::string reason;
  bool is_withdrawn = false;  ///< jobs of the array that were accepted before have been cancelled
};

/// By whoever requests the attempt's end, before the scheduler is called.
struct CancelRequested {
  std::string user;
  std::string host;
};

/// By the job that has ended, or by the next one of its chain: the run is not continued automatically.
struct NoNextAttempt {
  std::string reason;
};

/// By the job that has ended: it asks the scheduler to restart it. Without this event the run itself did not
/// request the restart.
struct RequeueRequested {
  std::string job;
};

/// By the supervisor, for each node: files copied to its local disk before the ranks started, or copied back
/// after they ended.
struct Staged {
  int node = 0;
  std::string host;
  bool is_stage_out = false;
  std::string folder;  ///< on that node
  std::int64_t files = 0;
  std::int64_t bytes = 0;
  double seconds = 0;
  std::int64_t received_bytes = 0;  ///< of `bytes`, from other nodes
  std::int64_t cached_bytes = 0;    ///< of datasets that were on the node already; not in `bytes`
};

/// By the process that samples a node, when it starts.
struct NodeSampled {
  int node = 0;
  std::string host;
  int cpus = 0;                      ///< cores that the ranks may use; 0: unknown
  std::vector<std::string> sources;  ///< "network: net.eth0", "energy: cpu: RAPL package-0"
};

/// By the process that samples a node, for each of its GPUs.
struct GpuFound {
  int node = 0;
  std::string host;
  int gpu = 0;             ///< its number in the columns of system-<node>.csv
  std::string name;        ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;        ///< "GPU-5c0e..."; "" if unknown
  std::string pci_bus_id;  ///< "00000000:3B:00.0"; "" if unknown
  int mig_devices = 0;     ///< number of MIG devices; 0: not divided
};

/// By the process that samples a node, when the driver reports a critical error of a GPU.
struct GpuFault {
  int node = 0;
  std::string host;
  int gpu = 0;
  std::string pci_bus_id;  ///< "" if unknown
  int code = 0;            ///< NVIDIA's number: 79
};

Status write_event(EventWriter& out, const NodeSampled& event);
Status write_event(EventWriter& out, const GpuFound& event);
Status write_event(EventWriter& out, const GpuFault& event);
Status write_event(EventWriter& out, const Staged& event);
Status write_event(EventWriter& out, const Submitting& event);
Status write_event(EventWriter& out, const Submitted& event);
Status write_event(EventWriter& out, const SubmitFailed& event);
Status write_event(EventWriter& out, const CancelRequested& event);
Status write_event(EventWriter& out, const NoNextAttempt& event);
Status write_event(EventWriter& out, const RequeueRequested& event);
Status write_event(EventWriter& out, const AttemptStarted& event);
Status write_event(EventWriter& out, const RankStarted& event);
Status write_event(EventWriter& out, const RankEnded& event);
Status write_event(EventWriter& out, const Stopping& event);
Status write_event(EventWriter& out, const AttemptEnded& event);
Status write_event(EventWriter& out, const CheckpointSaved& event);
Status write_event(EventWriter& out, const Resumed& event);

/// The event as a struct; nullopt if it is of a different kind or lacks its identifying fields.
std::optional<NodeSampled> node_sampled(const Event& event);
std::optional<GpuFound> gpu_found(const Event& event);
std::optional<GpuFault> gpu_fault(const Event& event);
std::optional<Staged> staged(const Event& event);
std::optional<Submitting> submitting(const Event& event);
std::optional<Submitted> submitted(const Event& event);
std::optional<SubmitFailed> submit_failed(const Event& event);
std::optional<CancelRequested> cancel_requested(const Event& event);
std::optional<NoNextAttempt> no_next_attempt(const Event& event);
std::optional<RequeueRequested> requeue_requested(const Event& event);
std::optional<AttemptStarted> attempt_started(const Event& event);
std::optional<RankStarted> rank_started(const Event& event);
std::optional<RankEnded> rank_ended(const Event& event);
std::optional<Stopping> stopping(const Event& event);
std::optional<AttemptEnded> attempt_ended(const Event& event);
std::optional<CheckpointSaved> checkpoint_saved(const Event& event);
std::optional<Resumed> resumed(const Event& event);

}  // namespace stoker::record
