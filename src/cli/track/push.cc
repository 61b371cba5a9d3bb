// `stoker track push RUN`: docs/commands/track-push.md
#include "track/push/push.h"

#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/resource.h>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/commands.h"
#include "cli/runs.h"
#include "launch/status/life.h"
#include "rank/process/signals.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

// Beside a run, SIGTERM ends it: the time for the last points.
constexpr Duration kTimeForRest = 10s;
constexpr int kNiceness = 10;

struct TrackArguments {
  RunChoice choice;
  std::vector<std::string> to;
  std::string folder;
  bool is_following = false;
};

Result<track::PushOptions> push_options(const TrackArguments& o, Output& out) {
  STOKER_ASSIGN_OR_RETURN(run, find_run(o.choice));
  track::PushOptions options{.run = run, .folder = {}, .trackers = {}, .is_over = {}, .note = {}};
  options.folder = o.folder.empty() ? run.folder() / "track" : Path(o.folder);
  options.follows = o.is_following;
  options.note = [&out](const std::string& line) { out.note("{}", line); };
  options.is_over = [run] {
    const record::RunState records = record::derive_state(run);
    if (records.state == record::State::running || records.state == record::State::queued) return false;
    auto scheduler = make_scheduler();
    return is_over(launch::query_life(run, scheduler, Deadline::after(kSchedulerTimeout)).life);
  };
  for (const std::string& text : o.to) {
    STOKER_ASSIGN_OR_RETURN(choice, track::parse_choice(text));
    options.trackers.push_back(choice);
  }
  if (o.to.empty()) options.trackers = track::choices_of_job(run);
  if (options.trackers.empty()) {
    return invalid("track push: run {} has no tracker (record in its job file, --to)", run.id())
        .cure("stoker track push {} --to tensorboard", run_reference(run));
  }
  return options;
}

// SIGTERM leaves a moment for the last points, Ctrl-C only for the current request, a second one not even
// that: a killed push loses nothing.
std::vector<track::PushResult> wait_for(track::Push& push, rank::SignalFd& signals) {
  bool is_interrupted = false;
  while (!push.is_done()) {
    pollfd waiting{signals.fd(), POLLIN, 0};
    ::poll(&waiting, 1, 100);
    while (const auto signal = signals.next_signal()) {
      if (*signal == SIGTERM) push.control().finish_by(Deadline::after(kTimeForRest));
      if (*signal == SIGINT && is_interrupted) std::_Exit(exit_code::kInterrupted);
      is_interrupted = is_interrupted || *signal == SIGINT;
      if (is_interrupted) push.control().stop();
    }
  }
  return push.finish();
}

std::string describe(const track::PushResult& result) {
  const std::string refused = result.refused == 0 ? "" : format(", {} not accepted", grouped(result.refused));
  if (result.is_complete()) {
    return format("{}: {} sent, {} in all{}", result.tracker, counted(result.delivered, "point"),
                  grouped(result.total), refused);
  }
  if (result.waiting == 0) return format("{}: {}", result.tracker, result.status.message());
  const bool is_limit = result.waiting >= track::kMostCounted;
  return format("{}: {}{} not delivered: {}", result.tracker, is_limit ? "over " : "",
                counted(result.waiting, "point"), result.status.message());
}

int print(const record::RunFolder& run, const std::vector<track::PushResult>& results, Output& out) {
  int code = exit_code::kOk;
  nlohmann::ordered_json trackers = nlohmann::ordered_json::array();
  for (const track::PushResult& result : results) {
    out.line("{}", describe(result));
    if (!result.status.cure().empty()) out.line("  try: {}", result.status.cure());
    if (code == exit_code::kOk) code = exit_code::from_status(result.status);
    trackers.push_back({{"tracker", result.tracker},
                        {"delivered", result.delivered},
                        {"total", result.total},
                        {"refused", result.refused},
                        {"waiting", result.waiting},
                        {"problem", result.status.ok() ? "" : std::string(result.status.message())}});
  }
  out.json(json_text(nlohmann::ordered_json{{"run", run.id()}, {"trackers", trackers}}));
  return code;
}

}  // namespace

int track_push(std::span<const std::string> words, Output& out) {
  TrackArguments o;
  Arguments arguments("track push", "Send the points of a run to trackers, each point once.");
  add_run_choice(arguments, &o.choice);
  arguments.option(
      "--to", &o.to, "TRACKER",
      "Tracker: mlflow[=ADDRESS], tensorboard, wandb[=PROJECT] or csv (default: as in the job file)");
  arguments.choices(track::kTrackerNames);
  arguments.option("--folder", &o.folder, "DIR",
                   "Folder for files and positions (default: track in the run folder)");
  arguments.flag("-f,--follow", &o.is_following, "Continue until the run has ended");
  arguments.example("stoker track push last --to tensorboard");
  if (const auto code = arguments.parse(words, out)) return *code;
  auto options = push_options(o, out);
  if (!options.ok()) return out.fail(options.error());
  auto signals = rank::SignalFd::open({SIGINT, SIGTERM});
  if (!signals.ok()) return out.fail(signals.error());
  // A run on the same cores is worth more than its records.
  if (o.is_following) (void)::setpriority(PRIO_PROCESS, 0, kNiceness);
  const record::RunFolder run = options->run;
  track::Push push(*std::move(options));
  return print(run, wait_for(push, *signals), out);
}

}  // namespace stoker::cli
