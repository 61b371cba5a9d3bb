#include "lab/fault/slurm_query.h"

#include <algorithm>

#include "slurm/queue/job_table.h"
#include "slurm/queue/scheduler.h"

namespace stoker::lab::fault {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(30);
constexpr auto kRespondTimeout = std::chrono::seconds(60);

bool is_responding(std::string_view state) {
  // A '*' marks a node that does not answer; "unknown" a node that has not responded yet.
  return !state.empty() && state.find('*') == state.npos && !state.starts_with("down") &&
         !state.starts_with("unk");
}

}  // namespace

Result<std::string> run_slurm_command(const Lab& lab, std::vector<std::string> argv) {
  const std::string program = argv[0];
  Command command = client_command(lab, std::move(argv));
  command.environment = slurm::submission_environment(*command.environment);
  auto done = run_program(command, Deadline::after(kAnswerTime));
  if (!done) return std::move(done).error().with_context(lab.name);
  if (!done->exit.ok()) return slurm::command_error(program, *done).with_context(lab.name);
  return std::move(done->out);
}

Result<std::string> node_state(const Lab& lab, std::string_view node) {
  STOKER_ASSIGN_OR_RETURN(text,
                          run_slurm_command(lab, {"sinfo", "-h", "-N", "-n", std::string(node), "-o", "%T"}));
  return std::string(trim(split(text, '\n')[0]));
}

bool wait_until_responding(const Lab& lab, std::string_view node) {
  const Deadline deadline = Deadline::after(kRespondTimeout);
  bool is_resumed = false;
  for (;;) {
    const auto state = node_state(lab, node);
    if (state && is_responding(*state)) return true;
    if (deadline.passed()) return false;
    // Slurm does not contact a down node for minutes; resuming it makes Slurm contact it at once.
    if (state && state->starts_with("down") && !is_resumed) {
      is_resumed =
          run_slurm_command(lab, {"scontrol", "update", format("NodeName={}", node), "State=RESUME"}).ok();
    }
    RealClock().sleep(std::chrono::milliseconds(200));
  }
}

Result<QueuedJob> find_job(const Lab& lab, std::string_view text) {
  if (!slurm::is_job_id(text)) return invalid("{}: not a job id", printable(text));
  const Status nowhere = not_found("{}: no such job in {}", text, lab.name);
  auto answer =
      run_slurm_command(lab, {"squeue", "-h", "-t", "all", "-j", std::string(text), "-o", "%A|%T|%P|%N|%l"});
  // For a forgotten job squeue prints "Invalid job id", for a forgotten array an empty list.
  if (!answer) return answer.error().code() == Code::unavailable ? std::move(answer).error() : nowhere;
  const auto fields = split(split(*answer, '\n')[0], '|');
  if (fields.size() != 5) return nowhere;
  return QueuedJob{.id = std::string(fields[0]),
                   .state_text = std::string(fields[1]),
                   .state = slurm::parse_job_state(fields[1]),
                   .partition = std::string(fields[2]),
                   .nodes = std::string(fields[3]),
                   .limit = std::string(fields[4])};
}

Result<QueuedJob> find_running_job(const Lab& lab, std::string_view text) {
  STOKER_ASSIGN_OR_RETURN(job, find_job(lab, text));
  if (job.state != slurm::JobState::running) return invalid("{}: not running ({})", text, job.state_text);
  return std::move(job);
}

}  // namespace stoker::lab::fault
