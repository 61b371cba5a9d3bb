#include "launch/start/tracker_process.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <poll.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/language/counted.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

// The process gives itself 10 s, and a request may be under way.
constexpr Duration kTrackerTimeout = 15s;
constexpr Duration kStartTimeout = 5s;

bool has_trackers(const job::RecordOptions& record) {
  return record.mlflow || record.tensorboard || record.wandb || record.comet || record.csv;
}

// Whether a signal waits until the process reads it (signalfd), which begins shortly after its start.
bool reads_signal(pid_t pid, int signal) {
  const auto status = read_pseudo_file(format("/proc/{}/status", pid));
  constexpr std::string_view kBlocked = "SigBlk:";
  const std::size_t at = status.ok() ? status->find(kBlocked) : std::string::npos;
  if (at == std::string::npos || status->find("\nState:\tZ") < at) return true;  // it has ended
  const std::string_view rest = trim(std::string_view(*status).substr(at + kBlocked.size()));
  std::uint64_t blocked = 0;
  (void)std::from_chars(rest.data(), rest.data() + rest.size(), blocked, 16);
  return (blocked >> (signal - 1) & 1) != 0;
}

// What the process prints with --json.
std::vector<std::string> describe_answers(const std::string& text, const std::string& run) {
  const auto json = parse_json<nlohmann::json>(text);
  std::vector<std::string> lines;
  const auto trackers = json.is_object() ? json.find("trackers") : json.end();
  if (!json.is_object() || trackers == json.end() || !trackers->is_array()) return lines;
  for (const auto& each : *trackers) {
    const std::string problem = each.value("problem", "");
    if (problem.empty()) continue;
    lines.push_back(format("{}: {} not delivered: {}", each.value("tracker", ""),
                           counted(each.value("waiting", std::uint64_t{0}), "point"), problem));
  }
  if (!lines.empty()) lines.push_back(format("  try: stoker track push {}", run));
  return lines;
}

}  // namespace

std::optional<TrackerProcess> TrackerProcess::start(const job::Job& job, const Part& part, const Path& stoker,
                                                    std::string* problem) {
  if (!has_trackers(job.record)) return std::nullopt;
  const Path log =
      part.attempt.folder() / (part.task == 0 ? "track.log" : format("track-{:05}.log", part.task));
  auto file = File::open_append(log);
  auto answers = Pipe::create();
  Status status = file.ok() ? answers.status() : file.status();
  if (status.ok()) {
    Command command;
    command.argv = {stoker.string(), "track", "push", std::filesystem::absolute(part.run.folder()).string(),
                    "--follow",      "--json"};
    if (part.task > 0) command.argv.insert(command.argv.end(), {"--task", std::to_string(part.task)});
    command.stdout_fd = answers->write.get();
    command.stderr_fd = file->fd();
    // Ctrl-C and signals of Slurm to the group of the ranks are not for it.
    command.group = Group::own;
    command.parent_death_signal = SIGTERM;
    auto child = Child::spawn(command);
    status = child.status();
    const std::string reference =
        part.task == 0 ? part.run.id() : format("{} --task {}", part.run.id(), part.task);
    if (child.ok()) return TrackerProcess(*std::move(child), std::move(answers->read), log, reference);
  }
  *problem = format("trackers: not started: {}", status.message());
  return std::nullopt;
}

TrackerProcess::~TrackerProcess() {
  if (!child_ || child_->poll()) return;
  (void)child_->signal(SIGKILL);
  (void)child_->wait(Deadline::after(5s));
}

std::vector<std::string> TrackerProcess::finish() {
  // Earlier, the signal would kill it: a short task may end before its tracker process has begun.
  for (const Deadline start = Deadline::after(kStartTimeout);
       !reads_signal(child_->pid(), SIGTERM) && !start.passed();)
    RealClock().sleep(5ms);
  (void)child_->signal(SIGTERM);
  const auto exit = child_->wait(Deadline::after(kTrackerTimeout));
  // An array may have 100 000 tasks without messages.
  std::error_code ignored;
  if (log_.filename() != "track.log" && std::filesystem::file_size(log_, ignored) == 0)
    (void)remove_file(log_);
  if (!exit.ok()) {
    (void)child_->signal(SIGKILL);
    (void)child_->wait(Deadline::after(5s));
  }
  std::string text(65536, '\0');
  pollfd waiting{answers_.get(), POLLIN, 0};
  const bool has_text = exit.ok() && ::poll(&waiting, 1, 0) > 0;
  const ssize_t n = has_text ? ::read(answers_.get(), text.data(), text.size()) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (exit.ok() && exit->ok()) return {};
  std::vector<std::string> lines = describe_answers(text, run_);
  if (!lines.empty()) return lines;
  return {format("trackers: they did not receive all points ({})", printable(log_.string())),
          format("  try: stoker track push {}", run_)};
}

}  // namespace stoker::launch
