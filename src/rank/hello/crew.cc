#include "rank/hello/crew.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "rank/environment.h"

namespace stoker::rank::hello {
namespace {

constexpr std::size_t kMostLines = 200;
constexpr std::size_t kLongestError = 1000;

}  // namespace

std::vector<std::string> srun_command(const CrewOptions& options) {
  const Plan& plan = options.plan;
  std::vector<std::string> argv =
      slurm::srun_arguments({plan.world_size(), plan.nodes, plan.ranks_per_node(), plan.cpus_per_rank, {}});
  // A node that cannot start its task must not end the others: what they see tells which it is, and why.
  argv.insert(argv.begin() + 1, {"--label", "--no-kill"});
  argv.insert(argv.begin() + 1, options.srun_options.begin(), options.srun_options.end());
  argv.insert(argv.end(), {options.stoker.string(), "rank", "--hello"});
  return argv;
}

Crew::Line labelled(std::string_view line) {
  const std::size_t colon = line.find(": ");
  std::int64_t rank = 0;
  if (colon != std::string_view::npos && parse_number(trim(line.substr(0, colon)), &rank) && rank >= 0 &&
      rank <= 1'000'000)
    return {Rank(static_cast<int>(rank)), printable(line.substr(colon + 2))};
  return {std::nullopt, printable(line)};
}

Result<Crew> Crew::start(const CrewOptions& options) {
  Crew crew;
  Environment base = options.environment;
  set_variable(base, kWorldVariable, options.invitation);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.start_limit).count();
  set_variable(base, kStartVariable, std::to_string(std::max<std::int64_t>(1, seconds)));
  const Plan& plan = options.plan;
  if (plan.start == Start::srun) {
    for (const std::string& name : slurm::variables_to_drop()) unset_variable(base, name);
    if (plan.cpus_per_rank > 0) set_variable(base, "SRUN_CPUS_PER_TASK", std::to_string(plan.cpus_per_rank));
    RETURN_IF_ERROR(crew.start_one(srun_command(options), base, std::nullopt));
    return crew;
  }
  for (int r = 0; r < plan.world_size().value; ++r) {
    Environment environment = base;
    set_variable(environment, kPlaceVariable,
                 to_text(Place{Rank(r), plan.world_size(), r, plan.world_size().value, 0}));
    const Status started =
        crew.start_one({options.stoker.string(), "rank", "--hello"}, std::move(environment), Rank(r));
    if (started.ok()) continue;
    crew.end(Duration::zero());
    return started;
  }
  return crew;
}

Status Crew::start_one(std::vector<std::string> argv, Environment environment, std::optional<Rank> rank) {
  OK_OR_RETURN(pipe, Pipe::create());
  Command command;
  command.argv = std::move(argv);
  command.environment = std::move(environment);
  command.stdout_fd = pipe.write.get();
  command.stderr_fd = pipe.write.get();
  // Ctrl-C at the terminal is for the session, which then ends them in order.
  command.group = ::stoker::Group::own;
  command.parent_death_signal = SIGTERM;
  OK_OR_RETURN(child, Child::spawn(command));
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  workers_.push_back({std::move(child), rank, std::move(pipe.read), "", false});
  return {};
}

void Crew::read(Worker& worker, std::vector<Line>* lines) {
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
      lines->push_back(worker.rank ? Line{worker.rank, printable(text)} : labelled(text));
    }
    // A line without an end does not grow for ever.
    if (worker.line.size() > 2 * kLongestError) worker.line.resize(kLongestError);
  }
}

std::vector<Crew::Line> Crew::look() {
  std::vector<Line> lines;
  for (Worker& worker : workers_) {
    read(worker, &lines);
    if (!worker.has_ended && worker.child.poll()) {
      worker.has_ended = true;
      read(worker, &lines);
    }
  }
  said_.insert(said_.end(), lines.begin(), lines.end());
  if (said_.size() > kMostLines)
    said_.erase(said_.begin(), said_.end() - static_cast<std::ptrdiff_t>(kMostLines));
  return lines;
}

bool Crew::is_over() const { return std::ranges::all_of(workers_, &Worker::has_ended); }

void Crew::end(Duration grace) {
  for (Worker& worker : workers_) {
    if (worker.has_ended) continue;
    (void)worker.child.signal(SIGTERM);
    (void)worker.child.signal(SIGCONT);  // one that was stopped could not act on it
  }
  const Deadline deadline = Deadline::after(grace);
  for (Worker& worker : workers_) {
    if (worker.child.wait(deadline).ok()) continue;
    (void)worker.child.signal(SIGKILL);
    (void)worker.child.wait(Deadline::after(std::chrono::seconds(5)));
  }
}

}  // namespace stoker::rank::hello
