#include "cli/runs.h"

namespace stoker::cli {

void add_run_choice(Arguments& arguments, RunChoice* choice) {
  arguments.optional_positional("RUN", &choice->run,
                                "run id, a unique prefix of one, a folder, or 'last' [last]");
  arguments.option("--runs", &choice->runs, "DIR", "folder that holds the runs (the job's record.directory)");
}

Result<record::RunFolder> find_run(const RunChoice& choice) {
  return record::RunFolder::find(choice.runs, choice.run);
}

Result<record::Attempt> find_attempt(const record::RunFolder& run, std::int64_t number) {
  if (number == 0) return run.last_attempt();
  OK_OR_RETURN(attempts, run.attempts());
  for (const record::Attempt& attempt : attempts) {
    if (attempt.number() == number) return attempt;
  }
  if (attempts.empty()) return not_found("run {}: has no attempt yet", run.id());
  return not_found("run {}: no attempt {} (1 to {} exist)", run.id(), number, attempts.back().number());
}

}  // namespace stoker::cli
