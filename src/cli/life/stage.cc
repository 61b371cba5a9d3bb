// `stoker stage ATTEMPT`: docs/commands/stage.md
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <poll.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/process.h"
#include "base/thread.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "job/job.h"
#include "loader/advice.h"
#include "net/port.h"
#include "rank/environment.h"
#include "rank/process/signals.h"
#include "record/run_folder.h"
#include "stage/cache/place_dataset.h"
#include "stage/node.h"
#include "stage/stage_report.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

struct StageArguments {
  std::string attempt;
};

constexpr const char* kMemoryDisk = "/dev/shm";
// Of a script, whose epochs are unknown.
constexpr std::uint64_t kAssumedEpochs = 10;
// Interval of progress lines in a log.
constexpr Duration kReportInterval = 10s;
constexpr Duration kRefreshInterval = 10min;

// Progress for a log: a line every ten seconds on standard error, which the run forwards. Slurm and srun may
// both deliver a signal: it counts once, and only while staging in.
class StagingProgress final : public Progress {
 public:
  StagingProgress(std::string who, rank::SignalFd signals, Output& out)
      : who_(std::move(who)), out_(out), signals_(std::move(signals)) {}

  /// Ignores signals from now on, so that stage-out completes.
  void ignore_signals() { honors_signals_ = false; }
  bool was_signalled() const {
    const MutexLock lock(mu_);
    if (signals_.next_signal()) was_signalled_ = true;
    return was_signalled_;
  }

  void report(const ProgressState& state) override {
    const MutexLock lock(mu_);
    if (!next_.passed()) return;
    next_ = Deadline::after(kReportInterval);
    const double seconds = std::max(0.001, Seconds(RealClock().mono() - begin_).count());
    const auto rate = static_cast<std::uint64_t>(static_cast<double>(state.bytes.value) / seconds);
    out_.note("{}: staging, {} {}{}, {}, {}/s", who_, grouped(state.done),
              state.total > 0 ? format("of {} ", grouped(state.total)) : "", state.unit, rounded(state.bytes),
              rounded(ByteCount{rate}));
  }
  bool stop_requested() const override { return honors_signals_ && was_signalled(); }

 private:
  const std::string who_;
  Output& out_;
  const MonoTime begin_ = RealClock().mono();
  std::atomic<bool> honors_signals_{true};
  mutable Mutex mu_;
  mutable rank::SignalFd signals_ STOKER_GUARDED_BY(mu_);
  mutable bool was_signalled_ STOKER_GUARDED_BY(mu_) = false;
  Deadline next_ STOKER_GUARDED_BY(mu_) = Deadline::after(kReportInterval);
};

int node_number() {
  std::int64_t number = 0;
  (void)parse_number(environment_value("SLURM_NODEID").value_or("0"), &number);
  return static_cast<int>(std::clamp<std::int64_t>(number, 0, 1'000'000));
}

std::string host_name() { return environment_value("SLURMD_NODENAME").value_or(net::host_name()); }

stage::StageRequest staging_request(const job::StageOptions& options) {
  stage::StageRequest wanted;
  wanted.unpack.assign(options.unpack.begin(), options.unpack.end());
  wanted.copy.assign(options.copy.begin(), options.copy.end());
  wanted.back = options.back;
  wanted.links = options.outside_links ? stage::OutsideLinks::kept : stage::OutsideLinks::refused;
  return wanted;
}

void send_answer(const stage::StageReport& answer, Output& out) {
  out.raw(stage::to_line(answer));
  std::fflush(stdout);
}

void record_result(const Result<stage::TransferStats>& moved, MonoTime begin, stage::StageReport& answer) {
  answer.seconds = Seconds(RealClock().mono() - begin).count();
  answer.problem = moved.status();
  if (!moved.ok()) return;
  answer.files = moved->files;
  answer.bytes = moved->bytes;
  answer.fingerprint = moved->fingerprint;
}

// The datasets of a job on this node. A RAM disk's cache goes with its run, because its bytes are memory of
// the job.
class NodeData {
 public:
  NodeData(const job::Job& job, std::string run_id) : job_(job), run_id_(std::move(run_id)) {}
  NodeData(const NodeData&) = delete;
  NodeData& operator=(const NodeData&) = delete;
  ~NodeData() {
    if (memory_) (void)std::move(*memory_).remove();
  }

  /// Copies the datasets to this node. The ranks find them by links in kDataFolder of `staged`.
  Result<stage::TransferStats> place(const Path& staged, bool is_verbose, StagingProgress& progress,
                                     Output& out) {
    stage::TransferStats sum;
    for (const auto& [name, source] : job_.data) {
      if (source.place == job::DataPlace::shared) continue;
      STOKER_ASSIGN_OR_RETURN(request, request_for(source));
      STOKER_ASSIGN_OR_RETURN(placed, stage::place_dataset(request, progress));
      if (is_verbose) out.note("{}: data.{}: {}", host_name(), name, placed.note);
      sum.files += placed.copied;
      sum.bytes += placed.copied_bytes;
      sum.fingerprint += stage::fingerprint_of(name, 0, crc32c(placed.version));
      if (placed.folder) {
        STOKER_RETURN_IF_ERROR(make_directories(staged / rank::kDataFolder));
        STOKER_RETURN_IF_ERROR(stage::replace_link(*placed.folder, staged / rank::kDataFolder / name));
      }
      datasets_.push_back(std::move(placed));
    }
    return sum;
  }
  /// Keeps the leases; see OwnLease::refresh().
  void refresh() const {
    for (const stage::PlacedDataset& placed : datasets_) {
      if (placed.lease) placed.lease->refresh();
    }
  }

 private:
  Result<stage::PlaceRequest> request_for(const job::DataSource& source) {
    const Environment environment = current_environment();
    const Path base = job_.stage.directory ? *job_.stage.directory / stage::cache_name() : Path();
    stage::PlaceRequest request{.source = source.source,
                                .split = source.split,
                                .cache = stage::cache_path(base, environment),
                                .is_decided = source.place != job::DataPlace::automatic,
                                .epochs = job_.train ? job_.train->epochs : kAssumedEpochs,
                                .memory_room = loader::detect_machine("/", environment).memory.value};
    if (source.place != job::DataPlace::memory) return request;
    if (!memory_) {
      STOKER_ASSIGN_OR_RETURN(folder, stage::NodeFolder::create(kMemoryDisk, run_id_));
      memory_.emplace(std::move(folder));
    }
    request.cache = memory_->path() / "cache";
    request.quota = {request.memory_room / 2};  // the ranks need memory too
    return request;
  }

  const job::Job& job_;
  const std::string run_id_;
  std::optional<stage::NodeFolder> memory_;
  std::vector<stage::PlacedDataset> datasets_;  // with their leases
};

// The supervisor writes to our input when ranks start, and closes it when they have ended or when it dies.
// After a signal waits at most `grace`, because Slurm kills the step soon. False if no rank was started.
bool wait_for_ranks(const StagingProgress& progress, Duration grace, const NodeData& data) {
  bool has_begun = false;
  Deadline next_refresh = Deadline::after(kRefreshInterval);
  std::optional<Deadline> limit;
  for (;;) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    ::poll(&input, 1, 100);
    if (next_refresh.passed()) {
      data.refresh();
      next_refresh = Deadline::after(kRefreshInterval);
    }
    std::array<char, 256> buffer;
    const bool has_news = (input.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    if (has_news && ::read(STDIN_FILENO, buffer.data(), buffer.size()) <= 0) return has_begun;
    has_begun |= has_news;
    if (!limit && progress.was_signalled()) limit = Deadline::after(grace);
    if (limit && limit->passed()) return has_begun;
  }
}

// The staged folder on this node, and the stage-out destination.
struct StagedFolder {
  stage::NodeFolder folder;
  Path back;
};

// Stages out the results and removes the folder. Keeps results that could not be copied.
int stage_out(const stage::StageRequest& wanted, StagedFolder staged, stage::StageReport answer,
              StagingProgress& progress, Output& out) {
  progress.ignore_signals();
  answer.is_stage_out = true;
  answer.files = answer.bytes = answer.fingerprint = 0;
  const MonoTime begin = RealClock().mono();
  std::vector<std::string> missing;
  if (!wanted.back.empty())
    record_result(stage::stage_out(wanted, staged.folder.path(), staged.back, &missing, progress), begin,
                  answer);
  for (const std::string& name : missing)
    out.note("{}: {} does not exist and was not staged out", answer.host, name);
  if (answer.problem.ok()) {
    const Status removed = std::move(staged.folder).remove();
    if (!removed.ok()) out.note("{}: {}", answer.host, removed.message());
  } else if (const auto kept = std::move(staged.folder).keep(); kept.ok()) {
    answer.problem =
        Status(answer.problem.code(), format("{} (the output stays in {})", answer.problem.message(), *kept));
  }
  send_answer(answer, out);
  return answer.problem.ok() ? exit_code::kOk : exit_code::from_status(answer.problem);
}

int stage_node(const job::Job& job, const record::Attempt& attempt, rank::SignalFd signals, Output& out) {
  const std::string run_id = attempt.folder().parent_path().parent_path().filename();
  const stage::StageRequest wanted = staging_request(job.stage);
  stage::StageReport answer{.node = node_number(), .host = host_name()};
  StagingProgress progress(answer.host, std::move(signals), out);
  const MonoTime begin = RealClock().mono();
  auto folder = stage::NodeFolder::create(
      stage::node_local_base(job.stage.directory.value_or(Path()), current_environment()), run_id);
  NodeData data(job, run_id);
  const auto stage_all = [&]() -> Result<stage::TransferStats> {
    STOKER_RETURN_IF_ERROR(folder.status());
    STOKER_ASSIGN_OR_RETURN(sum, stage::stage_in(wanted, folder->path(), progress));
    // Of a hundred nodes, the notes of the first one are enough.
    STOKER_ASSIGN_OR_RETURN(placed, data.place(folder->path(), answer.node == 0, progress, out));
    sum += placed;
    return sum;
  };
  record_result(stage_all(), begin, answer);
  if (folder.ok()) answer.folder = folder->path().string();
  send_answer(answer, out);
  if (!answer.problem.ok()) {
    if (folder.ok()) (void)std::move(*folder).remove();
    return exit_code::from_status(answer.problem);
  }
  if (!wait_for_ranks(progress, job.timeouts.grace, data)) {
    (void)std::move(*folder).remove();
    return exit_code::kOk;
  }
  StagedFolder staged{std::move(*folder), attempt.folder() / "back" / format("node-{:04}", answer.node)};
  return stage_out(wanted, std::move(staged), std::move(answer), progress, out);
}

}  // namespace

int stage(std::span<const std::string> words, Output& out) {
  StageArguments o;
  Arguments arguments("stage", "Stage data on one node for `stage:` in a job (started by `stoker run`).");
  arguments.positional("ATTEMPT", &o.attempt, "Folder of the attempt");
  arguments.example("stoker stage runs/RUN/attempts/1");
  if (const auto code = arguments.parse(words, out)) return *code;
  auto signals = rank::SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2});
  if (!signals.ok()) return out.fail(signals.error());
  const record::Attempt attempt(std::filesystem::absolute(o.attempt).lexically_normal(), 0);
  const auto job = job::load(attempt.job());
  if (!job.ok()) return out.fail(job.error());
  return stage_node(*job, attempt, std::move(*signals), out);
}

}  // namespace stoker::cli
