#include "cli/run_request.h"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/json/json.h"
#include "cli/checkpoint/directory.h"
#include "cli/runs.h"
#include "job/check.h"
#include "observe/progress.h"
#include "record/run_events.h"
#include "record/staged_data.h"
#include "report/sentence.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string command_text(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + shell_quote(word);
  return text;
}

std::string world_text(const rank::Plan& plan) {
  const std::string ranks =
      plan.world_size().value == 1 ? "1 rank" : format("{} ranks", plan.world_size().value);
  const std::string_view by = plan.has_torchrun ? ", started by torchrun" : "";
  if (plan.start == rank::StartMethod::local) return format("{} on this machine{}", ranks, by);
  return format("{} on {} {} of Slurm job {}{}", ranks, plan.nodes, plan.nodes == 1 ? "node" : "nodes",
                plan.scheduler_job, by);
}

// Ranks would fail on it without an error message. A MASTER_PORT of an outer run is not inherited.
Status check_inherited_port(const job::Job& job) {
  const std::string port = environment_value("MASTER_PORT").value_or("");
  const bool is_of_outer_run = !environment_value("RANK").value_or("").empty();
  const bool is_replaced = job.environment.variables.contains("MASTER_PORT");
  if (port.empty() || is_of_outer_run || is_replaced || job::is_port(port)) return {};
  return invalid("MASTER_PORT: '{}' is not a port (environment)", printable(port)).cure("unset MASTER_PORT");
}

int show_plan(const launch::Request& request, const launch::Prepared& prepared, Output& out) {
  const rank::Plan& plan = prepared.plan;
  const bool is_train = request.job.train.has_value();
  std::vector<std::string> command = prepared.command;
  if (is_train) command.insert(command.end(), {"--job", "$STOKER_JOB"});
  const std::string words =
      is_train ? command_text(prepared.command) + " --job $STOKER_JOB" : command_text(command);
  out.line("{}", request.resumed ? format("would resume {}", request.resumed->id())
                                 : format("would run {}, in {}/", request.job.name,
                                          display_path(request.job.record.directory)));
  out.line("  ranks    {}", world_text(plan));
  out.line("  command  {}", words);
  out.line("  folder   {}", request.job.working_directory);
  for (const auto& [name, source] : request.job.data) out.line("  data     {}: {}", name, source.source);
  out.json(json_text(
      nlohmann::ordered_json{{"name", request.job.name},
                             {"resumes", request.resumed ? Json(request.resumed->id()) : Json(nullptr)},
                             {"world_size", plan.world_size().value},
                             {"nodes", plan.nodes},
                             {"ranks_per_node", plan.ranks_per_node()},
                             {"ranks_of_node", plan.ranks_of_node},
                             {"with_torchrun", plan.has_torchrun},
                             {"hosts", plan.hosts},
                             {"with_srun", plan.start == rank::StartMethod::srun},
                             {"command", command},
                             {"working_directory", request.job.working_directory.string()}}));
  return exit_code::kOk;
}

std::string amount_text(std::uint64_t files, std::uint64_t bytes) {
  return format("{} {}, {}", grouped(files), files == 1 ? "file" : "files", rounded(ByteCount{bytes}));
}

// "1.2 s (400 MB/s)" of the slowest node.
std::string time_text(const std::vector<launch::StagedNode>& nodes) {
  const auto slowest = std::max_element(nodes.begin(), nodes.end(),
                                        [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  const double seconds = std::max(slowest->seconds, 1e-3);
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(slowest->bytes) / seconds);
  return format("{:.1f} s ({}/s)", seconds, rounded(ByteCount{rate}));
}

// Where several nodes shared the work, or found it done.
void note_traffic(const std::vector<launch::StagedNode>& nodes, Output& out) {
  record::StagedData sum;
  for (const launch::StagedNode& node : nodes) sum.add(node.bytes, node.received_bytes, node.cached_bytes);
  if (sum.received + sum.cached == 0) return;
  out.note("staging: {} read from the source, {} received from other nodes, {} in caches already",
           rounded({sum.read}), rounded({sum.received}), rounded({sum.cached}));
}

// Prints the run's folder and stage-in results on standard error; standard output belongs to rank 0.
class RunReporter final : public launch::Observer {
 public:
  explicit RunReporter(Output& out) : out_(out) {}
  void on_run_created(const record::RunFolder& folder, const record::Attempt& attempt,
                      const launch::ResumePoint& from) override {
    const std::string place = display_path(folder.folder().parent_path());
    if (attempt.number() == 1) {
      out_.note("run {}   in {}/", folder.id(), place);
    } else {
      out_.note("run {}   attempt {}, from {}", folder.id(), attempt.number(),
                from.step.empty() ? "the start: there is no checkpoint yet" : display_path(from.step));
    }
    note_skipped_steps(from.skipped, out_);
  }
  void on_note(const std::string& note) override { out_.note("{}", note); }
  void on_staged(const std::vector<launch::StagedNode>& nodes) override {
    note_traffic(nodes, out_);
    const launch::StagedNode& first = nodes.front();
    if (first.files == 0) return;  // only stage-out is configured
    out_.note("staged {} {}in {}: {} (STOKER_STAGE_DIR)", amount_text(first.files, first.bytes),
              nodes.size() == 1 ? "" : format("to each of {} nodes ", nodes.size()), time_text(nodes),
              first.folder);
  }

 private:
  Output& out_;
};

// As shown by `stoker status`.
launch::RunLife life_of(const launch::RunResult& result) {
  const double now = unix_seconds(RealClock().wall());
  return launch::judge_life(launch::read_recorded_status(result.folder, now), {}, now);
}

double seconds_of(const record::RunState& records) {
  return records.last_started > 0 ? std::max(0.0, records.ended - records.last_started) : 0;
}

// "done, 6.0 s, loss 2.77", and what to do next.
void print_success(const launch::RunResult& result, Output& out) {
  const double seconds = seconds_of(life_of(result).records);
  const auto progress = observe::read_progress(result.attempt, 1);
  std::string text = "done";
  if (seconds > 0)  // unknown if the run folder is lost
    text += format(", {}", rounded_duration(std::chrono::duration_cast<Duration>(Seconds(seconds))));
  if (progress.loss) text += ", loss " + report::significant(*progress.loss);
  if (progress.validation_top1) text += format(", top-1 {:.1f} %", 100 * *progress.validation_top1);
  if (!result.ending.lost_output.empty()) text += ", but output was lost";
  out.note("{}", text);
  if (!result.ending.is_folder_lost) out.note("  next: stoker report {}", run_reference(result.folder));
}

void print_staged_out(const launch::RunResult& result, Output& out) {
  note_traffic(result.rest, out);
  std::uint64_t files = 0, bytes = 0;
  for (const launch::StagedNode& node : result.back) {
    files += node.files;
    bytes += node.bytes;
  }
  if (files > 0) {
    out.note("staged out {} in {}: {}", amount_text(files, bytes), time_text(result.back),
             display_path(result.attempt.folder() / "back"));
  }
  if (!result.stage_out_status.ok() && result.ending.cause != result.stage_out_status.message())
    out.note("{}", result.stage_out_status.message());
}

void print_ending(const launch::RunResult& result, const launch::NextAction& next, Output& out) {
  const rank::Ending& ending = result.ending;
  print_staged_out(result, out);
  for (const std::string& note : result.tracker_notes) out.note("{}", note);
  if (ending.outcome == record::Outcome::done) print_success(result, out);
  if (ending.cause.empty()) return;
  out.note("{}", ending.cause);
  if (!result.cure.empty()) out.note("  try: {}", result.cure);
  if (!ending.last_line.empty()) {
    const std::string log = display_path(result.attempt.log(ending.first_rank.value_or(0)));
    out.note("  last output: {}{}", ending.last_line, ending.is_folder_lost ? "" : format("   ({})", log));
  }
  out.note("  {}{}{}", ending.other_ranks, ending.other_ranks.empty() ? "" : "; ", result.checkpoint);
  if (!next.text.empty()) out.note("  {}", next.text);
  if (next.will_continue || ending.is_folder_lost) return;
  // Resume is suggested only for a run with a checkpoint.
  if (result.can_resume || ending.outcome == record::Outcome::stopped) {
    out.note("  try: stoker resume {}{}", run_reference(result.folder),
             result.can_resume || !result.has_command ? "" : " --from-start");
  }
}

// A lost run folder leaves no record of the loss for `stoker wait --strict` or Slurm: only this code remains.
int exit_code_of(const rank::Ending& ending) {
  const bool is_done = ending.exit_code == exit_code::kOk;
  return is_done && ending.is_folder_lost ? exit_code::kFailed : ending.exit_code;
}

Json to_json(const launch::RunResult& result) {
  const rank::Ending& ending = result.ending;
  const launch::RunLife life = life_of(result);
  const auto progress = observe::read_progress(result.attempt, 1);
  return {{"run", result.folder.id()},
          {"folder", result.folder.folder().string()},
          {"attempt", result.attempt.number()},
          {"state", std::string(ending.is_folder_lost ? to_text(ending.outcome) : to_text(life.life))},
          {"seconds", seconds_of(life.records)},
          {"loss", progress.loss ? Json(*progress.loss) : Json(nullptr)},
          {"exit_code", exit_code_of(ending)},
          {"first_rank", ending.first_rank ? Json(*ending.first_rank) : Json(nullptr)},
          {"reason", ending.cause},
          {"others", ending.other_ranks},
          {"last_line", ending.last_line},
          {"lost_output", ending.lost_output},
          {"checkpoint", result.checkpoint}};
}

}  // namespace

Result<Path> own_program() {
  std::error_code error;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return unavailable("stoker: cannot find its own path: {}", error.message());
  return program;
}

Result<launch::Request> request_of(const JobChoice& choice, std::string_view command,
                                   std::span<const std::string> words) {
  job::LoadOptions load{.set = choice.set};
  for (const auto& [name, value] : current_environment()) load.environment.push_back(name + "=" + value);
  STOKER_ASSIGN_OR_RETURN(job, job::load(choice.job, load));
  launch::Request request{.job = std::move(job)};
  request.job_file = choice.job;
  request.load = std::move(load);
  request.typed = typed_command(command, words);
  return request;
}

std::vector<std::string> typed_command(std::string_view command, std::span<const std::string> words) {
  std::vector<std::string> typed = {"stoker", std::string(command)};
  typed.insert(typed.end(), words.begin(), words.end());
  return typed;
}

void ignore_sigpipe() { std::signal(SIGPIPE, SIG_IGN); }

int run_request(launch::Request request, bool dry_run, Output& out,
                const std::function<launch::NextAction(const launch::RunResult&)>& on_attempt_end) {
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request.stoker = *program;
  if (!dry_run) ignore_sigpipe();
  // With --json standard output contains only the JSON value.
  request.out_fd = out.is_json() ? 2 : 1;
  // A submitted attempt exists already, and its end must be recorded.
  const Status port = request.prepared ? Status() : check_inherited_port(request.job);
  if (!port.ok()) return out.fail(port);
  const auto prepared = launch::prepare(request);
  if (!prepared.ok()) return out.fail(prepared.error());
  for (const std::string& note : prepared->notes) out.note("{}", note);
  if (dry_run) return show_plan(request, *prepared, out);
  RunReporter reporter(out);
  const auto result = launch::run(request, *prepared, reporter);
  if (!result.ok()) return out.fail(result.error());
  const launch::NextAction next = on_attempt_end ? on_attempt_end(*result) : launch::NextAction{};
  print_ending(*result, next, out);
  if (out.is_json()) out.json(json_text(to_json(*result)));
  return next.exit_code.value_or(exit_code_of(result->ending));
}

}  // namespace stoker::cli
