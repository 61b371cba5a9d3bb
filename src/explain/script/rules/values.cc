// Rules over the values in #SBATCH lines: what sbatch cannot read, or reads as something else.
#include <cctype>
#include <set>

#include "base/text.h"
#include "explain/script/rule.h"
#include "explain/script/rules/blanks.h"
#include "explain/script/rules/grammar.h"
#include "slurm/script/own_script.h"

namespace stoker::explain {
namespace {

bool is_count_option(std::string_view name) {
  return is_one_of(name, {"--ntasks", "--ntasks-per-node", "--tasks-per-node", "--cpus-per-task",
                          "--gpus-per-node", "--gpus-per-task", "--ntasks-per-core"});
}

bool is_memory_option(std::string_view name) {
  return is_one_of(name, {"--mem", "--mem-per-cpu", "--mem-per-gpu"});
}

// Options that are worth nothing without a value that can be read.
bool needs_value(std::string_view name) {
  return is_count_option(name) || is_memory_option(name) ||
         is_one_of(name, {"--time", "--nodes", "--gpus", "--gres", "--array", "--partition"});
}

void find_blank_at_equals(const Script& script, Report& report) {
  for (const Directive& directive : script.request.directives) {
    const slurm::OwnOption& option = directive.option;
    const bool is_before = !option.has_equals && option.value.starts_with('=');
    const bool is_behind = option.has_equals && option.value.empty() && !option.stray.empty();
    if (!is_before && !is_behind) continue;
    const std::string value = is_before && option.value.size() > 1 ? option.value.substr(1) : option.stray;
    const std::size_t line_end = script.line_of(directive.span.begin).end;
    const std::size_t at = value.empty()
                               ? std::string::npos
                               : script.text.find(value, directive.span.begin + option.typed.size());
    if (at == std::string::npos || at >= line_end) continue;
    report
        .replace({directive.span.begin, at + value.size()},
                 is_before ? report.say("{}: a blank beside =, so that sbatch reads '=' for its value",
                                        option.typed)
                           : report.say("{}: a blank beside =, so that sbatch reads nothing for its value",
                                        option.typed),
                 option.typed + "=" + value)
        .level = needs_value(option.name) || !option.stray.empty() ? Level::job : Level::time;
  }
}

void find_memory_unit(const Script& script, Report& report) {
  for (const Directive& directive : script.request.directives) {
    const slurm::OwnOption& option = directive.option;
    if (!is_memory_option(option.name)) continue;
    const std::string unit = to_lower(option.stray);
    std::uint64_t number = 0;
    const bool is_bare = parse_number(option.value, &number);
    if (is_bare && is_one_of(unit, {"g", "gb", "t", "tb"})) {
      const std::size_t at = script.text.find(option.stray, directive.value.end);
      report.replace(
          {directive.value.end, at + option.stray.size()},
          report.say("{}={} {}: a blank before the unit, so that sbatch reads {} MB, and from 19.05 on "
                     "refuses the script",
                     option.typed, option.value, option.stray, option.value),
          option.stray);
    } else if (is_bare && number > 0 && number <= 512 && unit.empty() && option.name == "--mem" &&
               !script.request.gpus().empty()) {
      ScriptFinding& finding =
          report.replace({directive.value.end, directive.value.end},
                         report.say("{}={} is {} MB: a number without a unit counts megabytes", option.typed,
                                    number, number),
                         "G");
      if (number == 1) finding.level = Level::time;  // as little as can be, where nobody counts
    } else if (!is_bare && !slurm::parse_slurm_memory(option.value) && !option.value.empty() &&
               !is_memory_form(option.value) && option.value.size() > 1) {
      ScriptFinding& finding = report.add(
          directive.value, report.say("{}={}: no amount of memory that sbatch reads (as in 64G or 32000M)",
                                      option.typed, printable(option.value)));
      double fraction = 0;  // 22.05 to 26.05 refuse it, and a site's guide has it all the same
      if (parse_number(std::string_view(option.value).substr(0, option.value.size() - 1), &fraction))
        finding.level = Level::time;
    }
  }
}

void find_time_format(const Script& script, Report& report) {
  const Directive* time = script.request.find("--time");
  if (time == nullptr || time->option.value.empty()) return;
  const std::string lower = to_lower(time->option.value);
  // "2-" is two days.
  if (lower.size() > 1 && lower.find_first_not_of("0123456789") == lower.size() - 1 && lower.back() == '-')
    return;
  if (lower == "unlimited" || lower == "infinite" || slurm::parse_slurm_limit(lower) || is_time_form(lower))
    return;
  std::string cure;
  std::uint64_t number = 0;
  const char unit = lower.back();
  if (parse_number(std::string_view(lower).substr(0, lower.size() - 1), &number) &&
      (unit == 'h' || unit == 'd' || unit == 'm'))
    cure = unit == 'h'   ? format("{}:00:00", number)
           : unit == 'd' ? format("{}-00:00:00", number)
                         : format("{}", number);
  const Said text = report.say("{}={}: no time that sbatch reads (as in 90, 1:30:00 or 2-12:00:00)",
                               time->option.typed, printable(time->option.value));
  if (cure.empty()) {
    report.add(time->value, text);
  } else {
    report.replace(time->value, text, cure);
  }
}

void find_bad_count(const Script& script, Report& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& value = directive.option.value;
    const bool is_count = is_count_option(directive.option.name) ||
                          (directive.option.name == "--gpus" && value.starts_with("gpu:"));
    if (!is_count || is_template(value)) continue;
    const std::string_view count = std::string_view(value).substr(value.rfind(':') + 1);
    std::uint64_t number = 0;
    const bool is_gpus = directive.option.name.starts_with("--gpus");
    // A kind that no GPU is of: "gpu:2" is how --gres has it.
    const bool is_kind_gpu = is_gpus && value.starts_with("gpu:");
    if (!is_kind_gpu && parse_number(count, &number) && (number > 0 || is_gpus)) continue;
    // Of a kind alone it takes one.
    if (is_gpus && value.find(':') == std::string::npos && std::isalpha(static_cast<unsigned char>(value[0])))
      continue;
    report.add(directive.value,
               report.say("{}={}: no count that sbatch reads", directive.option.typed, printable(value)));
  }
}

void find_bad_mail(const Script& script, Report& report) {
  const Directive* mail = script.request.find("--mail-type");
  if (mail == nullptr || is_template(mail->option.value)) return;
  // Beside one that it knows sbatch passes over all others (parse_mail_type of Slurm's proc_args.c).
  for (std::string_view each : split(mail->option.value, ',')) {
    const bool is_known = is_one_of(
        to_lower(each), {"none", "begin", "end", "fail", "requeue", "all", "invalid_depend", "stage_out",
                         "time_limit", "time_limit_50", "time_limit_80", "time_limit_90", "array_tasks"});
    if (is_known) return;
  }
  report.add(
      mail->value,
      report.say("{}={}: no event that sbatch knows (BEGIN, END, FAIL, ALL, ...), and it refuses the script",
                 mail->option.typed, printable(mail->option.value)));
}

// "0-9", "1,5,7-20:2%4", as slurm_parse_array_tok has it.
bool is_array(std::string_view value) {
  const std::size_t percent = value.find('%');
  std::uint64_t number = 0;
  if (percent != std::string_view::npos && !parse_number(value.substr(percent + 1), &number)) return false;
  for (std::string_view piece : split(value.substr(0, percent), ',')) {
    const std::size_t colon = piece.find(':');
    const std::size_t dash = piece.find('-');
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t step = 1;
    if (piece.empty()) continue;
    if (!parse_number(piece.substr(0, std::min(dash, colon)), &first)) return false;
    if (dash == std::string_view::npos && colon != std::string_view::npos) return false;
    if (dash == std::string_view::npos) continue;
    if (colon != std::string_view::npos && (!parse_number(piece.substr(colon + 1), &step) || step == 0))
      return false;
    const std::size_t size = colon == std::string_view::npos ? std::string_view::npos : colon - dash - 1;
    if (!parse_number(piece.substr(dash + 1, size), &last) || last < first) return false;
  }
  return true;
}

void find_bad_array(const Script& script, Report& report) {
  const Directive* array = script.request.find("--array");
  if (array == nullptr || is_template(array->option.value.substr(0, array->option.value.find('%')))) return;
  if (is_array(array->option.value)) return;
  report.add(array->value, report.say("{}={}: no list of tasks that sbatch reads (as in 0-9 or 1,5,7-20:2%4)",
                                      array->option.typed, printable(array->option.value)));
}

void find_bad_value(const Script& script, Report& report) {
  find_no_value(script, report);
  find_bad_word(script, report);
  find_bad_gres(script, report);
  find_bad_array(script, report);
  find_bad_count(script, report);
  find_bad_mail(script, report);
}

void find_variable(const Script& script, Report& report) {
  std::set<std::string> told;  // folders of logs, each told once
  for (const Directive& directive : script.request.directives) {
    const std::string& value = directive.option.value;
    const std::size_t dollar = value.find('$');
    const bool has_variable =
        dollar != std::string::npos && dollar + 1 < value.size() &&
        (value[dollar + 1] == '{' || value[dollar + 1] == '_' || value[dollar + 1] == '(' ||
         std::isalpha(static_cast<unsigned char>(value[dollar + 1])) != 0);
    const bool is_path = is_one_of(directive.option.name, {"--output", "--error", "--chdir"});
    const bool has_tilde = is_path && value.starts_with("~/");
    if (directive.option.name == "--export" || directive.option.name == "--wrap" ||
        (!has_variable && !has_tilde) || form_mark(value))
      continue;
    const bool is_log = directive.option.name == "--output" || directive.option.name == "--error";
    const std::size_t slash = value.rfind('/');
    if (is_log && slash != std::string::npos && !told.insert(value.substr(0, slash)).second) continue;
    ScriptFinding& finding = report.add(
        directive.value,
        has_tilde
            ? report.say("{}={}: sbatch replaces no ~ in these lines, so that it stands for itself",
                         directive.option.typed, printable(value))
            : report.say("{}={}: sbatch replaces no variables in these lines, so that it stands for itself",
                         directive.option.typed, printable(value)));
    if (is_for_people(directive.option.name)) finding.level = Level::advice;
    if (is_path) finding.fix = format("sbatch {}={} {}", directive.option.name, value, script.source->name());
  }
}

// Wants none, and says so.
bool is_cpu_script(const Script& script) {
  const bool says_so = std::any_of(script.calls.begin(), script.calls.end(), [](const Call& call) {
    return std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word.ends_with("=cpu") || is_one_of(word, {"cpu", "--cpu", "--use_cpu", "--use-cpu", "--no-cuda",
                                                        "--no_cuda", "--cpu-only", "--cpu_only"});
    });
  });
  return says_so || script.mentions("CUDA_VISIBLE_DEVICES=\"\"") ||
         script.mentions("CUDA_VISIBLE_DEVICES=''") || script.mentions("CUDA_VISIBLE_DEVICES=-1") ||
         script.mentions("JAX_PLATFORMS=cpu");
}

bool is_gpu_script(const Script& script) {
  const Directive* partition = script.request.find("--partition");
  return (partition != nullptr && to_lower(partition->option.value).find("gpu") != std::string::npos) ||
         script.mentions("cuda") || script.mentions("nvidia-smi") || script.mentions("nccl") ||
         script.mentions("torchrun");
}

void find_zero_gpus(const Script& script, Report& report) {
  if (is_cpu_script(script)) return;
  for (const GpuRequest& request : script.request.gpus()) {
    if (request.count != "0" || (request.type.empty() && !is_gpu_script(script))) continue;
    ScriptFinding& finding = report.add(request.directive->value,
                                        report.say("{}={} asks for no GPU", request.directive->option.typed,
                                                   printable(request.directive->option.value)));
    const bool wants_gpus = is_gpu_script(script) || script.mentions("train");
    if (request.type.empty() || !wants_gpus) finding.level = Level::time;  // it may be what was meant
  }
}

constexpr Rule kValueRules[] = {
    {"blank-at-equals", Level::job, "with a blank beside = sbatch reads no value, or '=' for one",
     "#!/bin/bash\n#SBATCH --time = 1:00:00\n", "#!/bin/bash\n#SBATCH --time=1:00:00\n",
     "sbatch: \"Invalid --time specification\"", find_blank_at_equals},
    {"memory-unit", Level::job, "memory without a unit is megabytes, and a unit behind a blank is not read",
     "#!/bin/bash\n#SBATCH --mem=16 GB\n", "#!/bin/bash\n#SBATCH --mem=16GB\n", "sbatch(1), --mem",
     find_memory_unit},
    {"time-format", Level::job, "sbatch refuses a time that it cannot read",
     "#!/bin/bash\n#SBATCH --time=24h\n", "#!/bin/bash\n#SBATCH --time=24:00:00\n",
     "sbatch: \"Invalid --time specification\"", find_time_format},
    {"option-value", Level::job, "sbatch refuses a count or an event that it cannot read",
     "#!/bin/bash\n#SBATCH --mail-type=START\n", "#!/bin/bash\n#SBATCH --mail-type=BEGIN\n",
     "students' scripts; sbatch: \"Invalid --mail-type specification\"", find_bad_value},
    {"variable-in-directive", Level::job,
     "sbatch is no shell: $NAME and ~ in an #SBATCH line stand for themselves",
     "#!/bin/bash\n#SBATCH --output=$HOME/%j.out\n", "#!/bin/bash\n#SBATCH --output=%j.out\n",
     "sbatch(1), filename pattern", find_variable},
    {"zero-gpus", Level::job, "a count of 0 asks for none, and the program finds no device",
     "#!/bin/bash\n#SBATCH --gres=gpu:v100:0\n", "#!/bin/bash\n#SBATCH --gres=gpu:v100:1\n",
     "sbatch(1), --gres", find_zero_gpus},
};

}  // namespace

std::span<const Rule> value_rules() { return kValueRules; }

}  // namespace stoker::explain
