#include "cli/sweep/trial_list.h"

#include "cli/output.h"
#include "sweep/results/trial_table.h"

namespace stoker::cli {
namespace {

std::vector<std::string> upper_case(std::vector<std::string> header) {
  for (std::string& cell : header) {
    if (cell == "trial" || cell == "state" || cell == "seconds") {
      for (char& c : cell) c = static_cast<char>(c - 'a' + 'A');
    }
  }
  return header;
}

}  // namespace

void print_trials(const sweep::Study& study, const TrialPointers& trials, Output& out) {
  const sweep::TrialTable table = trial_table(study.definition(), trials, sweep::Digits::four);
  out.table(upper_case(table.header), table.rows);
}

void limit_trials(TrialPointers& trials, std::int64_t most) {
  if (most > 0 && trials.size() > static_cast<std::size_t>(most))
    trials.resize(static_cast<std::size_t>(most));
}

}  // namespace stoker::cli
