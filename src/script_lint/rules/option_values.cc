#include "script_lint/rules/option_values.h"

#include <algorithm>
#include <cctype>

#include "slurm/script/option_names.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// Options for which sbatch or slurmctld rejects an empty value.
bool refuses_empty(std::string_view name) {
  return is_one_of(name, {"--ntasks", "--ntasks-per-node", "--tasks-per-node", "--ntasks-per-core",
                          "--cpus-per-task", "--mem", "--mem-per-cpu", "--mem-per-gpu", "--time", "--nodes",
                          "--mail-type", "--threads-per-core", "--tmp", "--partition"});
}

// "--time" at the end of its line: it consumes the first word of the next line.
bool lacks_word(const Directive& directive) {
  const slurm::SbatchOption& option = directive.option;
  return !option.has_equals && option.value.empty() && option.stray.empty() && option.typed != "--" &&
         slurm::takes_next_word(option.name) && option.name.starts_with("--") &&
         slurm::look_up_option(option.name) == slurm::OptionName::known;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "2", "2-4", "1k"; newer releases also accept lists.
bool is_node_count(std::string_view value) {
  const std::size_t end = value.find_first_not_of("0123456789-,:");
  const bool has_unit =
      end + 1 == value.size() && is_one_of(value.substr(std::min(end, value.size())), {"k", "m", "K", "M"});
  if (value.empty() || std::isdigit(static_cast<unsigned char>(value[0])) == 0) return false;
  if (end != std::string_view::npos && !has_unit) return false;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  const std::size_t dash = value.find('-');
  return dash == std::string_view::npos || !parse_number(value.substr(0, dash), &least) ||
         !parse_number(value.substr(dash + 1), &most) || least <= most;
}

// "USR1@120", "B:TERM", "R:10@60".
bool is_signal(std::string_view value) {
  std::string name = to_lower(value.substr(0, value.find('@')));
  for (std::string_view prefix : {"rb:", "br:", "b:", "r:"}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  if (name.starts_with("sig")) name.erase(0, 3);
  const std::size_t at = value.find('@');
  const bool has_time =
      at == std::string_view::npos || at + 1 == value.size() || is_digits(value.substr(at + 1));
  return has_time && (is_digits(name) || is_one_of(name, {"hup", "int", "quit", "abrt", "kill", "alrm",
                                                          "term", "usr1", "usr2", "urg", "cont", "stop",
                                                          "tstp", "ttin", "ttou", "xcpu", "xfsz", "prof"}));
}

// Options without a value.
bool takes_nothing(std::string_view name) {
  return is_one_of(name, {"--requeue", "--no-requeue", "--hold", "--contiguous", "--overcommit", "--reboot",
                          "--spread-job", "--use-min-nodes", "--ignore-pbs", "--quiet", "--verbose"});
}

bool is_right(const slurm::SbatchOption& option) {
  const std::string& value = option.value;
  const std::string lower = to_lower(value);
  if (option.name == "--nodes") return is_node_count(value);
  if (option.name == "--signal") return is_signal(value);
  if (option.name == "--exclusive") return is_one_of(lower, {"", "user", "mcs", "topo"});
  if (option.name == "--open-mode") return lower.starts_with("a") || lower.starts_with("t");
  return true;
}

// GPU models, which are types and not resource names.
bool is_gpu_type(std::string_view name) {
  return is_one_of(name, {"v100",  "a100",    "h100",    "h200",   "p100",   "k80",     "t4",
                          "a40",   "a30",     "l40",     "l40s",   "a6000",  "rtx",     "v100s",
                          "titan", "rtx6000", "rtx8000", "1080ti", "2080ti", "rtx3090", "gpus"});
}

// "gpu", "gpu:2", "gpu:v100", "gpu:v100:2(S:0)", "gpu:v100=2"
bool is_gpu_request(std::string_view request) {
  request = request.substr(0, request.find('('));
  const auto parts = split(request, ':');
  if (parts.size() > 3 || (parts.size() == 3 && parts[1] == "gpu")) return false;
  if (parts.size() == 2) return !parts[1].empty();
  if (parts.size() < 3) return request == "gpu";
  const std::string_view count = parts[2];
  const std::size_t end = count.find_first_not_of("0123456789");
  const bool has_unit = end != std::string_view::npos && end + 1 == count.size() &&
                        is_one_of(to_lower(count.substr(end)), {"k", "m", "g"});
  return !parts[1].empty() && !count.empty() && end != 0 && (end == std::string_view::npos || has_unit);
}

// Characters of placeholders.
bool has_marks(std::string_view value) {
  return value.find_first_of("<>${}[]%") != std::string_view::npos || value == "..." || value == "N" ||
         to_lower(value).find("xxx") != std::string::npos;
}

}  // namespace

bool is_template(std::string_view value) {
  return value.empty() || value.find('=') != std::string_view::npos || has_marks(value);
}

bool is_time_form(std::string_view value) {
  const std::string lower = to_lower(value);
  return lower.find_first_of("<$=[{x?@_%") != std::string::npos || lower == "n" ||
         lower.find("..") != std::string::npos;
}

bool is_memory_form(std::string_view value) {
  return value.find_first_of("<$=[{?@_%") != std::string_view::npos || value == "N" ||
         to_lower(value).find("xx") != std::string::npos;
}

void find_no_value(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const slurm::SbatchOption& option = directive.option;
    if (lacks_word(directive)) {
      report.add(
          directive.span,
          message("{} has no value: sbatch uses the first word of the next line, or rejects the script",
                  option.typed));
      continue;
    }
    const bool is_empty =
        refuses_empty(option.name) && option.stray.empty() && option.has_equals && option.value.empty();
    if (!is_empty && !(option.name == "--gres" && option.value.ends_with(':'))) continue;
    report.add(directive.span,
               message("{}={}: no value, sbatch rejects the script", option.typed, printable(option.value)));
  }
}

void find_bad_word(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const slurm::SbatchOption& option = directive.option;
    if (takes_nothing(option.name) && option.has_equals) {
      report.replace({directive.span.begin + option.typed.size(), directive.span.end},
                     message("{} takes no value, sbatch rejects it", option.typed), "");
      continue;
    }
    const std::string_view value = option.value;
    const bool is_reported_elsewhere =
        value.starts_with('=') || (value.empty() && option.name != "--exclusive") || has_marks(value);
    if (is_reported_elsewhere || is_right(option)) continue;
    report.add(directive.value, message("{}={}: an invalid value, sbatch rejects the script", option.typed,
                                        printable(option.value)));
  }
}

void find_bad_gres(const Script& script, FindingReport& report) {
  const Directive* gres = script.request.find("--gres");
  if (gres == nullptr || has_marks(gres->option.value) || gres->option.value.ends_with(':')) return;
  for (std::string_view each : split(gres->option.value, ',')) {
    const std::string_view name = each.substr(0, each.find_first_of(":="));
    const auto parts = split(each, ':');
    if (to_lower(name) == "gpu" && parts.size() == 3 && is_digits(parts[1]) && !is_digits(parts[2]) &&
        !parts[2].empty() && std::isalpha(static_cast<unsigned char>(parts[2][0])) != 0) {
      const std::size_t at = gres->value.begin;
      const Message text =
          message("{}: the type comes before the count, sbatch rejects the script", printable(each));
      if (script.at(gres->value) == each) {
        report.replace({at, gres->value.end}, text, format("gpu:{}:{}", parts[2], parts[1]));
      } else {
        report.add(gres->value, text);
      }
      return;
    }
    const bool is_wrong_name = is_gpu_type(to_lower(name)) || (name != "gpu" && to_lower(name) == "gpu") ||
                               is_digits(name) || (name.starts_with("gpu") && is_digits(name.substr(3)));
    const bool is_wrong = is_wrong_name || each.starts_with("gpu=") ||
                          (name == "gpu" && !each.starts_with("gpu:") && each != "gpu");
    const bool is_letter_count = parts.size() == 3 && is_one_of(parts[2], {"N", "n", "X", "x"});
    if (!is_wrong && (name != "gpu" || is_gpu_request(each) || is_letter_count)) continue;
    report.add(gres->value,
               message("{}={}: not a valid resource (as in gpu:2 or gpu:v100:2), sbatch rejects the script",
                       gres->option.typed, printable(gres->option.value)));
    return;
  }
}

}  // namespace stoker::script_lint
