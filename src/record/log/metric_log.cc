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
#include "image/encode.h"
#include "record/media/media.h"
#include "record/points/points.h"
#include "stoker/bytes.h"
#include "stoker/metrics.h"

// Protocol:
//   1. log() formats its lines into `pending_`, and log_histogram() and log_image() theirs into that of a
//      second writer. They never wait for the disk.
//   2. The writer's thread swaps `pending_` for an empty buffer every 50 ms, or at 1 MiB, and appends it with
//      write(2).
//   3. A short or failed write (disk full) keeps the rest, which is retried each second: no line is written
//      twice, and none is cut.
//   4. sync() has the thread call fsync(2) behind what it has written: at checkpoints, and at the end.
//   5. After fork(2) the child abandons the parent's buffer and thread. It opens a separate file on its first
//      value and writes each call at once, since such children usually end without exit handlers.

namespace stoker::record {

namespace {

using namespace std::chrono_literals;

constexpr Duration kWriteEvery = 50ms;
constexpr Duration kRetryEvery = 1s;
// Without new values for this many turns, the thread sleeps until log() wakes it.
constexpr int kIdleTurns = 20;
constexpr std::size_t kHurryAt = 1u << 20;
constexpr Duration kReportEvery = 10s;  // losses of a program that logs faster than the disk writes
constexpr int kMaxProcesses = 100'000;

/// What the files of a writer contain.
struct LoggedKind {
  std::string (*file_name)(int rank, std::string_view writer);
  std::string_view first_line;
  std::string_view noun;        ///< of all
  std::string_view unit;        ///< of several
  std::size_t max_waiting = 0;  ///< bytes
};
constexpr LoggedKind kPoints = {point_file_name, kPointHeader, "metrics", "values", 8u << 20};
constexpr LoggedKind kMedia = {media_file_name, "", "images and histograms", "images and histograms",
                               64u << 20};

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

Status check_pixels(const PixelImage& image) {
  if (image.channels < 1 || image.channels > 4)
    return invalid("has {} channels, must be from 1 to 4", image.channels);
  if (image.width < 1 || image.height < 1) return invalid("has no pixels");
  if (std::max(image.width, image.height) > kLongestImageSide) {
    return invalid("has {} x {} pixels, at most {} on a side are recorded", image.width, image.height,
                   kLongestImageSide)
        .cure("log a smaller image");
  }
  const std::size_t bytes = std::size_t{image.width} * image.height * image.channels;
  if (image.pixels.size() == bytes) return {};
  return invalid("has {} bytes, {} x {} pixels with {} channels need {}", image.pixels.size(), image.width,
                 image.height, image.channels, bytes);
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
  Writer(MetricLogOptions options, const LoggedKind& kind, bool is_forked)
      : options_(std::move(options)), kind_(kind), is_forked_(is_forked) {
    count_forks();
    forks_ = forks.load();
    last_step_ = options_.last_step;
    if (!options_.report) options_.report = print_problem;
  }
  ~Writer() {
    if (const Status status = flush(Deadline::after(2s)); !status.ok())
      options_.report(format("{}; the last {} are lost", status.message(), kind_.noun));
    // A slow disk delays the end of the program no longer.
    if (const Status status = sync(Deadline::after(2s)); !status.ok() && status.code() != Code::timeout)
      options_.report(format("{}", status.message()));
    thread_.request_stop();
    {
      MutexLock lock(mu_);
      wake_.notify_all();
    }
    thread_.join();
    if (!is_failing_ && !is_forked_) report_losses();
  }

  /// Replaced in a forked child.
  static Writer& of_this_process(std::atomic<Writer*>& writer);
  bool is_of_this_process() const { return forks_ == forks.load(std::memory_order_relaxed); }
  bool is_recording() const { return !options_.attempt.empty(); }
  Writer* make_child() const {
    MetricLogOptions options = options_;
    options.last_step = last_step_.load(std::memory_order_relaxed);
    return new Writer(std::move(options), kind_, true);
  }
  std::int64_t last_step() const { return last_step_.load(std::memory_order_relaxed); }

  Status add(std::span<const MetricValue> values, std::optional<std::int64_t> step, bool is_summary);
  /// Records a line.
  void add_line(std::string_view line);
  Status flush(Deadline deadline);
  Status sync(Deadline deadline);
  void sync_later();

 private:
  /// Of the values that were appended.
  void start_writing() STOKER_REQUIRES_LOCK(mu_);
  void hurry_if_large() STOKER_REQUIRES_LOCK(mu_);
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
  const LoggedKind& kind_;
  const bool is_forked_;
  unsigned forks_ = 0;

  std::atomic<std::int64_t> last_step_ = 0;

  Mutex mu_;
  Condition wake_;
  Condition written_;
  std::string pending_ STOKER_GUARDED_BY(mu_);
  std::uint64_t dropped_ STOKER_GUARDED_BY(mu_) = 0;
  std::uint64_t line_bytes_ STOKER_GUARDED_BY(mu_) = 0;  // of add_line()
  bool is_full_ STOKER_GUARDED_BY(mu_) = false;
  bool is_asleep_ STOKER_GUARDED_BY(mu_) = false;
  bool is_hurried_ STOKER_GUARDED_BY(mu_) = false;
  bool is_writing_ STOKER_GUARDED_BY(mu_) = false;
  bool has_thread_ STOKER_GUARDED_BY(mu_) = false;
  std::uint64_t syncs_wanted_ STOKER_GUARDED_BY(mu_) = 0;
  std::uint64_t syncs_done_ STOKER_GUARDED_BY(mu_) = 0;
  Status problem_ STOKER_GUARDED_BY(mu_);
  Status sync_problem_ STOKER_GUARDED_BY(mu_);

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
  start_writing();
  return {};
}

void MetricLog::Writer::add_line(std::string_view line) {
  {
    MutexLock lock(mu_);
    if (!is_recording() || is_full_) return;
    is_full_ = line_bytes_ + line.size() > options_.max_media_bytes;
    if (!is_full_) {
      if (pending_.size() > kind_.max_waiting) {
        ++dropped_;
        return;
      }
      line_bytes_ += line.size();
      pending_ += line;
      hurry_if_large();
      return start_writing();
    }
  }
  options_.report(format("{}: {} of {} are recorded, the most of one process; further ones are left out",
                         printable((options_.attempt / kind_.file_name(options_.rank, "")).string()),
                         rounded(ByteCount{options_.max_media_bytes}), kind_.noun));
}

void MetricLog::Writer::start_writing() {
  if (is_forked_) {
    writing_ += std::exchange(pending_, {});
    (void)write_some();
    return;
  }
  if (!has_thread_) {
    has_thread_ = true;
    thread_ = Thread([this](const StopToken& stop) { run(stop); });
  }
  if (!is_asleep_) return;
  is_asleep_ = false;
  wake_.notify_one();
}

void MetricLog::Writer::hurry_if_large() {
  if (pending_.size() < kHurryAt || is_hurried_ || is_forked_ || !problem_.ok()) return;
  is_hurried_ = true;
  wake_.notify_one();
}

void MetricLog::Writer::append(std::span<const MetricValue> values, std::optional<std::int64_t> step) {
  if (pending_.size() > kind_.max_waiting) {
    dropped_ += values.size();
    return;
  }
  const double time = unix_now();
  for (const MetricValue& value : values)
    append_point({.time = time, .step = step, .value = value.value, .metric = value.metric}, &pending_);
  hurry_if_large();
}

void MetricLog::Writer::run(StopToken stop) {
  // The program's signals belong to its own threads.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  int idle_turns = 0;
  for (;;) {
    const bool is_stopping = stop.stop_requested();
    std::uint64_t syncs = 0;  // that this turn does
    {
      MutexLock lock(mu_);
      if (writing_.empty()) writing_.swap(pending_);
      is_writing_ = !writing_.empty();
      is_hurried_ = false;
      // Values that wait were logged before the request, perhaps.
      if (pending_.empty()) syncs = syncs_wanted_ - syncs_done_;
    }
    idle_turns = writing_.empty() ? idle_turns + 1 : 0;
    const bool is_written = write_some();
    const bool is_synced = is_written && syncs > 0;
    const Status synced = is_synced && file_.fd() >= 0 ? file_.sync() : Status();
    MutexLock lock(mu_);
    if (is_synced) {
      syncs_done_ += syncs;
      sync_problem_ = synced;
    }
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
    const Path path = options_.attempt / kind_.file_name(options_.rank, writer);
    taken = File::create_new(path).status();
    if (taken.code() == Code::exists) continue;
    if (!taken.ok()) return taken;
    STOKER_ASSIGN_OR_RETURN(file, File::open_append(path));
    file_ = std::move(file);
    if (!kind_.first_line.empty()) writing_.insert(0, format("{}\n", kind_.first_line));
    return {};
  }
  return taken;
}

void MetricLog::Writer::report_failure(const Status& problem) {
  // A forked child holds the lock and has no thread that waits for it.
  if (!is_failing_)
    options_.report(format("{}; {} wait in memory until they can be written", problem.message(), kind_.noun));
  is_failing_ = true;
  if (is_forked_) {
    if (writing_.size() > kind_.max_waiting) writing_.clear();
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
  options_.report(format("{}: {} are written again; {} {} were lost meanwhile",
                         printable(file_.path().string()), kind_.noun, grouped(dropped), kind_.unit));
}

void MetricLog::Writer::report_losses() {
  std::uint64_t dropped = 0;
  {
    MutexLock lock(mu_);
    dropped = std::exchange(dropped_, 0);
  }
  if (dropped == 0) return;
  next_report_ = RealClock().mono() + kReportEvery;
  options_.report(format("{}: {} {} are lost: they are logged faster than they can be written",
                         printable(file_.path().string()), grouped(dropped), kind_.unit));
}

Status MetricLog::Writer::flush(Deadline deadline) {
  MutexLock lock(mu_);
  if (is_forked_ || !has_thread_) return {};
  while (!pending_.empty() || is_writing_) {
    if (!problem_.ok()) return problem_;
    if (deadline.passed()) return timeout("{} of rank {}: not written yet", kind_.noun, options_.rank);
    is_hurried_ = true;
    is_asleep_ = false;
    wake_.notify_all();
    written_.wait(mu_, deadline);
  }
  return problem_;
}

Status MetricLog::Writer::sync(Deadline deadline) {
  STOKER_RETURN_IF_ERROR(flush(deadline));
  MutexLock lock(mu_);
  if (is_forked_ || !has_thread_) return {};
  const std::uint64_t wanted = ++syncs_wanted_;
  while (syncs_done_ < wanted) {
    if (!problem_.ok()) return problem_;
    if (deadline.passed()) return timeout("{} of rank {}: not synced yet", kind_.noun, options_.rank);
    is_hurried_ = true;
    is_asleep_ = false;
    wake_.notify_all();
    written_.wait(mu_, deadline);
  }
  return sync_problem_;
}

void MetricLog::Writer::sync_later() {
  MutexLock lock(mu_);
  if (is_forked_ || !has_thread_) return;
  syncs_wanted_ += 1;
  is_hurried_ = true;
  is_asleep_ = false;
  wake_.notify_all();
}

MetricLog MetricLog::open() {
  MetricLogOptions options;
  options.attempt = environment_value("STOKER_ATTEMPT_DIR").value_or("");
  options.rank = index_of_rank();
  options.last_step = step_of_checkpoint(environment_value("STOKER_RESUME").value_or(""));
  return MetricLog(options);
}

MetricLog::MetricLog(const MetricLogOptions& options)
    : points_(new Writer(options, kPoints, false)), media_(new Writer(options, kMedia, false)) {}

MetricLog::MetricLog(MetricLog&& other) noexcept
    : points_(other.points_.exchange(nullptr)), media_(other.media_.exchange(nullptr)) {}

MetricLog& MetricLog::operator=(MetricLog&& other) noexcept {
  MetricLog old(std::move(*this));
  points_ = other.points_.exchange(nullptr);
  media_ = other.media_.exchange(nullptr);
  return *this;
}

// The parent's writers of a forked child are leaked: their threads do not exist here, and their locks may be
// taken.
MetricLog::~MetricLog() {
  for (Writer* writer : {points_.load(), media_.load()}) {
    if (writer != nullptr && writer->is_of_this_process()) delete writer;
  }
}

MetricLog::Writer& MetricLog::Writer::of_this_process(std::atomic<Writer*>& writer) {
  Writer* current = writer.load();
  if (current->is_of_this_process()) return *current;
  Writer* own = current->make_child();
  if (writer.compare_exchange_strong(current, own)) return *own;
  delete own;
  return *current;
}

MetricLog::Writer& MetricLog::points() { return Writer::of_this_process(points_); }
MetricLog::Writer& MetricLog::media() { return Writer::of_this_process(media_); }

bool MetricLog::is_recording() const { return points_.load()->is_recording(); }

Status MetricLog::log(std::span<const MetricValue> values, std::optional<std::int64_t> step) {
  return points().add(values, step, false);
}

Status MetricLog::summary(std::span<const MetricValue> values) {
  return points().add(values, std::nullopt, true);
}

template <typename Logged>
Status MetricLog::log_media(std::string_view name, std::optional<std::int64_t> step, Result<Logged> content) {
  STOKER_RETURN_IF_ERROR(check_metric_name(name));
  if (step && *step < 0) return invalid("step {}: must not be negative", *step);
  if (!content.ok()) {
    constexpr bool kIsHistogram = std::is_same_v<Logged, ValueHistogram>;
    return content.status().with_context(
        format("{} '{}'", kIsHistogram ? "histogram" : "image", printable(name)));
  }
  if (!is_recording()) return {};
  media().add_line(media_line({.time = unix_now(),
                               .step = step.value_or(points().last_step()),
                               .name = std::string(name),
                               .content = *std::move(content)}));
  return {};
}

Status MetricLog::log_histogram(std::string_view name, std::span<const double> values,
                                std::optional<std::int64_t> step, int bins) {
  return log_media(name, step, histogram_of(values, bins));
}

Status MetricLog::log_histogram(std::string_view name, std::span<const float> values,
                                std::optional<std::int64_t> step, int bins) {
  return log_media(name, step, histogram_of(values, bins));
}

Status MetricLog::log_image(std::string_view name, std::span<const std::byte> file,
                            std::optional<std::int64_t> step) {
  return log_media(name, step, image_of(file));
}

Status MetricLog::log_image(std::string_view name, const PixelImage& image,
                            std::optional<std::int64_t> step) {
  STOKER_RETURN_IF_ERROR(check_metric_name(name));
  STOKER_RETURN_IF_ERROR(check_pixels(image).with_context(format("image '{}'", printable(name))));
  STOKER_ASSIGN_OR_RETURN(file, image::encode_png(image.width, image.height, image.channels, image.pixels));
  return log_image(name, file, step);
}

Status MetricLog::sync(Deadline deadline) {
  STOKER_RETURN_IF_ERROR(points().sync(deadline));
  return media().sync(deadline);
}

void MetricLog::sync_later() {
  points().sync_later();
  media().sync_later();
}

Status MetricLog::flush(Deadline deadline) {
  STOKER_RETURN_IF_ERROR(points().flush(deadline));
  return media().flush(deadline);
}

}  // namespace stoker::record
