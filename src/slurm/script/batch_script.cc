#include "slurm/script/batch_script.h"

#include <algorithm>
#include <array>

#include "slurm/script/script_writer.h"

namespace stoker::slurm {
namespace {

struct ReservedOption {
  std::string_view name;
  std::string_view letter;
  std::string_view instead;  // key of the job file; "" without one
};

constexpr ReservedOption kReservedOptions[] = {
    {"--account", "-A", "slurm.account"},
    {"--partition", "-p", "slurm.partition"},
    {"--qos", "-q", "slurm.qos"},
    {"--reservation", "", "slurm.reservation"},
    {"--nodes", "-N", "resources.nodes"},
    {"--ntasks", "-n", "resources.ranks_per_node"},
    {"--ntasks-per-node", "", "resources.ranks_per_node"},
    {"--cpus-per-task", "-c", "resources.cpus_per_rank"},
    {"--gpus-per-node", "", "resources.gpus_per_rank"},
    {"--gpus-per-task", "", "resources.gpus_per_rank"},
    {"--gpus", "-G", "resources.gpus_per_rank"},
    {"--mem", "", "resources.memory_per_node"},
    {"--time", "-t", "resources.time"},
    {"--job-name", "-J", "name"},
    {"--chdir", "-D", "working_directory"},
    {"--signal", "", "checkpoint.before_end"},
    {"--export", "", "environment.variables"},
    {"--comment", "", ""},
    {"--output", "-o", ""},
    {"--error", "-e", ""},
    {"--open-mode", "", ""},
    {"--array", "-a", "array.over or chain"},
    {"--wrap", "", ""},
    {"--parsable", "", ""},
    {"--test-only", "", ""},
    {"--wait", "-W", ""},
    {"--help", "-h", ""},
    {"--usage", "", ""},
    {"--version", "-V", ""},
};

void add_resources(const BatchScript& script, ScriptWriter& lines) {
  lines.option_if("--account", script.account);
  lines.option_if("--partition", script.partition);
  lines.option_if("--qos", script.qos);
  lines.option_if("--reservation", script.reservation);
  lines.option_if("--nodes", script.nodes);
  // Both counts, because the effect of --ntasks-per-node on SLURM_NTASKS differs between releases.
  lines.option_if("--ntasks",
                  script.tasks_per_node > 0 ? script.nodes * script.tasks_per_node : script.tasks);
  lines.option_if("--ntasks-per-node", script.tasks_per_node);
  lines.option_if("--cpus-per-task", script.cpus_per_task);
  if (script.gpus_per_node > 0) {
    lines.add_comment(
        script.ranks_per_gpu > 1
            ? format("Per node, not per task: {} ranks share a GPU, and stoker makes only that GPU visible "
                     "to each rank.",
                     script.ranks_per_gpu)
            : "Per node, not per task: every rank sees all GPUs of its node and uses number LOCAL_RANK.");
    lines.option_if("--gpus-per-node", script.gpus_per_node);
  }
  if (script.memory_per_node) lines.option("--mem", slurm_memory(*script.memory_per_node));
  if (script.time) lines.option("--time", slurm_duration(*script.time));
}

void add_array_and_dependency(const BatchScript& script, ScriptWriter& lines) {
  if (!script.array.empty()) {
    lines.add_comment(
        script.array.ends_with("%1")
            ? "Jobs that run one after another: each continues where the previous one ended."
            : "One job per task or bundle of tasks; the number after % limits how many run at once.");
    lines.option("--array", script.array);
  }
  if (!script.dependency.empty()) {
    lines.option("--dependency", script.dependency);
    lines.add_comment("If one of these jobs fails, cancel this job instead of leaving it pending forever.");
    lines.option("--kill-on-invalid-dep", "yes");
  }
}

void add_output_and_signals(const BatchScript& script, const std::string& log, ScriptWriter& lines) {
  if (!script.directory.empty()) lines.option("--chdir", script.directory.string());
  if (!log.empty()) {
    lines.add_comment("The folder exists: a job whose log cannot be opened ends at once without a message.");
    lines.option("--output", log);
  }
  lines.add_comment("After a preemption or a node failure, Slurm restarts this script with the same log;");
  lines.add_comment("stoker then resumes from the last valid checkpoint.");
  lines.text("#SBATCH --requeue");
  lines.option("--open-mode", "append");
  if (script.signal_before > Duration::zero()) {
    lines.add_comment(
        format("{} before the time limit, SIGUSR1 asks every rank that handles it to save and stop (exit "
               "code 75).",
               duration_text(script.signal_before)));
    lines.option("--signal",
                 format("B:USR1@{}", std::chrono::ceil<std::chrono::seconds>(script.signal_before).count()));
  }
}

}  // namespace

std::string sbatch_quote(std::string_view value) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:,=@+%";
  if (!value.empty() && value.find_first_not_of(kPlain) == std::string_view::npos) return std::string(value);
  std::string quoted = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string slurm_duration(Duration time) {
  const std::int64_t total = std::chrono::ceil<std::chrono::seconds>(time).count();
  const std::int64_t days = total / 86400;
  const std::string clock = format("{:02}:{:02}:{:02}", total / 3600 % 24, total / 60 % 60, total % 60);
  return days > 0 ? format("{}-{}", days, clock) : clock;
}

std::string slurm_memory(ByteCount memory) {
  const std::uint64_t mebibytes = (memory.value >> 20) + ((memory.value & ((1u << 20) - 1)) != 0 ? 1 : 0);
  return mebibytes % 1024 == 0 ? format("{}G", mebibytes / 1024) : format("{}M", mebibytes);
}

Duration signal_before(Duration wanted, std::optional<Duration> time) {
  return time ? std::min(wanted, *time / 4) : wanted;
}

Status check_extra(std::string_view option) {
  const std::string shown = printable(option);
  if (has_control_character(option)) return invalid("'{}' contains a control character", shown);
  const auto [name, value] = split_option(option);
  const bool is_long = name.size() > 2 && name.starts_with("--") && name[2] != '-';
  const bool is_short = name.size() >= 2 && name[0] == '-' && name[1] != '-';
  if (!is_long && !is_short)
    return invalid("'{}' is not an sbatch option (such as --constraint=v100)", shown);
  if (option.size() > kLongestValue) return invalid("an option of {} bytes is too long", option.size());
  for (const ReservedOption& reserved : kReservedOptions) {
    // sbatch accepts prefixes of long options ("--acc"), and short options with an attached value ("-N2").
    const bool is_reserved =
        is_long ? reserved.name.starts_with(name) && (name == reserved.name || name.size() > 4)
                : !reserved.letter.empty() && name.starts_with(reserved.letter);
    if (!is_reserved) continue;
    if (reserved.instead.empty()) return invalid("'{}': {} is set by Stoker", shown, reserved.name);
    return invalid("'{}': use {} instead of {}", shown, reserved.instead, reserved.name);
  }
  return {};
}

Result<std::string> write_batch_script(const BatchScript& script) {
  STOKER_CHECK(!script.command.empty());
  STOKER_ASSIGN_OR_RETURN(log, log_pattern(script.log));
  ScriptWriter lines;
  lines.text("#!/bin/bash");
  lines.add_comment(printable(script.title));
  lines.option_if("--job-name", script.job_name);
  if (!script.comment.empty()) {
    lines.add_comment("Identifies the job if its id could not be recorded.");
    lines.option("--comment", script.comment);
  }
  add_resources(script, lines);
  add_array_and_dependency(script, lines);
  add_output_and_signals(script, log, lines);
  for (const std::string& entry : script.extra) {
    STOKER_RETURN_IF_ERROR(check_extra(entry).with_context("slurm.extra"));
    lines.raw_option(entry);
  }
  lines.text("");
  lines.add_comment(
      "exec: signals to the script reach stoker directly; bash would delay them until its child has");
  lines.add_comment("ended. stoker starts the ranks on all nodes with a single srun.");
  STOKER_RETURN_IF_ERROR(add_exec(lines, script.command));
  return std::move(lines).finish();
}

}  // namespace stoker::slurm
