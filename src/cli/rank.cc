// `stoker rank -- COMMAND`: docs/commands/rank.md
#include "cli/arguments.h"
#include "cli/commands.h"
#include "rank/hello/member.h"
#include "rank/member/member.h"

namespace stoker::cli {

int rank(std::span<const std::string> words, Output& out) {
  rank::MemberOptions o;
  bool answers_hello = false;
  Arguments arguments(
      "rank", "Is one rank of a run: starts the command, watches it, ends it. `stoker run` starts these.");
  arguments.rest("COMMAND", &o.command, "what the rank executes");
  arguments.flag("--hello", &answers_hello, "answers a `stoker hello`, which started it, instead");
  arguments.example("stoker rank -- python train.py");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (answers_hello) {
    const auto code = rank::hello::run_member();
    return code.ok() ? *code : out.fail(code.error());
  }
  if (o.command.empty()) return out.fail(invalid("rank: no command after --").cure("stoker run JOB"));
  const auto code = rank::run_member(o);
  return code.ok() ? *code : out.fail(code.error());
}

}  // namespace stoker::cli
