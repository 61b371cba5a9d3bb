#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/process.h"
#include "base/thread.h"
#include "record/points/points.h"
#include "stoker/metrics.h"

// Protocol:
//   1. log() formats its lines into `pending_`. It never waits for the disk.
//   2. The writer's thread swaps `pending_` for an empty buffer every 50 ms, or at 1 MiB, and appends it with
//      write(2).
//   3. A short or failed write (disk full) keeps the rest, which is retried each second: no line is written
//      twice, and none is cut.
//   4. After fork(2) the child abandons the parent's buffer and thread. It opens a separate file on its first
//      value and writes each call at once, since such children usually end without exit handlers.

namespace stoker::record {

namespace {

using namespace std::chrono_literals;

constexpr Duration kWriteEvery = 50ms;
constexpr Duration kRetryEvery = 1s;
// Without new values for this many turns, the thread sleeps until log() wakes it.
constexpr int kIdleTurns = 20;
constexpr std::size_t kMaxWaiting = 8u << 20;
constexpr std::size_t kHurryAt = 1u << 20;
constexpr Duration kReportEvery = 10s;  // losses of a program that logs faster than the disk writes
constexpr int kMaxProcesses = 100'000;

// Increases in each forked child.
std::atomic<unsigned> forks = 0;

void count_forks() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  (void)registered;
}

std::int64_t step_of_checkpoint(const std::string& folder) {
  constexpr std::string_view kStep = "step-";
  const std::string name = Path(folder).filename().string();
  std::int64_t step = 0;
  return name.starts_with(kStep) && parse_number(name.substr(kStep.size()), &step) && step > 0 ? step : 0;
}

int index_of_rank() {
  // Under srun in a batch script of the user, only Slurm's number is set.
  for (const char* name : {"STOKER_TASK", "RANK", "SLURM_PROCID"}) {
    std::int64_t number = 0;
    if (parse_number(environment_value(name).value_or(""), &number) && number >= 0 && number < 10'000'000)
      return static_cast<int>(number);
  }
  return 0;
}

void print_problem(std::string_view problem) {
  const std::string line = format("stoker: {}\n", problem);
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

double unix_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

/// Of one process. A forked child never locks or destroys the parent's.
class MetricLog::Writer {
 public:
  Writer(MetricLogOptions options, bool is_forked) : options_(std::move(options)), is_forked_(is_forked) {
    count_forks();
    forks_ = forks.load();
    last_step_ = options_.last_step;
    if (!options_.report) options_.report = print_problem;
  }
  ~Writer() {
    if (const Status status = flush(Deadline::after(2s)); !status.ok())
      options_.report(format("{}; the last metrics are lost", status.message()));
    thread_.request_stop();
    {
      MutexLock lock(mu_);
      wake_.notify_all();
    }
    thread_.join();
    if (!is_failing_ && !is_forked_) report_losses();
  }

  bool is_of_this_process() const { return forks_ == forks.load(std::memory_order_relaxed); }
  bool is_recording() const { return !options_.attempt.empty(); }
  Writer* make_child() const {
    MetricLogOptions options = options_;
    options.last_step = last_step_.load(std::memory_order_relaxed);
    return new Writer(std::move(options), true);
  }

  Status add(std::span<const MetricValue> values, std::optional<std::int64_t> step, bool is_summary);
  Status flush(Deadline deadline);

 private:
  void append(std::span<const MetricValue> values, std::optional<std::int64_t> step)
      STOKER_REQUIRES_LOCK(mu_);
  void run(StopToken stop);
  /// Writes `writing_`. Returns false while the disk refuses it.
  bool write_some();
  Status open_file();
  void report_failure(const Status& problem);
  void report_success();
  void report_losses();

  // Constant after construction.
  MetricLogOptions options_;
  const bool is_forked_;
  unsigned forks_ = 0;

  std::atomic<std::int64_t> last_step_ = 0;

  Mutex mu_;
  Condition wake_;
  Condition written_;
  std::string pending_ STOKER_GUARDED_BY(mu_);
  std::uint64_t dropped_ STOKER_GUARDED_BY(mu_) = 0;
  bool is_asleep_ STOKER_GUARDED_BY(mu_) = false;
  bool is_hurried_ STOKER_GUARDED_BY(mu_) = false;
  bool is_writing_ STOKER_GUARDED_BY(mu_) = false;
  bool has_thread_ STOKER_GUARDED_BY(mu_) = false;
  Status problem_ STOKER_GUARDED_BY(mu_);

  // Of the thread that writes.
  File file_;
  std::string writing_;
  bool is_failing_ = false;
  MonoTime next_report_;

  Thread thread_;  // last member: the thread uses everything above
};

Status MetricLog::Writer::add(std::span<const MetricValue> values, std::optional<std::int64_t> step,
                              bool is_summary) {
  for (const MetricValue& value : values) {
    if (Status status = check_metric_name(value.metric); !status.ok()) return status;
  }
  if (step && *step < 0) return invalid("step {}: must not be negative", *step);
  MutexLock lock(mu_);
  if (!is_summary) {
    if (!step) step = last_step_.load(std::memory_order_relaxed) + 1;
    last_step_.store(*step, std::memory_order_relaxed);
  }
  if (!is_recording()) return {};
  append(values, step);
  if (is_forked_) {
    writing_ += std::exchange(pending_, {});
    (void)write_some();
    return {};
  }
  if (!has_thread_) {
    has_thread_ = true;
    thread_ = Thread([this](const StopToken& stop) { run(stop); });
  }
  if (is_asleep_) {
    is_asleep_ = false;
    wake_.notify_one();
  }
  return {};
}

void MetricLog::Writer::append(std::span<const MetricValue> values, std::optional<std::int64_t> step) {
  if (pending_.size() > kMaxWaiting) {
    dropped_ += values.size();
    return;
  }
  const double time = unix_now();
  for (const MetricValue& value : values)
    append_point({.time = time, .step = step, .value = value.value, .metric = value.metric}, &pending_);
  if (pending_.size() < kHurryAt || is_hurried_ || is_forked_ || !problem_.ok()) return;
  is_hurried_ = true;
  wake_.notify_one();
}

void MetricLog::Writer::run(StopToken stop) {
  // The program's signals belong to its own threads.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  int idle_turns = 0;
  for (;;) {
    const bool is_stopping = stop.stop_requested();
    {
      MutexLock lock(mu_);
      if (writing_.empty()) writing_.swap(pending_);
      is_writing_ = !writing_.empty();
      is_hurried_ = false;
    }
    idle_turns = writing_.empty() ? idle_turns + 1 : 0;
    const bool is_written = write_some();
    MutexLock lock(mu_);
    is_writing_ = !writing_.empty();
    written_.notify_all();
    if (is_stopping) return;
    const Deadline pause = idle_turns >= kIdleTurns ? Deadline::never()
                                                    : Deadline::after(is_written ? kWriteEvery : kRetryEvery);
    is_asleep_ = idle_turns >= kIdleTurns;
    while (!pause.passed() && !is_hurried_ && !stop.stop_requested()) {
      wake_.wait(mu_, pause);
      if (idle_turns >= kIdleTurns && !is_asleep_) break;
    }
    is_asleep_ = false;
  }
}

bool MetricLog::Writer::write_some() {
  if (writing_.empty()) return true;
  Status status = file_.fd() < 0 ? open_file() : Status();
  std::size_t done = 0;
  while (status.ok() && done < writing_.size()) {
    const ssize_t n = ::write(file_.fd(), writing_.data() + done, writing_.size() - done);
    if (n > 0) done += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR) status = posix_error(printable(file_.path().string()), errno);
  }
  writing_.erase(0, done);
  status.ok() ? report_success() : report_failure(status);
  return status.ok();
}

// The first process of a rank has no number; further ones, and forked children, have the next free one.
Status MetricLog::Writer::open_file() {
  Status taken;
  for (int process = 1; process < kMaxProcesses; ++process) {
    const std::string writer = process == 1 ? "" : std::to_string(process);
    const Path path = options_.attempt / point_file_name(options_.rank, writer);
    taken = File::create_new(path).status();
    if (taken.code() == Code::exists) continue;
    if (!taken.ok()) return taken;
    STOKER_ASSIGN_OR_RETURN(file, File::open_append(path));
    file_ = std::move(file);
    writing_.insert(0, format("{}\n", kPointHeader));
    return {};
  }
  return taken;
}

void MetricLog::Writer::report_failure(const Status& problem) {
  // A forked child holds the lock and has no thread that waits for it.
  if (!is_failing_)
    options_.report(format("{}; metrics wait in memory until they can be written", problem.message()));
  is_failing_ = true;
  if (is_forked_) {
    if (writing_.size() > kMaxWaiting) writing_.clear();
    return;
  }
  MutexLock lock(mu_);
  problem_ = problem;
}

void MetricLog::Writer::report_success() {
  if (!is_failing_) {
    if (!is_forked_ && RealClock().mono() >= next_report_) report_losses();
    return;
  }
  is_failing_ = false;
  if (is_forked_) return;
  std::uint64_t dropped = 0;
  {
    MutexLock lock(mu_);
    problem_ = Status();
    dropped = std::exchange(dropped_, 0);
  }
  if (dropped == 0) return;
  options_.report(format("{}: metrics are written again; {} values were lost meanwhile",
                         printable(file_.path().string()), grouped(dropped)));
}

void MetricLog::Writer::report_losses() {
  std::uint64_t dropped = 0;
  {
    MutexLock lock(mu_);
    dropped = std::exchange(dropped_, 0);
  }
  if (dropped == 0) return;
  next_report_ = RealClock().mono() + kReportEvery;
  options_.report(format("{}: {} values are lost: they are logged faster than they can be written",
                         printable(file_.path().string()), grouped(dropped)));
}

Status MetricLog::Writer::flush(Deadline deadline) {
  MutexLock lock(mu_);
  if (is_forked_ || !has_thread_) return {};
  while (!pending_.empty() || is_writing_) {
    if (!problem_.ok()) return problem_;
    if (deadline.passed()) return timeout("metrics of rank {}: not written yet", options_.rank);
    is_hurried_ = true;
    is_asleep_ = false;
    wake_.notify_all();
    written_.wait(mu_, deadline);
  }
  return problem_;
}

MetricLog MetricLog::open() {
  MetricLogOptions options;
  options.attempt = environment_value("STOKER_ATTEMPT_DIR").value_or("");
  options.rank = index_of_rank();
  options.last_step = step_of_checkpoint(environment_value("STOKER_RESUME").value_or(""));
  return MetricLog(options);
}

MetricLog::MetricLog(const MetricLogOptions& options) : writer_(new Writer(options, false)) {}

MetricLog::MetricLog(MetricLog&& other) noexcept : writer_(other.writer_.exchange(nullptr)) {}

MetricLog& MetricLog::operator=(MetricLog&& other) noexcept {
  MetricLog old(std::move(*this));
  writer_ = other.writer_.exchange(nullptr);
  return *this;
}

// The parent's writer of a forked child is leaked: its thread does not exist here, and its lock may be taken.
MetricLog::~MetricLog() {
  Writer* writer = writer_.load();
  if (writer != nullptr && writer->is_of_this_process()) delete writer;
}

MetricLog::Writer& MetricLog::writer() {
  Writer* current = writer_.load();
  if (current->is_of_this_process()) return *current;
  Writer* own = current->make_child();
  if (writer_.compare_exchange_strong(current, own)) return *own;
  delete own;
  return *current;
}

bool MetricLog::is_recording() const { return writer_.load()->is_recording(); }

Status MetricLog::log(std::span<const MetricValue> values, std::optional<std::int64_t> step) {
  return writer().add(values, step, false);
}

Status MetricLog::summary(std::span<const MetricValue> values) {
  return writer().add(values, std::nullopt, true);
}

Status MetricLog::flush(Deadline deadline) { return writer().flush(deadline); }

}  // namespace stoker::record
