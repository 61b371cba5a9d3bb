#include "slurm/script/batch_script.h"

#include <algorithm>
#include <array>

#include "slurm/script/lines.h"

namespace stoker::slurm {
namespace {

struct Taken {
  std::string_view name;
  std::string_view letter;
  std::string_view instead;  // the key of the job file; "" when there is none
};

constexpr Taken kTaken[] = {
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

void add_resources(const BatchScript& script, Lines& lines) {
  lines.option_if("--account", script.account);
  lines.option_if("--partition", script.partition);
  lines.option_if("--qos", script.qos);
  lines.option_if("--reservation", script.reservation);
  lines.option_if("--nodes", script.nodes);
  // Both counts: what --ntasks-per-node alone means for SLURM_NTASKS differs between releases.
  lines.option_if("--ntasks",
                  script.tasks_per_node > 0 ? script.nodes * script.tasks_per_node : script.tasks);
  lines.option_if("--ntasks-per-node", script.tasks_per_node);
  lines.option_if("--cpus-per-task", script.cpus_per_task);
  if (script.gpus_per_node > 0) {
    lines.because(
        script.ranks_per_gpu > 1
            ? format("Per node and not per task: {} ranks share a GPU, and stoker shows each rank that one.",
                     script.ranks_per_gpu)
            : "Per node and not per task: every rank sees all GPUs of its node and takes number LOCAL_RANK.");
    lines.option_if("--gpus-per-node", script.gpus_per_node);
  }
  if (script.memory_per_node) lines.option("--mem", slurm_memory(*script.memory_per_node));
  if (script.time) lines.option("--time", slurm_duration(*script.time));
}

void add_order(const BatchScript& script, Lines& lines) {
  if (!script.array.empty()) {
    lines.because(script.array.ends_with("%1")
                      ? "One job after the other: each goes on where the one before it ended."
                      : "One job for each task, or bundle of them; behind the % how many may run at once.");
    lines.option("--array", script.array);
  }
  if (!script.dependency.empty()) {
    lines.option("--dependency", script.dependency);
    lines.because("When one of these fails this job ends, too, in place of waiting for ever.");
    lines.option("--kill-on-invalid-dep", "yes");
  }
}

void add_life(const BatchScript& script, const std::string& log, Lines& lines) {
  if (!script.directory.empty()) lines.option("--chdir", script.directory.string());
  if (!log.empty()) {
    lines.because("Its folder exists: a job whose log cannot be opened ends at once and leaves no word.");
    lines.option("--output", log);
  }
  lines.because("After a preemption or the loss of a node Slurm starts this script again, in the same log;");
  lines.because("stoker then goes on from the last valid checkpoint.");
  lines.text("#SBATCH --requeue");
  lines.option("--open-mode", "append");
  if (script.signal_before > Duration::zero()) {
    lines.because(
        format("{} before the end every rank that handles SIGUSR1 is asked to save and stop (exit "
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
  if (has_control_character(option)) return invalid("'{}' has a control character", shown);
  const auto [name, value] = split_option(option);
  const bool is_long = name.size() > 2 && name.starts_with("--") && name[2] != '-';
  const bool is_short = name.size() >= 2 && name[0] == '-' && name[1] != '-';
  if (!is_long && !is_short) return invalid("'{}' is no option for sbatch (as in --constraint=v100)", shown);
  if (option.size() > kLongestValue) return invalid("an option of {} bytes is too long", option.size());
  for (const Taken& taken : kTaken) {
    // sbatch takes beginnings of long options ("--acc"), and short ones with their value ("-N2").
    const bool is_taken = is_long ? taken.name.starts_with(name) && (name == taken.name || name.size() > 4)
                                  : !taken.letter.empty() && name.starts_with(taken.letter);
    if (!is_taken) continue;
    if (taken.instead.empty()) return invalid("'{}': {} is set by Stoker", shown, taken.name);
    return invalid("'{}': use {} in place of {}", shown, taken.instead, taken.name);
  }
  return {};
}

Result<std::string> write_batch_script(const BatchScript& script) {
  CHECK(!script.command.empty());
  OK_OR_RETURN(log, log_pattern(script.log));
  Lines lines;
  lines.text("#!/bin/bash");
  lines.because(printable(script.title));
  lines.option_if("--job-name", script.job_name);
  if (!script.comment.empty()) {
    lines.because("By this comment the job is found again, should its id not have been recorded.");
    lines.option("--comment", script.comment);
  }
  add_resources(script, lines);
  add_order(script, lines);
  add_life(script, log, lines);
  for (const std::string& entry : script.extra) {
    RETURN_IF_ERROR(check_extra(entry).with_context("slurm.extra"));
    lines.typed_option(entry);
  }
  lines.text("");
  lines.because(
      "exec: a signal for the script reaches stoker itself, where bash would hold it back until its");
  lines.because("child has ended. stoker starts the ranks on all nodes with one srun.");
  RETURN_IF_ERROR(add_exec(lines, script.command));
  return std::move(lines).finish();
}

}  // namespace stoker::slurm
