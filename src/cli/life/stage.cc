// `stoker stage ATTEMPT`: docs/commands/stage.md
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <poll.h>
#include <unistd.h>

#include "base/process.h"
#include "base/thread.h"
#include "base/time.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "job/job.h"
#include "net/port.h"
#include "rank/process/signals.h"
#include "record/run_folder.h"
#include "stage/answer.h"
#include "stage/node.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

struct StageOptions {
  std::string attempt;
};

// Said now and then where nobody sees a progress line.
constexpr Duration kTellEvery = 10s;

// Progress for a log: a line every ten seconds, on standard error, which the run passes on. Slurm sends a
// signal to this process and srun passes it on, too: it counts once, and only while things are brought.
class Teller final : public Progress {
 public:
  Teller(std::string who, rank::SignalFd signals, Output& out)
      : who_(std::move(who)), out_(out), signals_(std::move(signals)) {}

  /// From now on a signal stops nothing: what is wanted back is taken back.
  void go_on_whatever_comes() { heeds_signals_ = false; }
  bool was_signalled() const {
    const MutexLock lock(mu_);
    if (signals_.take()) was_signalled_ = true;
    return was_signalled_;
  }

  void report(const ProgressState& state) override {
    const MutexLock lock(mu_);
    if (!next_.passed()) return;
    next_ = Deadline::after(kTellEvery);
    const double seconds = std::max(0.001, Seconds(RealClock().mono() - begin_).count());
    const auto rate = static_cast<std::uint64_t>(static_cast<double>(state.bytes.value) / seconds);
    out_.note("{}: staging, {} {}{}, {}, {}/s", who_, grouped(state.done),
              state.total > 0 ? format("of {} ", grouped(state.total)) : "", state.unit, rounded(state.bytes),
              rounded(ByteCount{rate}));
  }
  bool stop_requested() const override { return heeds_signals_ && was_signalled(); }

 private:
  const std::string who_;
  Output& out_;
  const MonoTime begin_ = RealClock().mono();
  std::atomic<bool> heeds_signals_{true};
  mutable Mutex mu_;
  mutable rank::SignalFd signals_ GUARDED_BY(mu_);
  mutable bool was_signalled_ GUARDED_BY(mu_) = false;
  Deadline next_ GUARDED_BY(mu_) = Deadline::after(kTellEvery);
};

int node_number() {
  std::int64_t number = 0;
  (void)parse_number(environment_value("SLURM_NODEID").value_or("0"), &number);
  return static_cast<int>(std::clamp<std::int64_t>(number, 0, 1'000'000));
}

std::string host_name() { return environment_value("SLURMD_NODENAME").value_or(net::host_name()); }

stage::Wanted wanted_by(const job::StageOptions& options) {
  stage::Wanted wanted;
  wanted.unpack.assign(options.unpack.begin(), options.unpack.end());
  wanted.copy.assign(options.copy.begin(), options.copy.end());
  wanted.back = options.back;
  wanted.links = options.outside_links ? stage::OutsideLinks::kept : stage::OutsideLinks::refused;
  return wanted;
}

// The run says by a word that its ranks start, and by closing our input that they are over; so does its
// death. After a signal it is not waited for longer than `grace`: Slurm kills all that is left soon. False
// when no rank was to start.
bool await_end(const Teller& teller, Duration grace) {
  bool has_begun = false;
  std::optional<Deadline> limit;
  for (;;) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    ::poll(&input, 1, 100);
    std::array<char, 256> buffer;
    const bool has_news = (input.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    if (has_news && ::read(STDIN_FILENO, buffer.data(), buffer.size()) <= 0) return has_begun;
    has_begun |= has_news;
    if (!limit && teller.was_signalled()) limit = Deadline::after(grace);
    if (limit && limit->passed()) return has_begun;
  }
}

void say(const stage::Answer& answer, Output& out) {
  out.raw(stage::to_line(answer));
  std::fflush(stdout);
}

void take(const Result<stage::Moved>& moved, MonoTime begin, stage::Answer& answer) {
  answer.seconds = Seconds(RealClock().mono() - begin).count();
  answer.problem = moved.status();
  if (!moved.ok()) return;
  answer.files = moved->files;
  answer.bytes = moved->bytes;
  answer.fingerprint = moved->fingerprint;
}

// What is on this node, and where it goes.
struct Place {
  stage::NodeFolder folder;
  Path back;
};

// After the ranks: what is wanted goes back, the folder goes away. Results that could not be copied stay.
int conclude(const stage::Wanted& wanted, Place place, stage::Answer answer, Teller& teller, Output& out) {
  teller.go_on_whatever_comes();
  answer.is_back = true;
  answer.files = answer.bytes = answer.fingerprint = 0;
  const MonoTime begin = RealClock().mono();
  std::vector<std::string> missing;
  if (!wanted.back.empty())
    take(stage::stage_back(wanted, place.folder.path(), place.back, &missing, teller), begin, answer);
  for (const std::string& name : missing)
    out.note("{}: {} is not there, and not copied back", answer.host, name);
  if (answer.problem.ok()) {
    const Status removed = std::move(place.folder).remove();
    if (!removed.ok()) out.note("{}: {}", answer.host, removed.message());
  } else if (const auto kept = std::move(place.folder).keep(); kept.ok()) {
    answer.problem = Status(answer.problem.code(), format("{} (all that was made stays there in {})",
                                                          answer.problem.message(), *kept));
  }
  say(answer, out);
  return answer.problem.ok() ? exit_code::kOk : exit_code::of(answer.problem);
}

int stage_here(const job::Job& job, const record::Attempt& attempt, rank::SignalFd signals, Output& out) {
  const std::string run_id = attempt.folder().parent_path().parent_path().filename();
  const stage::Wanted wanted = wanted_by(job.stage);
  stage::Answer answer{.node = node_number(), .host = host_name()};
  Teller teller(answer.host, std::move(signals), out);
  const MonoTime begin = RealClock().mono();
  auto folder = stage::NodeFolder::create(
      stage::base_on_node(job.stage.directory.value_or(Path()), current_environment()), run_id);
  take(folder.ok() ? stage::stage_in(wanted, folder->path(), teller) : Result<stage::Moved>(folder.status()),
       begin, answer);
  if (folder.ok()) answer.folder = folder->path().string();
  say(answer, out);
  if (!answer.problem.ok()) {
    if (folder.ok()) (void)std::move(*folder).remove();
    return exit_code::of(answer.problem);
  }
  if (!await_end(teller, job.timeouts.grace)) {
    (void)std::move(*folder).remove();
    return exit_code::kOk;
  }
  Place place{std::move(*folder), attempt.folder() / "back" / format("node-{:04}", answer.node)};
  return conclude(wanted, std::move(place), std::move(answer), teller, out);
}

}  // namespace

int stage(std::span<const std::string> words, Output& out) {
  StageOptions o;
  Arguments arguments("stage", "One node's part of `stage:` in a job; `stoker run` starts these.");
  arguments.positional("ATTEMPT", &o.attempt, "folder of the attempt");
  arguments.example("stoker stage runs/RUN/attempts/1");
  if (const auto code = arguments.parse(words, out)) return *code;
  auto signals = rank::SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2});
  if (!signals.ok()) return out.fail(signals.error());
  const record::Attempt attempt(std::filesystem::absolute(o.attempt).lexically_normal(), 0);
  const auto job = job::load(attempt.job());
  if (!job.ok()) return out.fail(job.error());
  return stage_here(*job, attempt, std::move(*signals), out);
}

}  // namespace stoker::cli
