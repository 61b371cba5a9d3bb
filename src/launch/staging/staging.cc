// Protocol between this process and the `stoker stage` of each node:
//   1. each node that takes part in a broadcast sends its addresses, and gets all addresses; the first one
//      sends the hash of its list of files, and all get it
//   2. each node sends one line of JSON: success, or its error
//   3. this process sends "go", and the ranks start; a node that copies datasets beside them sends one more
//   line
//      when it has finished
//   4. this process closes their standard input: the ranks are over
//   5. each node stages out, removes its folder, sends one line, and exits
// The nodes ignore SIGTERM, with which Slurm starts to end a job. If this process dies, their input ends as
// in 4. Without "go", there is nothing to stage out.
#include "launch/staging/staging.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "rank/process/signals.h"
#include "slurm/allocation.h"
#include "stage/broadcast/peer_list.h"
#include "stage/stage_report.h"

namespace stoker::launch {

using namespace std::chrono_literals;

/// Termination signals while files are staged in.
class StagingSignals {
 public:
  explicit StagingSignals(rank::SignalFd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.fd(); }
  /// The received signal, 0 without one.
  int next_signal() const { return fd_.next_signal().value_or(0); }

 private:
  mutable rank::SignalFd fd_;
};

namespace {

constexpr std::size_t kLongestLine = 1u << 20;

// The helpers may have gigabytes to remove.
constexpr Duration kCleanupTimeout = 20s;

// Nodes that have no address after this time stage alone.
constexpr Duration kPeersTimeout = 20s;
constexpr std::size_t kSecretLength = 40;

std::vector<std::string> staging_arguments(const StagingOptions& options) {
  std::vector<std::string> words = {options.stoker.string(), "stage", options.attempt.folder().string()};
  if (options.plan.start != rank::StartMethod::srun) return words;
  words.insert(words.end(), {"--nodes", std::to_string(options.plan.nodes)});
  // Hashes and encryption need cores: a number would confine the step to it, none leaves it all of the job's.
  slurm::StepRequest request{WorldSize(options.plan.nodes), options.plan.nodes, 1, 0, std::move(words)};
  request.overlaps = true;
  if (options.plan.is_part_of_job) {
    request.node_list = join(options.plan.hosts, ",");
    request.cpus_per_task = std::max(1, options.plan.cpus_per_rank) * options.plan.ranks_per_node();
  }
  return slurm::srun_arguments(request);
}

Environment environment_of(const StagingOptions& options) {
  Environment environment = options.environment;
  if (options.plan.start != rank::StartMethod::srun) return environment;
  for (const std::string& name : slurm::variables_to_drop()) unset_variable(environment, name);
  for (std::string_view name : {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_HOSTFILE"})
    unset_variable(environment, name);
  return environment;
}

}  // namespace

Duration stage_out_time(const job::Job& job, Duration time) {
  if (job.stage.back.empty()) return Duration::zero();
  return std::min<Duration>(60s, time / 10);
}

Result<std::unique_ptr<Staging>> Staging::start(const StagingOptions& options, int* interrupted_by) {
  STOKER_ASSIGN_OR_RETURN(signals, rank::SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}));
  const StagingSignals stop(std::move(signals));
  STOKER_ASSIGN_OR_RETURN(orders, Pipe::create());
  STOKER_ASSIGN_OR_RETURN(answers, Pipe::create());
  Command command;
  command.argv = staging_arguments(options);
  command.environment = environment_of(options);
  command.stdin_fd = orders.read.get();
  command.stdout_fd = answers.write.get();
  command.stderr_fd = options.err_fd;
  command.group = Group::own;
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  ::fcntl(answers.read.get(), F_SETFL, O_NONBLOCK);
  std::unique_ptr<Staging> staging(
      new Staging(std::move(child), std::move(orders.write), std::move(answers.read),
                  options.plan.start == rank::StartMethod::srun ? options.plan.nodes : 1));
  answers.write.reset();
  orders.read.reset();
  std::signal(SIGPIPE, SIG_IGN);
  Status there = staging->await_answers(Deadline::after(options.job.stage.timeout), "stage.timeout", &stop,
                                        interrupted_by);
  if (there.ok()) there = staging->compare_nodes();
  if (there.ok() && ::write(staging->orders_.get(), "go\n", 3) != 3)
    there = unavailable("staging: stopped before the ranks started (see its output above)");
  if (!there.ok()) {
    // Nodes that are still staging in stop and clean up. srun forwards SIGUSR1, while it would kill them on
    // SIGTERM.
    (void)staging->child_.signal(SIGUSR1);
    return there;
  }
  return staging;
}

Staging::~Staging() {
  watcher_.join();
  if (child_.poll()) return;
  orders_.reset();
  const auto ended = child_.wait(Deadline::after(kCleanupTimeout));
  if (ended.ok()) return;
  (void)child_.signal(SIGKILL);
  (void)child_.wait(Deadline::after(5s));
}

std::string Staging::folders() const {
  std::vector<std::string> folders;
  for (const StagedNode& node : nodes_) folders.push_back(node.folder);
  return join(folders, "\n");
}

Status Staging::parse_line(std::string_view line) {
  const auto answer = stage::parse_stage_report(line);
  if (const auto peer = stage::parse_peer_address(line); peer && peer->node < expected_) {
    peers_[peer->node] = peer->addresses;
    return {};
  }
  if (const auto head = stage::parse_list_head(line)) list_line_ = to_line(*head);
  // srun and site wrappers may print, too.
  if (!answer) return {};
  const Status problem = Status(answer->problem).with_context(printable(answer->host));
  // Results of the other nodes are still staged out.
  if (!problem.ok() && answer->phase == stage::StagePhase::in) return problem;
  if (!problem.ok() && problem_.ok()) problem_ = problem;
  StagedNode node{.node = answer->node,
                  .host = answer->host,
                  .folder = answer->folder,
                  .files = answer->files,
                  .bytes = answer->bytes,
                  .received_bytes = answer->received_bytes,
                  .cached_bytes = answer->cached_bytes,
                  .has_rest = answer->has_rest,
                  .seconds = answer->seconds,
                  .fingerprint = answer->fingerprint};
  switch (answer->phase) {
    case stage::StagePhase::in:
      nodes_.push_back(std::move(node));
      break;
    case stage::StagePhase::rest:
      if (on_rest_) on_rest_(node);
      rest_.push_back(std::move(node));
      break;
    case stage::StagePhase::back:
      back_.push_back(std::move(node));
      break;
  }
  return {};
}

// Until every node has answered.
Status Staging::await_answers(Deadline deadline, const char* what, const StagingSignals* signals,
                              int* interrupted_by) {
  const bool is_stage_out = signals == nullptr;
  const auto count = [&] { return static_cast<int>((is_stage_out ? back_ : nodes_).size()); };
  while (count() < expected_) {
    pollfd waiting[] = {{answers_.get(), POLLIN, 0}, {signals != nullptr ? signals->fd() : -1, POLLIN, 0}};
    ::poll(waiting, 2, deadline.poll_ms(500));
    if (const int signal = signals != nullptr ? signals->next_signal() : 0; signal != 0) {
      *interrupted_by = signal;
      return cancelled("interrupted by {} while staging in (stage)", signal_name(signal));
    }
    STOKER_ASSIGN_OR_RETURN(is_open, read_answers());
    send_peers();
    if (!is_open && count() < expected_)
      return unavailable("staging: {} of {} nodes answered before it stopped (see its output above)", count(),
                         expected_);
    if (deadline.passed())
      return timeout("staging: {} of {} nodes did not finish in time ({})", expected_ - count(), expected_,
                     what);
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  return {};
}

Result<bool> Staging::read_answers() {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(answers_.get(), buffer.data(), buffer.size());
  if (got > 0) partial_.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n')) {
    STOKER_RETURN_IF_ERROR(parse_line(std::string_view(partial_).substr(0, end)));
    partial_.erase(0, end + 1);
  }
  if (partial_.size() > kLongestLine) partial_.clear();
  return got != 0;
}

void Staging::watch_rest(std::function<void(const StagedNode&)> on_rest) {
  const auto expected = static_cast<std::size_t>(std::ranges::count_if(nodes_, &StagedNode::has_rest));
  if (expected == 0) return;
  on_rest_ = std::move(on_rest);
  watcher_ = Thread([this, expected](const StopToken& stop) {
    while (!stop.stop_requested() && rest_.size() < expected) {
      pollfd waiting{answers_.get(), POLLIN, 0};
      ::poll(&waiting, 1, 100);
      const auto is_open = read_answers();
      if (!is_open.ok() || !*is_open) return;
    }
  });
}

void Staging::send_peers() {
  if (!peers_.empty() && !has_sent_peers_) {
    const bool is_complete = static_cast<int>(peers_.size()) == expected_;
    if (!is_complete && !peers_deadline_) peers_deadline_ = Deadline::after(kPeersTimeout);
    if (!is_complete && !peers_deadline_->passed()) return;
    has_sent_peers_ = true;
    stage::PeerList list{.addresses = {}, .secret = random_name(kSecretLength)};
    list.addresses.resize(static_cast<std::size_t>(expected_));
    for (const auto& [node, addresses] : peers_) list.addresses[static_cast<std::size_t>(node)] = addresses;
    send_line(to_line(list));
  }
  if (has_sent_peers_ && !list_line_.empty()) send_line(std::exchange(list_line_, {}));
}

void Staging::send_line(std::string_view line) {
  while (!line.empty()) {
    const ssize_t sent = ::write(orders_.get(), line.data(), line.size());
    if (sent <= 0) return;  // it has ended: its answer is missing
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Two nodes may see different states of a file on a shared filesystem.
Status Staging::compare_nodes() const {
  for (const StagedNode& node : nodes_) {
    const StagedNode& first = nodes_.front();
    if (node.fingerprint == first.fingerprint) continue;
    return corrupt("staging: {} and {} got different files: {} with {} bytes, and {} with {} (stage)",
                   printable(node.host), printable(first.host), grouped(node.files), grouped(node.bytes),
                   grouped(first.files), grouped(first.bytes))
        .cure("stoker resume      (after the files of `stage` are stable on all nodes)");
  }
  return {};
}

Status Staging::finish(Deadline deadline) {
  watcher_.join();
  orders_.reset();
  STOKER_RETURN_IF_ERROR(await_answers(deadline, "10 minutes", nullptr, nullptr));
  const Status ended = child_.wait(deadline).status();
  return problem_.ok() ? ended : problem_;
}

}  // namespace stoker::launch
