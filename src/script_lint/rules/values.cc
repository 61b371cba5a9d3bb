// Rules for values in #SBATCH lines: invalid ones, and ones that sbatch interprets differently.
#include <cctype>
#include <set>

#include "script_lint/rule.h"
#include "script_lint/rules/option_values.h"
#include "script_lint/rules/placeholder_text.h"
#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

bool is_count_option(std::string_view name) {
  return is_one_of(name, {"--ntasks", "--ntasks-per-node", "--tasks-per-node", "--cpus-per-task",
                          "--gpus-per-node", "--gpus-per-task", "--ntasks-per-core"});
}

bool is_memory_option(std::string_view name) {
  return is_one_of(name, {"--mem", "--mem-per-cpu", "--mem-per-gpu"});
}

// Options that need a valid value.
bool needs_value(std::string_view name) {
  return is_count_option(name) || is_memory_option(name) ||
         is_one_of(name, {"--time", "--nodes", "--gpus", "--gres", "--array", "--partition"});
}

void find_blank_at_equals(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const slurm::SbatchOption& option = directive.option;
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
                 is_before ? message("{}: a blank around =, so sbatch reads '=' as its value", option.typed)
                           : message("{}: a blank around =, so sbatch reads no value", option.typed),
                 option.typed + "=" + value)
        .level = needs_value(option.name) || !option.stray.empty() ? Level::job : Level::time;
  }
}

void find_memory_unit(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const slurm::SbatchOption& option = directive.option;
    if (!is_memory_option(option.name)) continue;
    const std::string unit = to_lower(option.stray);
    std::uint64_t number = 0;
    const bool is_bare = parse_number(option.value, &number);
    if (is_bare && is_one_of(unit, {"g", "gb", "t", "tb"})) {
      const std::size_t at = script.text.find(option.stray, directive.value.end);
      report.replace({directive.value.end, at + option.stray.size()},
                     message("{}={} {}: a blank before the unit, so sbatch reads {} MB, and 19.05 and "
                             "later reject the script",
                             option.typed, option.value, option.stray, option.value),
                     option.stray);
    } else if (is_bare && number > 0 && number <= 512 && unit.empty() && option.name == "--mem" &&
               !script.request.gpus().empty()) {
      ScriptFinding& finding = report.replace(
          {directive.value.end, directive.value.end},
          message("{}={} is {} MB: a number without a unit means megabytes", option.typed, number, number),
          "G");
      if (number == 1) finding.level = Level::time;  // a deliberate minimum
    } else if (!is_bare && !slurm::parse_slurm_memory(option.value) && !option.value.empty() &&
               !is_memory_form(option.value) && option.value.size() > 1) {
      ScriptFinding& finding =
          report.add(directive.value, message("{}={}: not a valid amount of memory (as in 64G or 32000M)",
                                              option.typed, printable(option.value)));
      double fraction = 0;  // 22.05 to 26.05 reject it, although a site's guide uses it
      if (parse_number(std::string_view(option.value).substr(0, option.value.size() - 1), &fraction))
        finding.level = Level::time;
    }
  }
}

void find_time_format(const Script& script, FindingReport& report) {
  const Directive* time = script.request.find("--time");
  if (time == nullptr || time->option.value.empty()) return;
  const std::string lower = to_lower(time->option.value);
  // "2-" means two days.
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
  const Message text = message("{}={}: not a valid time (as in 90, 1:30:00 or 2-12:00:00)",
                               time->option.typed, printable(time->option.value));
  if (cure.empty()) {
    report.add(time->value, text);
  } else {
    report.replace(time->value, text, cure);
  }
}

void find_bad_count(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& value = directive.option.value;
    const bool is_count = is_count_option(directive.option.name) ||
                          (directive.option.name == "--gpus" && value.starts_with("gpu:"));
    if (!is_count || is_template(value)) continue;
    const std::string_view count = std::string_view(value).substr(value.rfind(':') + 1);
    std::uint64_t number = 0;
    const bool is_gpus = directive.option.name.starts_with("--gpus");
    // "gpu" is no GPU type: "gpu:2" is the syntax of --gres.
    const bool is_kind_gpu = is_gpus && value.starts_with("gpu:");
    if (!is_kind_gpu && parse_number(count, &number) && (number > 0 || is_gpus)) continue;
    // A type without a count means one GPU.
    if (is_gpus && value.find(':') == std::string::npos && std::isalpha(static_cast<unsigned char>(value[0])))
      continue;
    report.add(directive.value,
               message("{}={}: not a valid count", directive.option.typed, printable(value)));
  }
}

void find_bad_mail(const Script& script, FindingReport& report) {
  const Directive* mail = script.request.find("--mail-type");
  if (mail == nullptr || is_template(mail->option.value)) return;
  // With at least one known event sbatch ignores unknown ones (parse_mail_type in Slurm's proc_args.c).
  for (std::string_view each : split(mail->option.value, ',')) {
    const bool is_known = is_one_of(
        to_lower(each), {"none", "begin", "end", "fail", "requeue", "all", "invalid_depend", "stage_out",
                         "time_limit", "time_limit_50", "time_limit_80", "time_limit_90", "array_tasks"});
    if (is_known) return;
  }
  report.add(mail->value,
             message("{}={}: not a valid event (BEGIN, END, FAIL, ALL, ...), sbatch rejects the script",
                     mail->option.typed, printable(mail->option.value)));
}

// "0-9", "1,5,7-20:2%4", see slurm_parse_array_tok.
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

void find_bad_array(const Script& script, FindingReport& report) {
  const Directive* array = script.request.find("--array");
  if (array == nullptr || is_template(array->option.value.substr(0, array->option.value.find('%')))) return;
  if (is_array(array->option.value)) return;
  report.add(array->value, message("{}={}: not a valid list of tasks (as in 0-9 or 1,5,7-20:2%4)",
                                   array->option.typed, printable(array->option.value)));
}

void find_bad_value(const Script& script, FindingReport& report) {
  find_no_value(script, report);
  find_bad_word(script, report);
  find_bad_gres(script, report);
  find_bad_array(script, report);
  find_bad_count(script, report);
  find_bad_mail(script, report);
}

void find_variable(const Script& script, FindingReport& report) {
  std::set<std::string> reported;  // log folders, each reported once
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
        (!has_variable && !has_tilde) || template_marker(value))
      continue;
    const bool is_log = directive.option.name == "--output" || directive.option.name == "--error";
    const std::size_t slash = value.rfind('/');
    if (is_log && slash != std::string::npos && !reported.insert(value.substr(0, slash)).second) continue;
    ScriptFinding& finding = report.add(
        directive.value, has_tilde ? message("{}={}: sbatch does not expand ~ in these lines",
                                             directive.option.typed, printable(value))
                                   : message("{}={}: sbatch does not expand variables in these lines",
                                             directive.option.typed, printable(value)));
    if (is_free_text(directive.option.name)) finding.level = Level::advice;
    if (is_path) finding.fix = format("sbatch {}={} {}", directive.option.name, value, script.source->name());
  }
}

// Explicitly a CPU job.
bool is_cpu_script(const Script& script) {
  const bool is_explicit = std::any_of(script.calls.begin(), script.calls.end(), [](const ProgramCall& call) {
    return std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word.ends_with("=cpu") || is_one_of(word, {"cpu", "--cpu", "--use_cpu", "--use-cpu", "--no-cuda",
                                                        "--no_cuda", "--cpu-only", "--cpu_only"});
    });
  });
  return is_explicit || script.mentions("CUDA_VISIBLE_DEVICES=\"\"") ||
         script.mentions("CUDA_VISIBLE_DEVICES=''") || script.mentions("CUDA_VISIBLE_DEVICES=-1") ||
         script.mentions("JAX_PLATFORMS=cpu");
}

bool is_gpu_script(const Script& script) {
  const Directive* partition = script.request.find("--partition");
  return (partition != nullptr && to_lower(partition->option.value).find("gpu") != std::string::npos) ||
         script.mentions("cuda") || script.mentions("nvidia-smi") || script.mentions("nccl") ||
         script.mentions("torchrun");
}

void find_zero_gpus(const Script& script, FindingReport& report) {
  if (is_cpu_script(script)) return;
  for (const GpuRequest& request : script.request.gpus()) {
    if (request.count != "0" || (request.type.empty() && !is_gpu_script(script))) continue;
    ScriptFinding& finding =
        report.add(request.directive->value, message("{}={} requests no GPU", request.directive->option.typed,
                                                     printable(request.directive->option.value)));
    const bool wants_gpus = is_gpu_script(script) || script.mentions("train");
    if (request.type.empty() || !wants_gpus) finding.level = Level::time;  // possibly intended
  }
}

constexpr Rule kValueRules[] = {
    {"blank-at-equals", Level::job, "with a blank around = sbatch reads no value, or '=' as the value",
     "#!/bin/bash\n#SBATCH --time = 1:00:00\n", "#!/bin/bash\n#SBATCH --time=1:00:00\n",
     "sbatch: \"Invalid --time specification\"", find_blank_at_equals},
    {"memory-unit", Level::job, "memory without a unit means megabytes, and a unit after a blank is ignored",
     "#!/bin/bash\n#SBATCH --mem=16 GB\n", "#!/bin/bash\n#SBATCH --mem=16GB\n", "sbatch(1), --mem",
     find_memory_unit},
    {"time-format", Level::job, "sbatch rejects an invalid time", "#!/bin/bash\n#SBATCH --time=24h\n",
     "#!/bin/bash\n#SBATCH --time=24:00:00\n", "sbatch: \"Invalid --time specification\"", find_time_format},
    {"option-value", Level::job, "sbatch rejects an invalid count or event",
     "#!/bin/bash\n#SBATCH --mail-type=START\n", "#!/bin/bash\n#SBATCH --mail-type=BEGIN\n",
     "students' scripts; sbatch: \"Invalid --mail-type specification\"", find_bad_value},
    {"variable-in-directive", Level::job, "sbatch does not expand $NAME and ~ in #SBATCH lines",
     "#!/bin/bash\n#SBATCH --output=$HOME/%j.out\n", "#!/bin/bash\n#SBATCH --output=%j.out\n",
     "sbatch(1), filename pattern", find_variable},
    {"zero-gpus", Level::job, "a count of 0 requests no GPU, and the program finds no device",
     "#!/bin/bash\n#SBATCH --gres=gpu:v100:0\n", "#!/bin/bash\n#SBATCH --gres=gpu:v100:1\n",
     "sbatch(1), --gres", find_zero_gpus},
};

}  // namespace

std::span<const Rule> value_rules() { return kValueRules; }

}  // namespace stoker::script_lint
