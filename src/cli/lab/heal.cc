// `stoker lab fault heal [TARGET]`: docs/commands/lab-fault.md
#include "cli/lab/heal.h"

#include "base/json/json.h"
#include "lab/fault/fault.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;

// A fault that cannot be healed does not prevent healing the remaining ones.
int print_result(const std::string& lab, const lab::fault::HealResult& healed, Output& out) {
  for (const std::string& line : healed.lines) out.line("{}", line);
  if (healed.lines.empty() && healed.failures.empty()) out.line("{}: no active faults", lab);
  if (!healed.failures.empty()) {
    for (std::size_t i = 1; i < healed.failures.size(); ++i) out.note("{}", healed.failures[i].to_string());
    return out.fail(healed.failures[0]);
  }
  const ordered_json value = {{"lab", lab}, {"healed", healed.lines}};
  out.json(json_text(value));
  return exit_code::kOk;
}

}  // namespace

int lab_heal(const std::string& lab, const std::string& target, Output& out) {
  auto opened = lab::open(lab);
  if (!opened) return out.fail(opened.error());
  const auto healed = lab::fault::heal(*opened, target);
  return healed ? print_result(lab, *healed, out) : out.fail(healed.error());
}

}  // namespace stoker::cli
