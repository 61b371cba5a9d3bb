#include "lab/fault/ask.h"

#include <algorithm>

#include "slurm/queue/job_table.h"
#include "slurm/queue/scheduler.h"

namespace stoker::lab::fault {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(30);
constexpr auto kHearTime = std::chrono::seconds(60);

bool is_heard(std::string_view state) {
  // A '*' marks a node that does not answer; "unknown" one that has not answered yet.
  return !state.empty() && state.find('*') == state.npos && !state.starts_with("down") &&
         !state.starts_with("unk");
}

}  // namespace

Result<std::string> ask_slurm(const Lab& lab, std::vector<std::string> argv) {
  const std::string program = argv[0];
  Command command = client_command(lab, std::move(argv));
  command.environment = slurm::submission_environment(*command.environment);
  auto done = run_program(command, Deadline::after(kAnswerTime));
  if (!done) return std::move(done).error().with_context(lab.name);
  if (!done->exit.ok()) return slurm::complaint(program, *done).with_context(lab.name);
  return std::move(done->out);
}

Result<std::string> node_state(const Lab& lab, std::string_view node) {
  OK_OR_RETURN(text, ask_slurm(lab, {"sinfo", "-h", "-N", "-n", std::string(node), "-o", "%T"}));
  return std::string(trim(split(text, '\n')[0]));
}

bool wait_until_heard(const Lab& lab, std::string_view node) {
  const Deadline deadline = Deadline::after(kHearTime);
  bool is_resumed = false;
  for (;;) {
    const auto state = node_state(lab, node);
    if (state && is_heard(*state)) return true;
    if (deadline.passed()) return false;
    // A node that is down is left alone by Slurm for minutes; resuming makes it ask at once.
    if (state && state->starts_with("down") && !is_resumed) {
      is_resumed = ask_slurm(lab, {"scontrol", "update", format("NodeName={}", node), "State=RESUME"}).ok();
    }
    RealClock().sleep(std::chrono::milliseconds(200));
  }
}

Result<JobView> find_job(const Lab& lab, std::string_view text) {
  if (!slurm::is_job_id(text)) return invalid("{}: is no job id", printable(text));
  const Status nowhere = not_found("{}: no such job in {}", text, lab.name);
  auto answer =
      ask_slurm(lab, {"squeue", "-h", "-t", "all", "-j", std::string(text), "-o", "%A|%T|%P|%N|%l"});
  // A job that left the controller's memory is "Invalid job id"; one of a whole array that did is an empty
  // list.
  if (!answer) return answer.error().code() == Code::unavailable ? std::move(answer).error() : nowhere;
  const auto fields = split(split(*answer, '\n')[0], '|');
  if (fields.size() != 5) return nowhere;
  return JobView{.id = std::string(fields[0]),
                 .word = std::string(fields[1]),
                 .state = slurm::parse_job_state(fields[1]),
                 .partition = std::string(fields[2]),
                 .nodes = std::string(fields[3]),
                 .limit = std::string(fields[4])};
}

Result<JobView> find_running_job(const Lab& lab, std::string_view text) {
  OK_OR_RETURN(job, find_job(lab, text));
  if (job.state != slurm::JobState::running) return invalid("{}: does not run ({})", text, job.word);
  return std::move(job);
}

}  // namespace stoker::lab::fault
