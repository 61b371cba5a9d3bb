// Study with a StudyStorage: docs/sweep-storage.md.
//   1. the storage gives out a number, with its own atomic operation
//   2. the sampler proposes from all trials that the storage has by then
//   3. the storage gets the point
// A process that is killed between 1 and 3 leaves a running trial without a point only if its Python is
// killed, too: without its Stoker, Python ends such a trial as failed and enqueues what was enqueued again.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/enum_names.h"
#include "base/language/counted.h"
#include "stoker/text.h"
#include "sweep/study/study.h"

namespace stoker::sweep {

namespace {

std::uint64_t started_before(std::span<const StudyTrial> trials, TrialNumber number) {
  return static_cast<std::uint64_t>(std::count_if(trials.begin(), trials.end(), [&](const StudyTrial& trial) {
    return trial.number < number && trial.state != TrialState::failed;
  }));
}

constexpr TrialNumber kAnyNumber = std::numeric_limits<TrialNumber>::max();

}  // namespace

Result<Study> Study::open(std::unique_ptr<StudyStorage> storage, const Path& folder, Definition definition,
                          std::vector<StudyTrial> prior) {
  Study study(folder, std::move(definition));
  study.storage_ = std::move(storage);
  study.prior_ = std::move(prior);
  STOKER_RETURN_IF_ERROR(study.make_samplers());
  STOKER_RETURN_IF_ERROR(study.refresh());
  return study;
}

Status Study::refresh_from_storage() {
  STOKER_ASSIGN_OR_RETURN(changed, storage_->read());
  for (StudyTrial& trial : changed) put(std::move(trial));
  return {};
}

void Study::put(StudyTrial trial) {
  auto place = trials_.end();
  while (place != trials_.begin() && std::prev(place)->number > trial.number) --place;
  if (place != trials_.begin() && std::prev(place)->number == trial.number) {
    *std::prev(place) = std::move(trial);
  } else {
    trials_.insert(place, std::move(trial));
  }
}

// Of processes that begin a trial at the same time, the one with the lower number stays below the limit.
bool Study::is_over_limit(TrialNumber number) const {
  return definition_.most_trials > 0 && started_before(trials_, number) >= definition_.most_trials;
}

Result<std::optional<Proposal>> Study::ask_storage() {
  is_full_ = is_over_limit(kAnyNumber);
  if (is_full_) return std::optional<Proposal>();
  const bool is_grid = definition_.sampler == SamplerKind::grid;
  STOKER_ASSIGN_OR_RETURN(enqueued, storage_->begin(Begin::enqueued));
  std::optional<BegunTrial> begun = enqueued;
  if (!begun) {
    // Before a number is used up.
    if (is_grid) return std::optional<Proposal>();
    if (definition_.skip_tried && definition_.space.count()) {
      STOKER_ASSIGN_OR_RETURN(untried, propose_untried());
      if (!untried) return std::optional<Proposal>();
    }
    STOKER_ASSIGN_OR_RETURN(fresh, storage_->begin(Begin::any));
    begun = fresh;
  }
  StudyTrial trial{.number = begun->number, .origin = begun->origin};
  const auto abandon = [&](const Status& status) {
    (void)storage_->end(begun->number, TrialState::failed, {}, std::string(status.message()));
    return status;
  };
  if (const Status read = refresh_from_storage(); !read.ok()) return abandon(read);
  std::erase_if(trials_, [&](const StudyTrial& other) { return other.number == begun->number; });
  if (is_over_limit(begun->number)) {
    is_full_ = true;
    (void)abandon(invalid("trials: {}", definition_.most_trials));
    return std::optional<Proposal>();
  }
  auto point = point_of(*begun, trial);
  if (!point) return abandon(point.error());
  if (!*point) {
    (void)abandon(invalid("every point was tried"));
    return std::optional<Proposal>();
  }
  trial.point = **std::move(point);
  trial.started = now();
  trial.worker = worker_;
  if (const Status set = storage_->set_point(trial); !set.ok()) return abandon(set);
  Proposal proposal{trial.number, 0, trial.point, definition_.space.decode(trial.point)};
  put(std::move(trial));
  return std::optional(std::move(proposal));
}

// What was enqueued has some or all values; the sampler chooses the rest.
Result<std::optional<Coordinates>> Study::point_of(const BegunTrial& begun, StudyTrial& trial) {
  std::optional<Coordinates> fixed;
  if (!begun.fixed.empty()) {
    STOKER_ASSIGN_OR_RETURN(encoded, definition_.space.encode(begun.fixed));
    fixed = encoded;
    if (definition_.space.decode(definition_.space.normalized(encoded)).size() == begun.fixed.size())
      return fixed;
  }
  STOKER_ASSIGN_OR_RETURN(proposed, optuna_
                                        ? propose_by_optuna(begun.number, trial.sampler_state, trial.skipped)
                                        : propose_by_sampler(begun.number, trial.skipped));
  if (trial.origin.empty()) trial.origin = sampler_name(definition_);
  if (!proposed || !fixed) return proposed;
  Coordinates point = *proposed;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (!std::isnan((*fixed)[i])) point[i] = (*fixed)[i];
  }
  return std::optional(definition_.space.normalized(std::move(point)));
}

bool Study::was_retried(TrialNumber number) const {
  const std::string origin = format("retry {}", number);
  return storage_ && std::ranges::any_of(trials_, [&](const StudyTrial& t) { return t.origin == origin; });
}

// A trial of the storage ends once: another attempt is another trial with its own number.
Result<Proposal> Study::retry_in_storage(const StudyTrial& earlier) {
  const StudyTrial known = earlier;
  const std::string origin = format("retry {}", known.number);
  STOKER_ASSIGN_OR_RETURN(number, storage_->begin_again(known));
  STOKER_RETURN_IF_ERROR(refresh_from_storage());
  for (const StudyTrial& other : trials_) {
    if (other.number >= number || other.origin != origin || other.state == TrialState::failed) continue;
    (void)storage_->end(number, TrialState::failed, {}, format("is trial {}", other.number));
    return exists("{}: trial {} was started again as trial {}", definition_.name, known.number, other.number);
  }
  return Proposal{number, known.attempt + 1, known.point, definition_.space.decode(known.point)};
}

}  // namespace stoker::sweep
