// Between this process and the `stoker stage` of each node:
//   1. each says in one line of JSON that everything is there, or what is wrong
//   2. this process says in a word that the ranks start, and they run
//   3. this process closes their standard input: the ranks are over
//   4. each copies back, removes its folder, says so in one line, and ends
// They outlive SIGTERM, with which Slurm begins to end a job; when this process dies their input ends as
// in 3. Where the word never came there is nothing to copy back.
#include "launch/staging/staging.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "rank/environment.h"
#include "rank/process/signals.h"
#include "slurm/allocation.h"
#include "stage/answer.h"

namespace stoker::launch {

using namespace std::chrono_literals;

/// Signals that ask for an end while everything is brought.
class StopSignals {
 public:
  explicit StopSignals(rank::SignalFd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.fd(); }
  /// The one that came, 0 for none.
  int take() const { return fd_.take().value_or(0); }

 private:
  mutable rank::SignalFd fd_;
};

namespace {

constexpr std::size_t kLongestLine = 1u << 20;

// What it started may have gigabytes to remove.
constexpr Duration kClearingUp = 20s;

std::vector<std::string> words_of(const StagingOptions& options) {
  std::vector<std::string> words = {options.stoker.string(), "stage", options.attempt.folder().string()};
  if (options.plan.start != rank::Start::srun) return words;
  slurm::StepRequest request{WorldSize(options.plan.nodes), options.plan.nodes, 1, 1, std::move(words)};
  request.is_beside = true;
  return slurm::srun_arguments(request);
}

Environment environment_of(const StagingOptions& options) {
  Environment environment = options.environment;
  if (options.plan.start != rank::Start::srun) return environment;
  for (const std::string& name : slurm::variables_to_drop()) rank::unset_variable(environment, name);
  for (std::string_view name : {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_HOSTFILE"})
    rank::unset_variable(environment, name);
  return environment;
}

}  // namespace

Duration time_to_copy_back(const job::Job& job, Duration time) {
  if (job.stage.back.empty()) return Duration::zero();
  return std::min<Duration>(60s, time / 10);
}

Result<std::unique_ptr<Staging>> Staging::start(const StagingOptions& options, int* interrupted_by) {
  OK_OR_RETURN(signals, rank::SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}));
  const StopSignals stop(std::move(signals));
  OK_OR_RETURN(orders, Pipe::create());
  OK_OR_RETURN(answers, Pipe::create());
  Command command;
  command.argv = words_of(options);
  command.environment = environment_of(options);
  command.stdin_fd = orders.read.get();
  command.stdout_fd = answers.write.get();
  command.stderr_fd = options.err_fd;
  command.group = Group::own;
  OK_OR_RETURN(child, Child::spawn(command));
  ::fcntl(answers.read.get(), F_SETFL, O_NONBLOCK);
  std::unique_ptr<Staging> staging(
      new Staging(std::move(child), std::move(orders.write), std::move(answers.read),
                  options.plan.start == rank::Start::srun ? options.plan.nodes : 1));
  answers.write.reset();
  orders.read.reset();
  Status there =
      staging->hear(Deadline::after(options.job.stage.timeout), "stage.timeout", &stop, interrupted_by);
  if (there.ok()) there = staging->compare_nodes();
  std::signal(SIGPIPE, SIG_IGN);
  if (there.ok() && ::write(staging->orders_.get(), "go\n", 3) != 3)
    there = unavailable("staging: it ended before the ranks started (its words stand above)");
  if (!there.ok()) {
    // What still brings something stops, and clears up: of the signals that ask for it this is one that srun
    // passes on, while for a SIGTERM it would kill them where they are.
    (void)staging->child_.signal(SIGUSR1);
    return there;
  }
  return staging;
}

Staging::~Staging() {
  if (child_.poll()) return;
  orders_.reset();
  const auto ended = child_.wait(Deadline::after(kClearingUp));
  if (ended.ok()) return;
  (void)child_.signal(SIGKILL);
  (void)child_.wait(Deadline::after(5s));
}

std::string Staging::folders() const {
  std::vector<std::string> folders;
  for (const StagedNode& node : nodes_) folders.push_back(node.folder);
  return join(folders, "\n");
}

Status Staging::take_line(std::string_view line) {
  const auto answer = stage::parse_answer(line);
  // srun and what sites put around it may print, too.
  if (!answer) return {};
  const Status problem = Status(answer->problem).with_context(printable(answer->host));
  // What the other nodes have made still comes back.
  if (!problem.ok() && !answer->is_back) return problem;
  if (!problem.ok() && problem_.ok()) problem_ = problem;
  StagedNode node{.node = answer->node,
                  .host = answer->host,
                  .folder = answer->folder,
                  .files = answer->files,
                  .bytes = answer->bytes,
                  .seconds = answer->seconds,
                  .fingerprint = answer->fingerprint};
  (answer->is_back ? back_ : nodes_).push_back(std::move(node));
  return {};
}

// Until every node has answered.
Status Staging::hear(Deadline deadline, const char* what, const StopSignals* signals, int* interrupted_by) {
  const bool is_back = signals == nullptr;
  const auto count = [&] { return static_cast<int>((is_back ? back_ : nodes_).size()); };
  while (count() < expected_) {
    pollfd waiting[] = {{answers_.get(), POLLIN, 0}, {signals != nullptr ? signals->fd() : -1, POLLIN, 0}};
    ::poll(waiting, 2, deadline.poll_ms(500));
    if (const int signal = signals != nullptr ? signals->take() : 0; signal != 0) {
      *interrupted_by = signal;
      return cancelled("interrupted by {} while data were brought to the nodes (stage)", signal_name(signal));
    }
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(answers_.get(), buffer.data(), buffer.size());
    if (got > 0) partial_.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n')) {
      RETURN_IF_ERROR(take_line(std::string_view(partial_).substr(0, end)));
      partial_.erase(0, end + 1);
    }
    if (partial_.size() > kLongestLine) partial_.clear();
    if (got == 0 && count() < expected_)
      return unavailable("staging: {} of {} nodes answered, then it ended (its words stand above)", count(),
                         expected_);
    if (deadline.passed())
      return timeout("staging: {} of {} nodes are not done in time ({})", expected_ - count(), expected_,
                     what);
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  return {};
}

// Two nodes may see two states of one file on a shared filesystem.
Status Staging::compare_nodes() const {
  for (const StagedNode& node : nodes_) {
    const StagedNode& first = nodes_.front();
    if (node.fingerprint == first.fingerprint) continue;
    return corrupt("staging: {} got other files than {}: {} with {} bytes, there {} with {} (stage)",
                   printable(node.host), printable(first.host), grouped(node.files), grouped(node.bytes),
                   grouped(first.files), grouped(first.bytes))
        .cure("stoker resume, once nothing changes what `stage` names and all nodes see the same");
  }
  return {};
}

Status Staging::finish(Deadline deadline) {
  orders_.reset();
  RETURN_IF_ERROR(hear(deadline, "10 minutes", nullptr, nullptr));
  const Status ended = child_.wait(deadline).status();
  return problem_.ok() ? ended : problem_;
}

}  // namespace stoker::launch
