// All facts of a report about one run, as plain values: collected once, then rendered as text, JSON or HTML,
// so that the three agree. Used by `stoker report`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/job.h"
#include "observe/node_measures.h"
#include "record/capsule.h"
#include "record/media/media.h"
#include "record/run_events.h"
#include "record/run_folder.h"
#include "record/staged_data.h"
#include "record/state.h"

namespace stoker::report {

/// One attempt at the run.
struct AttemptFacts {
  int number = 0;
  double started = 0;  ///< Unix seconds; 0 without a start event
  double ended = 0;    ///< its end, or its last heartbeat
  record::State state = record::State::lost;
  std::optional<int> exit_code;
  std::optional<int> first_rank;
  std::string reason;
  std::string ending;  ///< "preempted", "timeout", ... when Slurm ended it; more specific than the state
  std::string scheduler_job;
  bool is_loss = false;                     ///< it has no end event, or one caused by a node failure
  std::optional<std::int64_t> resume_step;  ///< it resumed from this step
  std::string resume;                       ///< the checkpoint that it resumed from; "" without one
  int world_size = 0;
  std::vector<std::string> hosts;
  std::vector<record::RankEnded> ends;
  std::vector<job::Difference> changes;  ///< of its job compared with the previous attempt

  bool is_resumed() const { return resume_step.has_value() || !resume.empty(); }
  double seconds() const { return ended > started && started > 0 ? ended - started : 0; }
};

/// The state of a run as `stoker status` shows it, from its records and its scheduler (launch::query_life).
struct JudgedState {
  std::string state;  ///< "done", "preempted", "out of memory", ...
  std::string note;   ///< why; may be ""
  bool is_over = false;
  record::RunState records;
};

/// One optimizer step, over all ranks that recorded it.
struct StepPoint {
  std::int64_t step = 0;
  double run_time = 0;  ///< running time at its end, without pauses between attempts
  double loss = 0;      ///< mean over the samples of all ranks
  double top1 = 0;      ///< the same; nan when not recorded
  double lr = 0;
  double samples = 0;  ///< sum over ranks
  double seconds = 0;  ///< of the slowest rank
  int attempt = 0;
};

/// A row of epochs.csv.
struct EpochPoint {
  std::int64_t epoch = 0;  ///< counts from 0
  std::int64_t step = 0;
  double train_loss = 0;
  double train_top1 = 0;
  double val_loss = 0;
  double val_top1 = 0;
  double val_top5 = 0;
  double seconds = 0;
  double samples_per_s = 0;
  double validation_s = 0;
  int attempt = 0;
};

/// The data of the curves. For steps repeated after a resume, only the last values.
struct Learning {
  bool has_metrics = false;  ///< the command records metrics, possibly without a step yet
  std::vector<StepPoint> steps;
  std::vector<EpochPoint> epochs;
  std::int64_t redone_steps = 0;         ///< repeated after a resume
  std::vector<std::int64_t> resumed_at;  ///< steps
};

/// A metric at one step, over the ranks that recorded it.
struct MetricPoint {
  std::int64_t step = 0;
  double run_time = 0;
  double mean = 0;  ///< nan if the value of a rank is
  double lowest = 0;
  double highest = 0;
  int ranks = 0;
  int attempt = 0;
};

/// A metric that a program logged, or that was found in its log or its tracker's files.
struct MetricCurve {
  std::string name;
  std::vector<MetricPoint> points;  ///< by step; for repeated steps, only the last values
};

/// A value of the whole run (stoker.summary), of its last attempt that has it.
struct SummaryValue {
  std::string name;
  MetricPoint value;
};

/// A logged image.
struct LoggedImageFacts {
  std::int64_t step = 0;
  int attempt = 0;
  std::string type;  ///< "png", "jpeg"
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::string bytes;
};

/// The images of one name, of the lowest rank that logged it.
struct ImageSeries {
  std::string name;
  int rank = 0;
  std::size_t recorded = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<LoggedImageFacts> shown;  ///< a few of them, by step
};

/// How logged values were distributed at a step. The values are nan without a finite one.
struct DistributionPoint {
  std::int64_t step = 0;
  int attempt = 0;
  double lowest = 0;
  double quarter = 0;
  double median = 0;
  double three_quarters = 0;
  double highest = 0;
  std::uint64_t count = 0;
  std::uint64_t not_finite = 0;
};

/// The histograms of one name, of the lowest rank that logged it.
struct HistogramSeries {
  std::string name;
  int rank = 0;
  std::size_t recorded = 0;
  std::vector<DistributionPoint> points;  ///< by step; of an array's task only the last one
  record::ValueHistogram last;
};

/// Where a second of training can go.
enum class TimePart {
  data,
  forward,
  backward,
  communication,
  optimizer,
  checkpoint,
  other,       ///< step time in none of the above
  validation,  ///< between steps
  outside,     ///< start-up, shutdown and time between steps
};
inline constexpr TimePart kStepParts[] = {TimePart::data,          TimePart::forward,   TimePart::backward,
                                          TimePart::communication, TimePart::optimizer, TimePart::checkpoint,
                                          TimePart::other};
inline constexpr TimePart kAllParts[] = {TimePart::data,          TimePart::forward,    TimePart::backward,
                                         TimePart::communication, TimePart::optimizer,  TimePart::checkpoint,
                                         TimePart::other,         TimePart::validation, TimePart::outside};
/// "wait for data", "forward", ...: for people.
std::string_view to_text(TimePart part);
/// "data", "forward", ...: for JSON and style classes.
std::string_view key_of(TimePart part);

/// Seconds per part of one rank, over all attempts, with repeated steps.
struct RankTime {
  int rank = 0;
  std::int64_t steps = 0;
  double seconds[std::size(kAllParts)] = {};  ///< by Part; validation and outside only in the whole
  double median_step_s = 0;

  double seconds_in(TimePart part) const { return seconds[static_cast<int>(part)]; }
  double step_total() const;
  double total() const;
};

/// Where the time went.
struct TimeSplit {
  std::vector<RankTime> ranks;    ///< steps only
  std::optional<RankTime> whole;  ///< every second of all attempts, on rank 0
};

/// A line over running time.
struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
};

/// One chart about the machine.
struct SystemChart {
  std::string title;   ///< "CPU use"
  std::string unit;    ///< "cores"
  std::string source;  ///< "system-0000.csv: rank0.cpu_cores"
  std::vector<Series> series;
  double limit = 0;  ///< a line for full use; 0: none
  /// The number of series that the three series "lowest", "mean" and "highest" summarize; 0: not summarized.
  std::size_t summarized = 0;
};

/// An Xid error of a GPU.
struct GpuError {
  double time = 0;  ///< Unix seconds
  int code = 0;
};

/// One GPU over all attempts. Values that were not recorded are nan.
struct GpuFacts {
  int node = 0;
  int gpu = 0;       ///< its number in system-<node>.csv
  std::string host;  ///< "" if unknown
  std::string name;  ///< "NVIDIA H100 80GB HBM3"; "" if unknown
  std::string uuid;
  std::string pci_bus_id;
  int mig_devices = 0;
  double busy_mean = 0;  ///< percent
  double busy_peak = 0;
  double memory_peak = 0;   ///< bytes
  double memory_total = 0;  ///< bytes
  double power_mean = 0;    ///< W
  double power_peak = 0;
  double sm_clock_mean = 0;  ///< MHz
  double memory_clock_mean = 0;
  double temperature_peak = 0;                                  ///< degrees Celsius
  double throttled_share = 0;                                   ///< of the samples
  std::vector<std::pair<std::string, double>> throttle_shares;  ///< by reason; a sample may have several
  double ecc_errors = 0;                                        ///< uncorrected memory errors during the run
  std::vector<GpuError> xids;
};

/// A span of a traced step. Seconds since the first rank began the step.
struct TracedSpan {
  std::string name;
  double begin_s = 0;
  double end_s = 0;
};

/// A rank's part of a traced step.
struct TracedRank {
  int rank = 0;
  double begin_s = 0;
  double end_s = 0;
  std::vector<TracedSpan> phases;     ///< of the training thread, sequential
  std::vector<TracedSpan> exchanges;  ///< communication between ranks, concurrent with the phases
};

/// The step of median duration among the steps traced by all ranks (`record.trace`).
struct TracedStep {
  int attempt = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::size_t candidates = 0;  ///< steps traced by all ranks, without the first if there are more
  double seconds = 0;          ///< from the first rank's begin to the last one's end
  std::vector<TracedRank> ranks;
};

/// A quantity of a node (observe::kNodeMeasures) over all samples. Values that were not recorded are nan.
struct NodeUse {
  double mean = 0;
  double peak = 0;
  double total = 0;  ///< of a rate: its sum over time
};

/// One node over all attempts. Values that were not recorded are nan.
struct NodeFacts {
  int node = 0;
  std::string host;          ///< "" if unknown
  double seconds = 0;        ///< between its first and last sample, summed over attempts
  double cpus = 0;           ///< cores that its ranks may use
  double ranks_cpu_s = 0;    ///< CPU time of its ranks
  double memory_limit = 0;   ///< bytes: of the cgroup, else of the host
  double oom_kills = 0;      ///< during the run
  double sampler_cpu_s = 0;  ///< CPU time of the sampler
  std::vector<NodeUse> use;  ///< by index in kNodeMeasures
  observe::NodeEnergy energy;
  std::vector<std::string> sources;  ///< what was sampled: "network: net.eth0"

  const NodeUse& used(std::string_view key) const { return use[observe::measure_index(key)]; }
};

/// What the run used of what it asked for. Values that are unknown are nan.
struct Efficiency {
  double cpu_used_s = 0;         ///< CPU time of the ranks, in the samples
  double cpu_reserved_s = 0;     ///< the ranks' cores times the sampled time
  double memory_peak = 0;        ///< of the ranks of one node, bytes
  std::string memory_node;       ///< that node
  double memory_asked = 0;       ///< bytes per node
  bool is_memory_limit = false;  ///< `memory_asked` is the limit that the node had; the job asked for none
  double seconds = 0;            ///< of the last attempt
  double time_limit = 0;
  double gpu_busy_mean = 0;  ///< percent, over all GPUs
  std::size_t gpus = 0;
};

/// Data staged in an attempt.
struct StagingFacts {
  int attempt = 0;
  record::StagedData data;
};

struct CheckpointPoint {
  double run_time = 0;
  int attempt = 0;
  record::CheckpointSaved saved;
};

/// The end of a log.
struct LogTail {
  int attempt = 0;
  int rank = 0;
  std::string file;
  std::vector<std::string> lines;  ///< printable
};

/// Why a run failed, as `stoker explain` finds it.
struct CauseFacts {
  std::string rule;                                           ///< "host-memory"
  std::string text;                                           ///< "rank 1 (n2): killed for memory"
  bool is_likely = false;                                     ///< not certain
  std::vector<std::pair<std::string, std::string>> evidence;  ///< place and line
  std::string cure;                                           ///< may be empty
};

struct TaskFacts;

/// All about one run.
struct RunFacts {
  std::string id;
  Path folder;
  record::RunDescription description;
  record::RunState state;
  std::string state_word;     ///< "done", "preempted", "out of memory", ...: the word of `stoker status`
  std::string rerun_command;  ///< starts it again from the beginning, the way it was started
  double now = 0;             ///< when the facts were collected
  double running_s = 0;       ///< sum of the attempts
  double samples_per_s = 0;   ///< over all steps, without validation; 0 without metrics
  std::vector<AttemptFacts> attempts;
  record::Capsule capsule;
  std::optional<job::Job> job;  ///< of the last attempt whose job can be read
  Learning learning;
  std::vector<MetricCurve> metrics;         ///< by name
  std::vector<SummaryValue> summary;        ///< by name
  std::vector<ImageSeries> images;          ///< by name
  std::vector<HistogramSeries> histograms;  ///< by name
  TimeSplit time;
  std::optional<TracedStep> traced;  ///< of the last attempt that has traces
  std::vector<Series> speed;         ///< samples/s
  std::vector<SystemChart> system;
  std::vector<GpuFacts> gpus;            ///< by node and number
  std::vector<NodeFacts> nodes;          ///< that have samples
  std::vector<StagingFacts> staging;     ///< by attempt
  std::optional<Efficiency> efficiency;  ///< of a run with samples
  std::vector<CheckpointPoint> checkpoints;
  std::vector<LogTail> logs;
  std::vector<TaskFacts> tasks;     ///< of an array; see collect_task_run()
  std::optional<CauseFacts> cause;  ///< of a failure
  std::vector<std::string> notes;   ///< unreadable files and warnings

  int resumes() const;
  int world_size() const;
};

/// A task of an array.
struct TaskFacts {
  std::uint32_t number = 0;                                 ///< from 1
  std::vector<std::pair<std::string, std::string>> values;  ///< its row of the table: column, value
  std::string state;                                        ///< "done", "waiting", ...
  std::optional<int> exit_code;
  std::string reason;
  std::string host;
  double started = 0;  ///< Unix seconds; 0: not yet
  double ended = 0;
  RunFacts run;  ///< its own run; without one it has no id, and only the metrics that the task logged

  double seconds() const { return ended > started && started > 0 ? ended - started : 0; }
};

/// What a page has room for. The images that it shows are subtracted.
struct MediaRoom {
  std::size_t names = 24;  ///< with images
  std::size_t images_of_name = 4;
  std::uint64_t image_bytes = 8u << 20;
  bool is_last_only = false;  ///< of images and histograms only the last one of a name
};
/// For all tasks of an array.
inline constexpr MediaRoom kRoomForTasks{
    .names = 96, .images_of_name = 1, .image_bytes = 8u << 20, .is_last_only = true};

/// Reads the run's folder. Damaged and missing parts are skipped and listed in `notes`; there are no errors.
/// Without `judged`, the state is the recorded one.
RunFacts collect_run_facts(const record::RunFolder& run, const record::LivenessOptions& options = {},
                           const std::optional<JudgedState>& judged = std::nullopt);

/// The settings and results of the run of an array's task: without capsule, samples, traces and logs, and
/// with at most `most_points` points per curve, the last one included.
/// Its images and histograms take from `room`, which all tasks share.
RunFacts collect_task_run(const record::RunFolder& run, MediaRoom& room, std::size_t most_points = 500);

/// Adds metrics, images and histograms of the tasks without a separate run to `array.tasks`; `array` has the
/// facts of `run`.
void add_task_metrics(const record::RunFolder& run, RunFacts& array, MediaRoom& room,
                      std::size_t most_points = 500);

}  // namespace stoker::report
