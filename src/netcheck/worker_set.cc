#include "netcheck/worker_set.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "rank/environment.h"

namespace stoker::netcheck {
namespace {

constexpr std::size_t kMaxLines = 200;
constexpr std::size_t kLongestError = 1000;

}  // namespace

std::vector<std::string> srun_command(const WorkerSetOptions& options) {
  const rank::Plan& plan = options.plan;
  std::vector<std::string> argv =
      slurm::srun_arguments({plan.world_size(), plan.nodes, plan.ranks_per_node(), plan.cpus_per_rank, {}});
  // A node that cannot start its task must not end the other tasks: their results identify the node.
  argv.insert(argv.begin() + 1, {"--label", "--no-kill"});
  argv.insert(argv.begin() + 1, options.srun_options.begin(), options.srun_options.end());
  argv.insert(argv.end(), {options.stoker.string(), "rank", "--hello"});
  return argv;
}

WorkerSet::Line parse_label(std::string_view line) {
  const std::size_t colon = line.find(": ");
  std::int64_t rank = 0;
  if (colon != std::string_view::npos && parse_number(trim(line.substr(0, colon)), &rank) && rank >= 0 &&
      rank <= 1'000'000)
    return {Rank(static_cast<int>(rank)), printable(line.substr(colon + 2))};
  return {std::nullopt, printable(line)};
}

Result<WorkerSet> WorkerSet::start(const WorkerSetOptions& options) {
  WorkerSet workers;
  Environment base = options.environment;
  set_variable(base, rank::kWorldVariable, options.invitation);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.start_limit).count();
  set_variable(base, rank::kStartVariable, std::to_string(std::max<std::int64_t>(1, seconds)));
  const rank::Plan& plan = options.plan;
  if (plan.start == rank::StartMethod::srun) {
    for (const std::string& name : slurm::variables_to_drop()) unset_variable(base, name);
    if (plan.cpus_per_rank > 0) set_variable(base, "SRUN_CPUS_PER_TASK", std::to_string(plan.cpus_per_rank));
    STOKER_RETURN_IF_ERROR(workers.start_one(srun_command(options), base, std::nullopt));
    return workers;
  }
  for (int r = 0; r < plan.world_size().value; ++r) {
    Environment environment = base;
    set_variable(environment, rank::kPlaceVariable,
                 to_text(rank::RankPlacement{Rank(r), plan.world_size(), r, plan.world_size().value, 0}));
    const Status started =
        workers.start_one({options.stoker.string(), "rank", "--hello"}, std::move(environment), Rank(r));
    if (started.ok()) continue;
    workers.end(Duration::zero());
    return started;
  }
  return workers;
}

Status WorkerSet::start_one(std::vector<std::string> argv, Environment environment,
                            std::optional<Rank> rank) {
  STOKER_ASSIGN_OR_RETURN(pipe, Pipe::create());
  Command command;
  command.argv = std::move(argv);
  command.environment = std::move(environment);
  command.stdout_fd = pipe.write.get();
  command.stderr_fd = pipe.write.get();
  // The session handles Ctrl-C and ends the ranks in order.
  command.group = ::stoker::Group::own;
  command.parent_death_signal = SIGTERM;
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  workers_.push_back({std::move(child), rank, std::move(pipe.read), "", false});
  return {};
}

void WorkerSet::read(Worker& worker, std::vector<Line>* lines) {
  std::array<char, 4096> buffer{};
  while (worker.output) {
    const ssize_t n = ::read(worker.output.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      worker.output.reset();
      if (!worker.line.empty()) worker.line += '\n';
    } else {
      worker.line.append(buffer.data(), static_cast<std::size_t>(n));
    }
    for (std::size_t end = 0; (end = worker.line.find('\n')) != std::string::npos;) {
      const std::string text = worker.line.substr(0, std::min(end, kLongestError));
      worker.line.erase(0, end + 1);
      lines->push_back(worker.rank ? Line{worker.rank, printable(text)} : parse_label(text));
    }
    // Bounds a line without an end.
    if (worker.line.size() > 2 * kLongestError) worker.line.resize(kLongestError);
  }
}

std::vector<WorkerSet::Line> WorkerSet::poll_output() {
  std::vector<Line> lines;
  for (Worker& worker : workers_) {
    read(worker, &lines);
    if (!worker.has_ended && worker.child.poll()) {
      worker.has_ended = true;
      read(worker, &lines);
    }
  }
  output_.insert(output_.end(), lines.begin(), lines.end());
  if (output_.size() > kMaxLines)
    output_.erase(output_.begin(), output_.end() - static_cast<std::ptrdiff_t>(kMaxLines));
  return lines;
}

bool WorkerSet::is_over() const { return std::ranges::all_of(workers_, &Worker::has_ended); }

void WorkerSet::end(Duration grace) {
  for (Worker& worker : workers_) {
    if (worker.has_ended) continue;
    (void)worker.child.signal(SIGTERM);
    (void)worker.child.signal(SIGCONT);  // a stopped process could not handle the signal
  }
  const Deadline deadline = Deadline::after(grace);
  for (Worker& worker : workers_) {
    if (worker.child.wait(deadline).ok()) continue;
    (void)worker.child.signal(SIGKILL);
    (void)worker.child.wait(Deadline::after(std::chrono::seconds(5)));
  }
}

}  // namespace stoker::netcheck
