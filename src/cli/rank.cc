// `stoker rank -- COMMAND`: docs/commands/rank.md
#include "cli/arguments.h"
#include "cli/commands.h"
#include "netcheck/worker.h"
#include "rank/member/rank_runner.h"

namespace stoker::cli {

int rank(std::span<const std::string> words, Output& out) {
  rank::RankRunnerOptions o;
  bool answers_hello = false;
  Arguments arguments("rank", "Run and monitor the command of one rank (started by `stoker run`).");
  arguments.rest("COMMAND", &o.command, "Command of the rank");
  arguments.flag("--hello", &answers_hello, "Serve `stoker hello` instead");
  arguments.example("stoker rank -- python train.py");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (answers_hello) {
    const auto code = netcheck::run_network_check_worker();
    return code.ok() ? *code : out.fail(code.error());
  }
  if (o.command.empty()) return out.fail(invalid("rank: no command after --").cure("stoker run JOB"));
  const auto code = rank::run_rank(o);
  return code.ok() ? *code : out.fail(code.error());
}

}  // namespace stoker::cli
