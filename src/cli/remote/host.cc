#include "cli/remote/host.h"

#include <algorithm>
#include <filesystem>

#include "cli/output.h"
#include "cli/runs.h"
#include "launch/remote/send.h"

namespace stoker::cli {
namespace {

// Packs the files to send, with a note for files left out.
Result<std::optional<File>> pack(const std::string& job, launch::RemoteRequest& request, Output& out) {
  if (job.empty()) return std::optional<File>();
  const Path here = std::filesystem::current_path();
  STOKER_ASSIGN_OR_RETURN(what, launch::list_files_to_send(job, here));
  for (const std::string& name : what.left_out)
    out.note("not sent: {}, larger than 10 MiB and not in git", printable(name));
  for (const std::string& name : what.secret)
    out.note("not sent: {}, may hold secrets and not in git", printable(name));
  STOKER_ASSIGN_OR_RETURN(tar, launch::pack_files_to_send(what, here));
  STOKER_ASSIGN_OR_RETURN(bytes, tar.size());
  request.sent_below = what.below;
  request.files = std::move(what.files);
  request.bytes = bytes;
  return std::optional<File>(std::move(tar));
}

launch::RemoteRequest command_request(const launch::RemoteHost& host, const HostChoice& choice,
                                      std::string_view command, std::span<const std::string> words) {
  launch::RemoteRequest request{.words = {std::string(command)},
                                .folder = host.folder,
                                .sent_below = "",
                                .files = {},
                                .host_options = host_options(choice)};
  for (std::string& word : without_host(words)) request.words.push_back(std::move(word));
  return request;
}

// Connects and runs the request; its standard output goes to `out_fd`. Returns the remote exit code.
Result<int> call_host(const launch::RemoteHost& host, const launch::RemoteRequest& request, const File* tar,
                      int out_fd) {
  install_stop_signals();
  STOKER_ASSIGN_OR_RETURN(call, launch::RemoteCall::open(host, stop_requested));
  std::fflush(stdout);
  return call.run(request, tar, out_fd);
}

}  // namespace

void add_host_choice(Arguments& arguments, HostChoice* choice) {
  arguments.option("--host", &choice->host, "HOST[:DIR]",
                   "Run on this machine over ssh, in DIR (default: a folder for the current one)");
  arguments.option("--host-program", &choice->program, "PATH",
                   "Path of stoker there, if it is not in ssh's PATH");
}

Result<launch::RemoteHost> resolve_host(const HostChoice& choice) {
  return launch::parse_host(choice.host, choice.program, std::filesystem::current_path());
}

std::string host_options(const HostChoice& choice) {
  std::string text = "--host " + shell_quote(choice.host);
  if (!choice.program.empty()) text += " --host-program " + shell_quote(choice.program);
  return text;
}

std::vector<std::string> without_host(std::span<const std::string> words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      kept.insert(kept.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    const bool is_alone = word == "--host" || word == "--host-program";
    if (is_alone) ++i;
    if (!is_alone && !word.starts_with("--host=") && !word.starts_with("--host-program="))
      kept.push_back(word);
  }
  return kept;
}

std::vector<std::string> with_options(std::span<const std::string> words,
                                      std::span<const std::string> options) {
  std::vector<std::string> all(words.begin(), words.end());
  all.insert(std::find(all.begin(), all.end(), "--"), options.begin(), options.end());
  return all;
}

int run_on_host(const HostChoice& choice, std::string_view command, std::span<const std::string> words,
                const std::string& job, Output& out) {
  const auto host = resolve_host(choice);
  if (!host.ok()) return out.fail(host.error());
  launch::RemoteRequest request = command_request(*host, choice, command, words);
  const auto tar = pack(job, request, out);
  if (!tar.ok()) return out.fail(tar.error());
  const auto code = call_host(*host, request, *tar ? &**tar : nullptr, 1);
  return code.ok() ? *code : out.fail(code.error());
}

int capture_on_host(const HostChoice& choice, std::string_view command, std::span<const std::string> words,
                    std::string* text, Output& out) {
  const auto host = resolve_host(choice);
  if (!host.ok()) return out.fail(host.error());
  const TempDirectory folder;
  auto file = File::create_new(folder / "output");
  if (!file.ok()) return out.fail(file.error());
  const auto code = call_host(*host, command_request(*host, choice, command, words), nullptr, file->fd());
  if (!code.ok()) return out.fail(code.error());
  if (*code != exit_code::kOk) return *code;
  auto content = read_file(file->path());
  if (!content.ok()) return out.fail(content.error());
  *text = std::move(*content);
  return exit_code::kOk;
}

}  // namespace stoker::cli
