// `stoker remote NONCE`: docs/commands/remote.md
#include <chrono>
#include <csignal>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/running.h"
#include "launch/remote/serve.h"

namespace stoker::cli {
namespace {

constexpr std::chrono::seconds kRequestPatience{60};

Result<int> serve(Output& out) {
  launch::Incoming in(0);
  OK_OR_RETURN(line, in.line(Deadline::after(kRequestPatience)));
  OK_OR_RETURN(request, launch::parse_request(line));
  OK_OR_RETURN(program, own_program());
  RETURN_IF_ERROR(launch::enter_folder(request));
  RETURN_IF_ERROR(launch::take_files(request, in));
  if (request.kind == launch::RemoteRequest::Kind::command) return launch::run_words(request, program, 0);
  const Status sent = launch::send_run(request);
  return sent.ok() ? exit_code::kOk : out.fail(sent);
}

}  // namespace

int remote(std::span<const std::string> words, Output& out) {
  std::string nonce;
  Arguments arguments("remote",
                      "Does what a stoker on another machine asks for; `--host` starts it through ssh.");
  arguments.positional("NONCE", &nonce, "a word by which the other end knows the answer");
  arguments.example("ssh login.cluster stoker remote k3j5");
  if (const auto code = arguments.parse(words, out)) return *code;
  // A line of its own, whatever a shell has printed before.
  out.line("\n{}", launch::greeting(printable(nonce), version()));
  std::fflush(stdout);
  const auto code = serve(out);
  return code.ok() ? *code : out.fail(code.error());
}

}  // namespace stoker::cli
