// `stoker remote NONCE`: docs/commands/remote.md
#include <chrono>
#include <csignal>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/run_request.h"
#include "launch/remote/serve.h"
#include "transfer/serve.h"

namespace stoker::cli {
namespace {

constexpr std::chrono::seconds kRequestTimeout{60};

Result<int> serve(Output& out) {
  launch::Incoming in(0);
  STOKER_ASSIGN_OR_RETURN(line, in.line(Deadline::after(kRequestTimeout)));
  STOKER_ASSIGN_OR_RETURN(request, launch::parse_request(line));
  STOKER_ASSIGN_OR_RETURN(program, own_program());
  STOKER_RETURN_IF_ERROR(launch::enter_folder(request));
  STOKER_RETURN_IF_ERROR(launch::receive_files(request, in));
  if (request.kind == launch::RemoteRequest::Kind::command)
    return launch::run_remote_command(request, program, 0);
  if (request.kind == launch::RemoteRequest::Kind::transfer) {
    STOKER_RETURN_IF_ERROR(transfer::serve(in, 1));
    return exit_code::kOk;
  }
  const Status sent = launch::send_run(request);
  return sent.ok() ? exit_code::kOk : out.fail(sent);
}

}  // namespace

int remote(std::span<const std::string> words, Output& out) {
  std::string nonce;
  Arguments arguments("remote",
                      "Serve a command of a stoker on another machine (started by `--host` over ssh).");
  arguments.positional("NONCE", &nonce, "Token that identifies the response");
  arguments.example("ssh login.cluster stoker remote k3j5");
  if (const auto code = arguments.parse(words, out)) return *code;
  // On a new line, in case a shell printed before.
  out.line("\n{}", launch::greeting(printable(nonce), version()));
  std::fflush(stdout);
  const auto code = serve(out);
  return code.ok() ? *code : out.fail(code.error());
}

}  // namespace stoker::cli
