#include "script_lint/rules/placeholder_directive.h"

#include <algorithm>

#include "script_lint/rules/option_values.h"
#include "script_lint/rules/placeholder_text.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "[account]", "__ACCOUNT__", "%ACCOUNT%", "{{", "???".
std::optional<std::string> in_marks(std::string_view value) {
  const auto is_name = [](std::string_view text) {
    return text.size() > 2 && std::all_of(text.begin(), text.end(), [](char c) {
             return is_letter(c) || c == '_' || c == '-' || c == ' ' || c == '/';
           });
  };
  if (value.find("{{") != std::string_view::npos || value.find("{%") != std::string_view::npos ||
      value.find("??") != std::string_view::npos)
    return std::string(value);
  const std::size_t open = value.find('[');
  const std::size_t close = value.find(']', open);
  if (open != std::string_view::npos && close != std::string_view::npos &&
      is_name(value.substr(open + 1, close - open - 1)))
    return std::string(value.substr(open, close - open + 1));
  const auto is_enclosed_by = [&](std::string_view mark) {
    return value.size() > 2 * mark.size() + 2 && value.starts_with(mark) && value.ends_with(mark) &&
           is_name(value.substr(mark.size(), value.size() - 2 * mark.size()));
  };
  return is_enclosed_by("__") || is_enclosed_by("@") || is_enclosed_by("%")
             ? std::optional(std::string(value))
             : std::nullopt;
}

bool is_name_option(std::string_view option) {
  return is_one_of(option, {"--account", "--partition", "--qos", "--reservation", "--clusters"});
}

// Characters that no Slurm name has: "my account", "!!PARTITION!!", "gpu|cpu", "%(qos)s".
bool is_no_name(std::string_view option, std::string_view value) {
  return is_name_option(option) && value.find_first_of("<>{}[]()!%?*|;& ") != std::string_view::npos;
}

// "project_1234567", "SNICyyyy-xx-yy": sample numbers.
bool has_model_number(std::string_view value) {
  const std::string lower = to_lower(value);
  return lower.find("yyyy-x") != std::string::npos || lower.find("xxxx-y") != std::string::npos ||
         lower.find("yyyy-n") != std::string::npos || lower.ends_with("_1234567") ||
         lower.ends_with("_123456") || lower.ends_with("_12345678");
}

// "--account=ACCOUNT", "--partition=partition_name": the kind of value instead of a value.
bool is_name_of_option(std::string_view option, std::string_view value) {
  std::string lower = to_lower(value);
  std::erase_if(lower, [](char c) { return c == '_' || c == '-'; });
  for (std::string_view prefix : {"my", "the", "some", "slurm", "nameof", "gpu", "cpu"}) {
    // "gpu_partition" may be a real name.
    if (prefix.ends_with("pu") && !lower.ends_with("name")) continue;
    if (lower.size() > prefix.size() + 2 && lower.starts_with(prefix)) {
      lower.erase(0, prefix.size());
      break;
    }
  }
  if (option == "--account") {
    if (is_one_of(to_lower(value), {"mygroup", "my_group", "my-group"})) return true;
    return is_one_of(lower, {"account", "accountname", "accountid", "project", "projectname", "projectid",
                             "projectcode", "projectnumber", "allocation", "allocationname", "allocationid",
                             "groupname", "piname"}) &&
           !is_one_of(value, {"project", "allocation"});
  }
  if (option == "--partition")
    return is_one_of(lower, {"partition", "partitionname", "queuename", "clustername"});
  if (option == "--qos") return is_one_of(lower, {"qos", "qosname"});
  return option == "--reservation" && is_one_of(lower, {"reservation", "reservationname"});
}

// "def-user": the group name in a guide of the Alliance.
bool is_example_account(std::string_view value) {
  const std::size_t dash = value.find('-');
  if (dash == std::string_view::npos || !is_one_of(value.substr(0, dash), {"def", "rrg", "rpp"}))
    return false;
  return is_one_of(
      to_lower(value.substr(dash + 1)),
      {"user", "username", "pi", "piname", "prof", "profname", "professor", "group", "groupname", "sponsor",
       "supervisor", "name", "account", "pi_name", "group_name", "supervisorname", "someuser", "someprof"});
}

// "--nodelist=NODE", "--gres=gpu:TYPE:1", "--gres=gpu:NUM": the kind of value in capitals.
bool is_kind_in_capitals(std::string_view option, std::string_view value) {
  if (option == "--nodelist") return is_one_of(to_lower(value), {"node_name", "nodename", "node-name"});
  if (option != "--gres" || !value.starts_with("gpu:")) return false;
  const auto parts = split(value, ':');
  return is_one_of(parts[1], {"TYPE", "GPU_TYPE", "GPUTYPE", "NUM", "COUNT", "NUM_GPUS", "NGPUS", "NUMBER",
                              "type", "gpu_type", "gputype", "num_gpus"});
}

bool is_number_option(std::string_view option) {
  return is_one_of(option, {"--nodes", "--ntasks", "--ntasks-per-node", "--tasks-per-node", "--cpus-per-task",
                            "--ntasks-per-core", "--gpus-per-node", "--gpus-per-task", "--gpus", "--mem",
                            "--mem-per-cpu", "--mem-per-gpu", "--time"});
}

// A non-number that the number rules skip: "--time=@HOURS:00:00".
bool is_no_number(std::string_view option, std::string_view value) {
  if (!is_number_option(option) || value.starts_with('=')) return false;
  if (option == "--time") return is_time_form(value);
  return option.starts_with("--mem") ? is_memory_form(value) : is_template(value) && !value.empty();
}

// "--nodes=N", "--time=XX:XX:XX", "--mem=XG".
bool is_letter_for_number(std::string_view option, std::string_view value) {
  const bool is_number = option.starts_with("--mem") || option.starts_with("--nodes") ||
                         option.starts_with("--ntasks") || option.starts_with("--cpus") ||
                         option.starts_with("--gpus") || option == "--time" || option == "--array";
  if (!is_number || option.starts_with("--mem-bind")) return false;
  const bool has_letter = value == "N" || value == "n" || value == "M" || value == "X" || value == "x";
  return has_letter || (value.find("XX") != std::string_view::npos &&
                        value.find_first_not_of("X:-GMBT0") == std::string_view::npos);
}

// "--partition=X", or several x in a row.
bool has_x_placeholder(std::string_view option, std::string_view value) {
  if (!is_one_of(option, {"--account", "--partition", "--qos", "--reservation", "--constraint"}))
    return false;
  const bool is_one_letter = value.size() > 3 && (value[0] == 'X' || value[0] == 'Y' || value[0] == 'Z') &&
                             value.find_first_not_of(value[0]) == std::string_view::npos;
  return is_one_letter || value == "X" || value == "XX" || value == "x" ||
         value.find(std::string(3, 'X')) != std::string_view::npos;
}

// "my_account", "some_queue,other_queue".
bool has_generic_name(std::string_view option, std::string_view value) {
  if (!is_name_option(option)) return false;
  const auto names = split(value, ',');
  return has_model_number(value) || std::any_of(names.begin(), names.end(), is_generic_name);
}

}  // namespace

std::optional<std::string> placeholder_in_directive(const Directive& directive) {
  const slurm::SbatchOption& option = directive.option;
  const std::string& value = option.value;
  if (auto found = template_marker(value)) return found;
  const bool has_variable = value.find('$') != std::string::npos;
  if (has_x_placeholder(option.name, value) ||
      (!has_variable && (is_no_name(option.name, value) || is_no_number(option.name, value))))
    return value;
  const bool may_have_brackets =
      is_one_of(option.name, {"--nodelist", "--exclude", "--constraint", "--array", "--prefer"});
  if (!may_have_brackets) {
    if (auto found = in_marks(value)) return found;
  }
  const bool is_your = to_lower(value).starts_with("your") && value.size() > 4;
  const bool is_left =
      is_your || is_kind_in_capitals(option.name, value) || is_name_of_option(option.name, value) ||
      (!has_variable && has_generic_name(option.name, value)) || is_letter_for_number(option.name, value) ||
      (option.name == "--account" && is_example_account(value));
  return is_left ? std::optional(value) : std::nullopt;
}

}  // namespace stoker::script_lint
