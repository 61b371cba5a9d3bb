// `stoker shell [JOB]`: docs/commands/shell.md
#include "base/file.h"
#include "base/language/counted.h"
#include "cli/commands.h"
#include "cli/interactive/allocation.h"
#include "cli/run_request.h"
#include "launch/interactive/interactive.h"

namespace stoker::cli {
namespace {

struct ShellOptions {
  JobChoice choice{.job = "job.yaml"};
  std::string record;
};

// Files shared with the node, hence next to the job's runs and not in /tmp.
struct RecordingFiles {
  std::unique_ptr<TempDirectory> folder;
  Path rc;
  Path notes;
};

Result<RecordingFiles> make_recording_files(const job::Job& job) {
  STOKER_RETURN_IF_ERROR(make_directories(job.record.directory));
  RecordingFiles notes{
      .folder = std::make_unique<TempDirectory>(job.record.directory), .rc = {}, .notes = {}};
  notes.rc = *notes.folder / "bashrc";
  notes.notes = *notes.folder / "notes";
  STOKER_RETURN_IF_ERROR(write_file(notes.rc, launch::recording_bashrc(notes.notes)));
  return notes;
}

int record(const ShellOptions& o, const job::Job& job, const RecordingFiles& notes, Output& out) {
  const auto text = read_file(notes.notes);
  const auto lines = launch::successful_lines(text.ok() ? *text : "");
  if (lines.empty()) {
    out.note("no command succeeded: {} was not written", printable(o.record));
    return exit_code::kOk;
  }
  const Status written = write_file(o.record, to_yaml(launch::job_of_lines(job, lines)));
  if (!written.ok()) return out.fail(written);
  out.note("wrote {} with {}", printable(o.record), counted(lines.size(), "successful command"));
  out.note("  next: stoker submit {}", shell_quote(o.record));
  return exit_code::kOk;
}

int open_shell(const ShellOptions& o, const launch::Request& request, const std::vector<std::string>& words,
               Output& out) {
  auto environment = load_interactive_environment(request.job);
  if (!environment.ok()) return out.fail(environment.error());
  Command command;
  command.argv = words;
  command.environment = std::move(*environment);
  command.directory = request.job.working_directory;
  command.stdin_fd = 0;
  std::fflush(stdout);
  auto child = Child::spawn(command);
  if (!child.ok()) return out.fail(explain_missing_salloc(child.error(), o.choice.job));
  // Ctrl-C is for the shell, which owns the terminal.
  install_stop_signals();
  const auto exit = child->wait(Deadline::never());
  return exit.ok() ? exit->shell_code() : out.fail(exit.error());
}

}  // namespace

int shell(std::span<const std::string> words, Output& out) {
  ShellOptions o;
  Arguments arguments("shell", "Open a shell in a Slurm allocation with a job's resources and environment.");
  arguments.optional_positional("JOB", &o.choice.job, "Job file [job.yaml]");
  arguments.option("--set", &o.choice.set, "KEY=VALUE", "Override a job file value: --set resources.time=1h");
  arguments.option("--record", &o.record, "FILE",
                   "Write the successful commands to a job file when the shell exits");
  arguments.flag("--dry-run", &o.choice.dry_run, "Show the salloc command, allocate nothing");
  arguments.example("stoker shell job.yaml --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (!o.record.empty() && path_exists(o.record))
    return out.fail(exists("{}: already exists (--record)", printable(o.record)));
  if (const Status outside = check_not_in_allocation("shell", o.choice); !outside.ok())
    return out.fail(outside);
  const auto request = request_of(o.choice, "shell", words);
  if (!request.ok()) return out.fail(request.error());
  std::vector<std::string> shell = {"bash", "-i"};
  std::optional<RecordingFiles> notes;
  if (!o.record.empty() && !o.choice.dry_run) {
    auto made = make_recording_files(request->job);
    if (!made.ok()) return out.fail(made.error());
    shell = {"bash", "--rcfile", made->rc.string(), "-i"};
    notes = *std::move(made);
  }
  const auto line = launch::salloc_arguments(*request, shell);
  if (!line.ok()) return out.fail(line.error());
  if (o.choice.dry_run) return show_command(*line, out);
  const int code = open_shell(o, *request, *line, out);
  if (!notes) return code;
  const int recorded = record(o, request->job, *notes, out);
  return recorded == exit_code::kOk ? code : recorded;
}

}  // namespace stoker::cli
