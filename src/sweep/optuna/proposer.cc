#include "sweep/optuna/proposer.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/enum_names.h"
#include "base/json/json.h"
#include "sweep/optuna/bridge.h"
#include "sweep/sampler/trial_random.h"
#include "sweep/space/space_json.h"

namespace stoker::sweep {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostRefused = 20;
constexpr int kMostPoints = 1'000;
// numpy takes seeds of 32 bits.
constexpr std::uint64_t kLargestSeed = 0xFFFFFFFF;

std::string_view optuna_state(TrialState state) {
  switch (state) {
    case TrialState::complete:
      return "COMPLETE";
    case TrialState::pruned:
      return "PRUNED";
    case TrialState::failed:
      return "FAIL";
    case TrialState::running:
      break;
  }
  return "RUNNING";
}

Json json_of_trial_at(std::size_t place, const StudyTrial& trial, const Space& space) {
  Json reports = Json::array();
  for (const auto& [step, value] : trial.reports)
    reports.push_back({step, std::isfinite(value) ? Json(value) : Json()});
  Json attributes = parse_json<Json>(trial.sampler_state);
  if (!attributes.is_object()) attributes = Json();
  return {{"place", place},         {"state", optuna_state(trial.state)},
          {"values", trial.values}, {"params", json_of(space.decode(trial.point))},
          {"reports", reports},     {"attributes", attributes}};
}

Json json_of_history(const History& history) {
  Json trials = Json::array();
  for (std::size_t i = 0; i < history.prior.size(); ++i)
    trials.push_back(json_of_trial_at(i, history.prior[i], history.space));
  for (const StudyTrial& trial : history.trials)
    trials.push_back(json_of_trial_at(history.prior.size() + trial.number, trial, history.space));
  return trials;
}

// Optuna's numbers may differ from the values of the space in their last digits.
Value value_in(const NumberRange& range, double number) {
  const double inside = number_at(range, position_of(range, std::clamp(number, range.low, range.high)));
  if (range.is_integer) return static_cast<std::int64_t>(inside);
  return inside;
}

Result<Coordinates> point_from(const Space& space, const Json& params) {
  if (!params.is_object()) return unavailable("a proposal has no parameters");
  Assignment values;
  for (const Parameter& parameter : space.parameters()) {
    const auto found = params.find(parameter.name);
    if (found == params.end()) continue;
    const auto* const range = std::get_if<NumberRange>(&parameter.domain);
    if (range != nullptr && found->is_number()) {
      values.emplace_back(parameter.name, value_in(*range, found->get<double>()));
    } else if (auto value = value_from_json(*found)) {
      values.emplace_back(parameter.name, *std::move(value));
    }
  }
  return space.encode(values);
}

std::string state_from(const Json& answer) {
  const auto attributes = answer.find("attributes");
  const bool has_any =
      attributes != answer.end() && attributes->is_object() &&
      std::any_of(attributes->begin(), attributes->end(), [](const Json& kind) { return !kind.empty(); });
  return has_any ? json_ascii(*attributes) : "";
}

}  // namespace

Status check(const OptunaSampler& sampler) {
  const bool is_name = !sampler.name.empty() && sampler.name.size() <= 64 &&
                       std::all_of(sampler.name.begin(), sampler.name.end(),
                                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (is_name) return {};
  return invalid("sampler 'optuna.{}': is no name of a class", printable(sampler.name))
      .cure("sampler: optuna.TPESampler");
}

OptunaProposer::OptunaProposer(OptunaSampler sampler, std::uint64_t seed)
    : sampler_(std::move(sampler)), seed_(seed) {}
OptunaProposer::OptunaProposer(OptunaProposer&&) noexcept = default;
OptunaProposer::~OptunaProposer() = default;

Status OptunaProposer::prepare() {
  if (bridge_ && bridge_->is_own()) return {};
  bridge_.reset();
  STOKER_ASSIGN_OR_RETURN(bridge, OptunaBridge::start());
  const auto made = bridge->call({{"op", "check"},
                                  {"sampler", sampler_.name},
                                  {"options", parse_json<Json>(sampler_.options)},
                                  {"seed", seed_ & kLargestSeed}});
  if (!made) return made.status().with_context("sampler optuna." + sampler_.name);
  bridge_ = std::move(bridge);
  return {};
}

Result<OptunaPoint> OptunaProposer::propose(TrialNumber number, const History& history,
                                            const std::function<bool(const Coordinates&)>& is_wanted) {
  STOKER_RETURN_IF_ERROR(prepare());
  Json space = Json::array();
  for (const Parameter& parameter : history.space.parameters()) space.push_back(json_of(parameter));
  Json directions = Json::array();
  for (const Goal goal : history.goals) directions.push_back(stoker::to_text(goal));
  TrialRandom random(seed_, number);
  Json request = {{"op", "propose"},
                  {"sampler", sampler_.name},
                  {"options", parse_json<Json>(sampler_.options)},
                  {"seed", seed_ & kLargestSeed},
                  {"trial_seed", random.next() & kLargestSeed},
                  {"directions", directions},
                  {"space", space},
                  {"trials", json_of_history(history)}};
  int refused = 0;
  for (int tries = 0; tries < kMostPoints; ++tries) {
    auto answer = bridge_->call(request);
    if (!answer) {
      const bool is_refused = answer.error().code() == Code::invalid;
      if (!is_refused) bridge_.reset();
      return std::move(answer).error().with_context("sampler optuna." + sampler_.name);
    }
    auto point = point_from(history.space, answer->value("params", Json()));
    if (!point) return std::move(point).error().with_context("sampler optuna." + sampler_.name);
    request = Json::object({{"op", "again"}});
    if (!history.space.is_feasible(*point)) continue;
    if (!is_wanted(*point) && ++refused < kMostRefused) continue;
    return OptunaPoint{*std::move(point), state_from(*answer)};
  }
  return invalid("sampler optuna.{}: none of {} points satisfies the constraints", sampler_.name, kMostPoints)
      .cure("sampler: auto");
}

}  // namespace stoker::sweep
