#include "explain/script/rules/marks.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::explain {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "[account]", "__ACCOUNT__", "@ACCOUNT@", "{{ account }}", "???".
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
  const auto stands_in = [&](std::string_view mark) {
    return value.size() > 2 * mark.size() + 2 && value.starts_with(mark) && value.ends_with(mark) &&
           is_name(value.substr(mark.size(), value.size() - 2 * mark.size()));
  };
  return stands_in("__") || stands_in("@") || stands_in("%") ? std::optional(std::string(value))
                                                             : std::nullopt;
}

// "--account=ACCOUNT", "--partition=partition_name": the name of what is asked for, not one of them.
bool is_name_of_option(std::string_view option, std::string_view value) {
  std::string lower = to_lower(value);
  std::erase_if(lower, [](char c) { return c == '_' || c == '-'; });
  for (std::string_view prefix : {"my", "the", "some", "slurm", "nameof", "gpu", "cpu"}) {
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
    return is_one_of(lower, {"partition", "partitionname", "queuename", "clustername"}) &&
           value != "gpupartition";
  if (option == "--qos") return is_one_of(lower, {"qos", "qosname"});
  return option == "--reservation" && is_one_of(lower, {"reservation", "reservationname"});
}

// "def-user": a group's name as a guide of the Alliance writes it.
bool is_guides_account(std::string_view value) {
  const std::size_t dash = value.find('-');
  if (dash == std::string_view::npos || !is_one_of(value.substr(0, dash), {"def", "rrg", "rpp"}))
    return false;
  return is_one_of(to_lower(value.substr(dash + 1)),
                   {"user", "username", "pi", "piname", "prof", "profname", "professor", "group", "groupname",
                    "sponsor", "supervisor", "name", "account", "pi_name", "group_name", "supervisorname"});
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

// "--partition=X", or crosses in a row: letters that stand for others.
bool is_crossed_name(std::string_view option, std::string_view value) {
  if (!is_one_of(option, {"--account", "--partition", "--qos", "--reservation", "--constraint"}))
    return false;
  const bool is_one_letter = value.size() > 3 && (value[0] == 'X' || value[0] == 'Y' || value[0] == 'Z') &&
                             value.find_first_not_of(value[0]) == std::string_view::npos;
  return is_one_letter || value == "X" || value == "XX" || value == "x" ||
         value.find(std::string(3, 'X')) != std::string_view::npos;
}

}  // namespace

std::optional<std::string> left_in_directive(const Directive& directive) {
  const slurm::OwnOption& option = directive.option;
  if (is_crossed_name(option.name, option.value)) return option.value;
  const bool may_have_brackets =
      is_one_of(option.name, {"--nodelist", "--exclude", "--constraint", "--array", "--prefer"});
  if (!may_have_brackets) {
    if (auto found = in_marks(option.value)) return found;
  }
  const bool is_your = to_lower(option.value).starts_with("your") && option.value.size() > 4;
  if (is_your || is_name_of_option(option.name, option.value) ||
      is_letter_for_number(option.name, option.value) ||
      (option.name == "--account" && is_guides_account(option.value)))
    return option.value;
  return std::nullopt;
}

}  // namespace stoker::explain
