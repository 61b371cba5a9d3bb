#include "sweep/runner/trial_run.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/process.h"
#include "sweep/results/trial_table.h"
#include "sweep/runner/command_template.h"
#include "sweep/runner/trial_metrics.h"

namespace stoker::sweep {

namespace {

using namespace std::chrono_literals;

constexpr auto kPollInterval = 200ms;
// Without a pruner, curves need no more points than this.
constexpr Duration kReportInterval = 1s;

Environment trial_environment(const Proposal& proposal, const Path& folder) {
  Environment environment = current_environment();
  set_variable(environment, "STOKER_ATTEMPT_DIR", folder.string());
  set_variable(environment, "STOKER_TRIAL", format("{}", proposal.number));
  set_variable(environment, "STOKER_TRIAL_PARAMS", json_values(proposal.values));
  return environment;
}

// One command, from its start to the end of its output.
class RunningTrial {
 public:
  RunningTrial(Study& study, const Proposal& proposal, const TrialRunOptions& options, TrialMetrics metrics)
      : study_(study), proposal_(proposal), options_(options), metrics_(std::move(metrics)) {}

  Status start(const Path& folder) {
    STOKER_ASSIGN_OR_RETURN(log, File::create(folder / "output.log"));
    log_ = std::move(log);
    STOKER_ASSIGN_OR_RETURN(pipe, Pipe::create());
    Command command;
    command.argv = fill_command(options_.command, study_.definition().space, proposal_.values);
    command.environment = trial_environment(proposal_, folder);
    command.stdout_fd = pipe.write.get();
    command.stderr_fd = pipe.write.get();
    command.group = Group::own;
    command.parent_death_signal = SIGTERM;
    STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
    child_ = std::move(child);
    output_ = std::move(pipe.read);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    return {};
  }

  Result<TrialRunResult> wait() {
    while (!child_->poll()) {
      std::array<pollfd, 2> waiting = {pollfd{output_.get(), POLLIN, 0}, pollfd{child_->pidfd(), POLLIN, 0}};
      ::poll(waiting.data(), waiting.size(), static_cast<int>(kPollInterval / 1ms));
      read_output();
      forward_signals();
      if (!is_stopping()) report();
      if (kill_at_ && kill_at_->passed()) send(SIGKILL);
    }
    read_output();
    // What the command left running does not outlive its trial.
    send(SIGKILL);
    if (!is_pruned_) report();
    STOKER_RETURN_IF_ERROR(study_.tell(proposal_.number, ending()));
    return TrialRunResult{*study_.find(proposal_.number), signal_};
  }

 private:
  bool is_stopping() const { return is_pruned_ || signal_.has_value(); }
  void send(int signal) { ::kill(-child_->pid(), signal); }
  void stop(int signal) {
    send(signal);
    if (!kill_at_) kill_at_ = Deadline::after(options_.grace);
  }
  void forward_signals() {
    while (const auto signal = options_.next_signal ? options_.next_signal() : std::nullopt) {
      signal_ = *signal;
      stop(*signal);
    }
  }
  void read_output() {
    std::array<char, 65536> buffer{};
    for (ssize_t got = 0; (got = ::read(output_.get(), buffer.data(), buffer.size())) > 0;) {
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      // A full disk costs the log, not the trial.
      (void)log_.write(bytes);
      if (options_.output) options_.output(bytes);
      metrics_.read_output(bytes);
    }
  }
  // A report that cannot be recorded, on a full disk for example, costs the report and not the trial.
  void report() {
    const bool has_pruner = study_.definition().pruner.kind != PrunerKind::none;
    for (const ObjectiveReport& report : metrics_.poll()) {
      const bool is_due = has_pruner || !next_report_ || next_report_->passed();
      if (!is_due) continue;
      next_report_ = Deadline::after(kReportInterval);
      const auto is_stopped = study_.report(proposal_.number, report.step, report.value);
      if (!is_stopped.ok() || !*is_stopped || child_->poll()) continue;
      is_pruned_ = true;
      return stop(SIGTERM);
    }
  }
  TrialEnding ending() {
    const Exit exit = *child_->poll();
    if (is_pruned_) return {TrialState::pruned, {}, ""};
    if (signal_) return {TrialState::failed, {}, format("stopped by {}", signal_name(*signal_))};
    if (!exit.ok()) return {TrialState::failed, {}, to_text(exit)};
    auto values = metrics_.finish();
    if (!values) return {TrialState::failed, {}, std::string(values.error().message())};
    return {TrialState::complete, *std::move(values), ""};
  }

  Study& study_;
  const Proposal& proposal_;
  const TrialRunOptions& options_;
  TrialMetrics metrics_;
  File log_;
  Fd output_;
  std::optional<Child> child_;
  std::optional<Deadline> kill_at_;
  std::optional<Deadline> next_report_;
  std::optional<int> signal_;
  bool is_pruned_ = false;
};

}  // namespace

Result<TrialRunResult> run_trial(Study& study, const Proposal& proposal, const TrialRunOptions& options) {
  std::string name = format("{}", proposal.number);
  if (proposal.attempt > 0) name += format(".{}", proposal.attempt);
  const Path folder = std::filesystem::absolute(study.folder()) / "trials" / name;
  Status started = make_directories(folder);
  auto metrics = TrialMetrics::create(study.definition(), folder);
  if (!metrics) return std::move(metrics).error();
  RunningTrial trial(study, proposal, options, *std::move(metrics));
  if (started.ok()) started = trial.start(folder);
  if (started.ok()) return trial.wait();
  STOKER_RETURN_IF_ERROR(
      study.tell(proposal.number, {TrialState::failed, {}, std::string(started.message())}));
  return TrialRunResult{*study.find(proposal.number), std::nullopt};
}

}  // namespace stoker::sweep
