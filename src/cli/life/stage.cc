// `stoker stage ATTEMPT`: docs/commands/stage.md
#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <sys/resource.h>

#include "base/language/counted.h"
#include "base/process.h"
#include "base/thread.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/life/node_datasets.h"
#include "cli/life/node_files.h"
#include "cli/life/node_peers.h"
#include "cli/output.h"
#include "job/job.h"
#include "net/port.h"
#include "rank/process/signals.h"
#include "record/run_folder.h"
#include "stage/back_copy.h"
#include "stage/node.h"
#include "stage/stage_report.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

struct StageArguments {
  std::string attempt;
  std::int64_t nodes = 1;
};

// Interval of progress lines in a log.
constexpr Duration kReportInterval = 10s;
constexpr Duration kRefreshInterval = 10min;
constexpr int kNiceness = 5;  // beside ranks

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
  answer.received_bytes = moved->received_bytes;
  answer.cached_bytes = moved->cached_bytes;
  answer.fingerprint = moved->fingerprint;
}

// What a node stages, and serves to others.
struct NodeStaging {
  NodePeers peers;
  NodeFiles files;
  NodeDatasets data;
  std::optional<stage::BackCopy> back = std::nullopt;  // with results
  Duration back_every{0};
  std::string host = {};
  std::function<void(const stage::TransferStats&)> send_rest = {};  // of datasets
  bool has_back_problem = false;
};

// Copies changed results while the ranks run.
void copy_back(NodeStaging& node, const StagingProgress& progress, Output& out) {
  const MonoTime begin = RealClock().mono();
  const auto should_stop = [&] {
    (void)node.peers.next_line(Deadline::after(0s));
    return node.peers.is_closed() || progress.was_signalled();
  };
  const stage::StageOutRound round = node.back->copy_changed(should_stop);
  if (round.copied.files > 0) {
    out.note("{}: copied {} of stage.back, {}, in {:.1f} s", node.host, counted(round.copied.files, "file"),
             rounded(ByteCount{round.copied.bytes}), Seconds(RealClock().mono() - begin).count());
  }
  const bool has_problem = !round.problem.ok();
  if (has_problem && !node.has_back_problem) {
    out.note("{}: stage.back: {}; the ranks continue, and the copy is retried every {}", node.host,
             round.problem.message(), duration_text(node.back_every));
  }
  node.has_back_problem = has_problem;
}

// The supervisor writes to our input when ranks start, and closes it when they have ended or when it dies.
// After a signal waits at most `grace`, because Slurm kills the step soon. False if no rank was started.
// Sends what was copied beside the ranks, once that is complete or the ranks have ended.
bool wait_for_ranks(const StagingProgress& progress, Duration grace, NodeStaging& node, Output& out) {
  const auto stop_copying = [&] {
    node.data.stop();
    if (const auto rest = node.data.take_rest()) node.send_rest(*rest);
  };
  bool has_begun = false;
  Deadline next_refresh = Deadline::after(kRefreshInterval);
  Deadline next_back = Deadline::after(node.back_every);
  std::optional<Deadline> limit;
  for (;;) {
    if (next_refresh.passed()) {
      node.data.refresh();
      next_refresh = Deadline::after(kRefreshInterval);
    }
    if (node.peers.next_line(Deadline::after(100ms)) == "go") {
      has_begun = true;
      node.files.stop_serving();
    }
    if (const auto rest = node.data.take_rest()) node.send_rest(*rest);
    const bool is_over = node.peers.is_closed();
    if (!is_over && has_begun && !limit && node.back && node.back_every > Duration::zero() &&
        next_back.passed()) {
      copy_back(node, progress, out);
      next_back = Deadline::after(node.back_every);
    }
    if (!limit && progress.was_signalled()) limit = Deadline::after(grace);
    if (!is_over && !(limit && limit->passed())) continue;
    stop_copying();
    return has_begun;
  }
}

// Stages out the results and removes the folder. Keeps results that could not be copied.
int stage_out(std::optional<stage::BackCopy>& back, stage::NodeFolder folder, stage::StageReport answer,
              StagingProgress& progress, Output& out) {
  progress.ignore_signals();
  answer.phase = stage::StagePhase::back;
  answer.has_rest = false;
  answer.files = answer.bytes = answer.received_bytes = answer.cached_bytes = answer.fingerprint = 0;
  const MonoTime begin = RealClock().mono();
  const stage::StageOutRound last = back ? back->copy_rest() : stage::StageOutRound();
  if (back) {
    record_result(last.problem.ok() ? Result<stage::TransferStats>(back->total()) : last.problem, begin,
                  answer);
  }
  for (const std::string& name : last.missing)
    out.note("{}: {} does not exist and was not staged out", answer.host, name);
  if (answer.problem.ok()) {
    const Status removed = std::move(folder).remove();
    if (!removed.ok()) out.note("{}: {}", answer.host, removed.message());
  } else if (const auto kept = std::move(folder).keep(); kept.ok()) {
    answer.problem =
        Status(answer.problem.code(), format("{} (the output stays in {})", answer.problem.message(), *kept));
  }
  send_answer(answer, out);
  return answer.problem.ok() ? exit_code::kOk : exit_code::from_status(answer.problem);
}

// Whether the nodes of the job exchange what they stage.
bool stages_together(const job::Job& job, int nodes) {
  const bool has_files = !job.stage.copy.empty() || !job.stage.unpack.empty();
  const auto is_placed = [](const auto& source) { return source.second.place != job::DataPlace::shared; };
  return nodes > 1 && job.stage.broadcast && (has_files || std::ranges::any_of(job.data, is_placed));
}

int stage_node(const job::Job& job, const record::Attempt& attempt, int nodes, rank::SignalFd signals,
               Output& out) {
  const std::string run_id = attempt.folder().parent_path().parent_path().filename();
  const stage::StageRequest wanted = staging_request(job.stage);
  stage::StageReport answer{.node = node_number(), .host = host_name()};
  if (starts_beside_copy(job)) (void)::setpriority(PRIO_PROCESS, 0, kNiceness);
  StagingProgress progress(answer.host, std::move(signals), out);
  const MonoTime begin = RealClock().mono();
  auto folder = stage::NodeFolder::create(
      stage::node_local_base(job.stage.directory.value_or(Path()), current_environment()), run_id);
  // Of a hundred nodes, the notes of the first one are enough.
  Output* const notes = answer.node == 0 ? &out : nullptr;
  NodeStaging node{.peers = NodePeers(answer.node, job.stage.node_rate),
                   .files = NodeFiles(wanted, answer.node),
                   .data = NodeDatasets(job, {run_id, answer.node, answer.host}, notes, progress),
                   .back_every = job.stage.back_every,
                   .host = answer.host};
  const bool is_together = stages_together(job, nodes);
  const auto send_line = [&](const std::string& line) {
    out.raw(line);
    std::fflush(stdout);
  };
  if (is_together) send_line(node.peers.listen());
  const auto stage_all = [&]() -> Result<stage::TransferStats> {
    STOKER_RETURN_IF_ERROR(folder.status());
    if (is_together && answer.node == 0 && node.files.any()) {
      auto line = node.peers.is_listening() ? node.files.list(progress)
                                            : Result<std::string>(to_line(stage::ListHead()));
      STOKER_RETURN_IF_ERROR(line.status());
      send_line(*line);
    }
    std::optional<stage::BroadcastNodes> others;
    if (is_together) others = node.peers.wait_for_peers(progress);
    STOKER_ASSIGN_OR_RETURN(sum, node.files.place(folder->path(), others, node.peers, progress));
    if (const std::string note = node.files.note(); !note.empty())
      out.note("{}: staged alone: {}", answer.host, note);
    STOKER_ASSIGN_OR_RETURN(placed, node.data.place(folder->path(), others));
    sum += placed;
    return sum;
  };
  record_result(stage_all(), begin, answer);
  if (folder.ok()) answer.folder = folder->path().string();
  answer.has_rest = node.data.has_rest();
  send_answer(answer, out);
  if (!answer.problem.ok()) {
    node.files.stop_serving();
    if (folder.ok()) (void)std::move(*folder).remove();
    return exit_code::from_status(answer.problem);
  }
  if (!wanted.back.empty())
    node.back.emplace(wanted, folder->path(), attempt.folder() / "back" / format("node-{:04}", answer.node));
  node.send_rest = [&](const stage::TransferStats& rest) {
    stage::StageReport report{.node = answer.node, .host = answer.host, .phase = stage::StagePhase::rest};
    record_result(rest, begin, report);
    send_answer(report, out);
  };
  const bool has_begun = wait_for_ranks(progress, job.timeouts.grace, node, out);
  node.files.stop_serving();
  if (!has_begun) {
    (void)std::move(*folder).remove();
    return exit_code::kOk;
  }
  return stage_out(node.back, std::move(*folder), std::move(answer), progress, out);
}

}  // namespace

int stage(std::span<const std::string> words, Output& out) {
  StageArguments o;
  Arguments arguments("stage", "Stage data on one node for `stage:` in a job (started by `stoker run`).");
  arguments.positional("ATTEMPT", &o.attempt, "Folder of the attempt");
  arguments.option("--nodes", &o.nodes, "N", "Nodes of the job that stage together");
  arguments.example("stoker stage runs/RUN/attempts/1");
  if (const auto code = arguments.parse(words, out)) return *code;
  auto signals = rank::SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2});
  if (!signals.ok()) return out.fail(signals.error());
  const record::Attempt attempt(std::filesystem::absolute(o.attempt).lexically_normal(), 0);
  const auto job = job::load(attempt.job());
  if (!job.ok()) return out.fail(job.error());
  return stage_node(*job, attempt, static_cast<int>(std::clamp<std::int64_t>(o.nodes, 1, 1'000'000)),
                    std::move(*signals), out);
}

}  // namespace stoker::cli
