#include "sweep/study/prior.h"

#include "base/language/counted.h"
#include "sweep/study/journal.h"

namespace stoker::sweep {

std::string prior_text(std::span<const StudyTrial> prior) {
  std::string text;
  for (std::size_t i = 0; i < prior.size(); ++i) {
    const StudyTrial& trial = prior[i];
    text += line_of(TrialStart{i, 0, trial.started, trial.origin, trial.point, ""});
    text += line_of(TrialEnd{i, 0, trial.ended, TrialState::complete, trial.values, ""});
  }
  return text;
}

Result<std::vector<StudyTrial>> prior_from_text(const Definition& definition, std::string_view text,
                                                std::string_view subject) {
  std::vector<StudyTrial> prior;
  const auto next = [&]() -> std::optional<Record> {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    auto record = record_of(text.substr(0, end));
    text.remove_prefix(end + 1);
    return record;
  };
  while (prior.size() <= definition.prior_trials) {
    const auto first = next();
    const auto second = next();
    const auto* const start = first ? std::get_if<TrialStart>(&*first) : nullptr;
    const auto* const end = second ? std::get_if<TrialEnd>(&*second) : nullptr;
    if (start == nullptr || end == nullptr || start->point.size() != definition.space.parameters().size() ||
        end->values.size() != definition.objectives.size())
      break;
    StudyTrial trial{.number = start->number, .state = TrialState::complete, .origin = start->origin};
    trial.point = definition.space.normalized(start->point);
    trial.values = end->values;
    trial.started = start->time;
    trial.ended = end->time;
    prior.push_back(std::move(trial));
  }
  if (prior.size() == definition.prior_trials) return prior;
  return corrupt("{}: {} of {} can be read", subject, prior.size(),
                 counted(definition.prior_trials, "trial"));
}

}  // namespace stoker::sweep
