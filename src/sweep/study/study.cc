#include "sweep/study/study.h"

#include <algorithm>
#include <cmath>
#include <sys/stat.h>
#include <unistd.h>

#include "base/enum_names.h"
#include "base/language/counted.h"
#include "base/name_lock.h"
#include "base/process.h"
#include "base/user.h"
#include "record/filesystem_time.h"
#include "stoker/text.h"
#include "sweep/study/prior.h"

namespace stoker::sweep {

namespace {

constexpr std::string_view kDefinitionFile = "study.json";
constexpr std::string_view kJournalSuffix = ".log";
// A claim without a trial is abandoned after this time: its process was killed in between.
constexpr double kAbandonedAfter = 60;
constexpr int kMostSlots = 4096;
constexpr int kSkipTries = 20;
// At most so often a tell() waits for the disk.
constexpr double kSyncInterval = 0.1;
constexpr std::size_t kMostMessage = 1'000;

// Jobs of one node may have separate network namespaces, and with them separate slots.
std::string worker_prefix() {
  std::string prefix = host_name();
  if (const auto job = environment_value("SLURM_JOB_ID")) prefix += "-j" + *job;
  std::replace(prefix.begin(), prefix.end(), '/', '_');
  return prefix;
}

// "grid 12" is the 12th cell of the grid.
std::optional<std::uint64_t> index_in(std::string_view origin, std::string_view kind) {
  std::uint64_t index = 0;
  if (!origin.starts_with(kind) || origin.size() <= kind.size() || origin[kind.size()] != ' ')
    return std::nullopt;
  return parse_number(origin.substr(kind.size() + 1), &index) ? std::optional(index) : std::nullopt;
}

bool has_point(std::span<const StudyTrial> trials, const Coordinates& point) {
  return std::any_of(trials.begin(), trials.end(), [&](const StudyTrial& trial) {
    return trial.state != TrialState::failed && is_same_point(trial.point, point);
  });
}

Path prior_file(const Path& folder, const Definition& definition) {
  return folder / format("prior-{}.log", definition.id);
}

// The trial with this number, or null. `trials` are in order of their numbers.
template <typename Trials>
auto find_trial(Trials& trials, TrialNumber number) -> decltype(trials.data()) {
  const auto found =
      std::lower_bound(trials.begin(), trials.end(), number,
                       [](const StudyTrial& trial, TrialNumber n) { return trial.number < n; });
  return found != trials.end() && found->number == number ? &*found : nullptr;
}

}  // namespace

Study::Study(Path folder, Definition definition)
    : folder_(std::move(folder)), definition_(std::move(definition)), goals_(definition_.goals()) {}

bool Study::is_in(const Path& folder) { return path_exists(folder / kDefinitionFile); }

Result<Study> Study::create(const Path& folder, Definition definition, std::span<const StudyTrial> prior) {
  definition.id = random_name(12);
  definition.prior_trials = prior.size();
  STOKER_RETURN_IF_ERROR(check(definition));
  const Status taken =
      exists("{}: there is a study", folder).cure("stoker sweep show {}", shell_quote(folder.string()));
  if (is_in(folder)) return taken;
  STOKER_RETURN_IF_ERROR(make_directories(folder / "journal"));
  STOKER_RETURN_IF_ERROR(make_directories(folder / "claims"));
  if (!definition.warm_start.empty())
    STOKER_RETURN_IF_ERROR(write_file(prior_file(folder, definition), prior_text(prior), Durability::synced));
  const Status created = write_new_file(folder / kDefinitionFile, to_json(definition), Durability::synced);
  if (!created.ok() && !definition.warm_start.empty())
    STOKER_RETURN_IF_ERROR(remove_file(prior_file(folder, definition)));
  if (created.code() == Code::exists) return taken;
  STOKER_RETURN_IF_ERROR(created);
  return open(folder);
}

Result<Study> Study::open(const Path& folder) {
  auto text = read_file(folder / kDefinitionFile);
  if (!text && text.error().code() == Code::not_found)
    return not_found("{}: no study ({})", folder, kDefinitionFile);
  if (!text) return std::move(text).error();
  STOKER_ASSIGN_OR_RETURN(definition, definition_from_json(*text, (folder / kDefinitionFile).string()));
  Study study(folder, std::move(definition));
  STOKER_RETURN_IF_ERROR(study.make_samplers());
  STOKER_RETURN_IF_ERROR(study.read_prior());
  STOKER_RETURN_IF_ERROR(study.refresh());
  return study;
}

// Was complete before study.json existed: a missing or damaged trial would be history that the sampler lost.
Status Study::read_prior() {
  if (definition_.warm_start.empty()) return {};
  const Path file = prior_file(folder_, definition_);
  STOKER_ASSIGN_OR_RETURN(text, read_file(file));
  STOKER_ASSIGN_OR_RETURN(prior, prior_from_text(definition_, text, file.string()));
  prior_ = std::move(prior);
  return {};
}

Status Study::make_samplers() {
  if (definition_.sampler == SamplerKind::optuna) {
    optuna_ = std::make_unique<OptunaProposer>(definition_.optuna, definition_.seed);
    return {};
  }
  STOKER_ASSIGN_OR_RETURN(sampler, make_sampler(definition_.sampler, definition_.space, definition_.seed));
  sampler_ = std::move(sampler);
  return {};
}

double Study::now() const { return unix_seconds(clock_.wall()); }

const StudyTrial* Study::find(TrialNumber number) const { return find_trial(trials_, number); }

Result<StudyTrial*> Study::find_running(TrialNumber number) {
  StudyTrial* const trial = find_trial(trials_, number);
  if (trial == nullptr) return not_found("{}: no trial {}", definition_.name, number);
  if (trial->state != TrialState::running)
    return invalid("{}: trial {} has ended ({})", definition_.name, number, stoker::to_text(trial->state));
  return trial;
}

Status Study::refresh() {
  if (storage_) return refresh_from_storage();
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder_ / "journal"));
  // Records of one worker stay in their order.
  const bool must_wait = !waiting_.empty();
  for (const std::string& name : names) {
    if (!name.ends_with(kJournalSuffix)) continue;
    const auto reader = readers_.try_emplace(name, folder_ / "journal" / name).first;
    const std::string worker = name.substr(0, name.size() - kJournalSuffix.size());
    STOKER_RETURN_IF_ERROR(reader->second.read([&](Record record) {
      auto* const start = std::get_if<TrialStart>(&record);
      if (start != nullptr) start->worker = worker;
      if ((must_wait && start == nullptr) || !apply(record)) waiting_.push_back(std::move(record));
    }));
  }
  // One worker may have started a trial that a second one ended.
  std::erase_if(waiting_, [&](const Record& record) { return apply(record); });
  return {};
}

bool Study::apply(const Record& record) {
  return std::visit([&](const auto& alternative) { return apply(alternative); }, record);
}

bool Study::apply(const TrialStart& record) {
  if (record.point.size() != definition_.space.parameters().size()) return true;
  StudyTrial* const known = find_trial(trials_, record.number);
  if (known != nullptr && known->attempt >= record.attempt) return true;
  StudyTrial trial;
  trial.number = record.number;
  trial.attempt = record.attempt;
  trial.origin = known == nullptr ? record.origin : known->origin;
  trial.point = definition_.space.normalized(record.point);
  trial.worker = record.worker;
  trial.started = record.time;
  trial.sampler_state = known == nullptr ? record.sampler_state : known->sampler_state;
  trial.skipped = known == nullptr ? 0 : known->skipped;
  if (known != nullptr) {
    *known = std::move(trial);
    return true;
  }
  // Nearly always the last one.
  auto place = trials_.end();
  while (place != trials_.begin() && std::prev(place)->number > trial.number) --place;
  trials_.insert(place, std::move(trial));
  return true;
}

bool Study::apply(const SkippedPoints& record) {
  StudyTrial* const trial = find_trial(trials_, record.number);
  if (trial != nullptr) trial->skipped = record.count;
  return trial != nullptr;
}

// True also for a record of an attempt that a later one replaced.
bool Study::apply(const TrialReport& record) {
  StudyTrial* const trial = find_trial(trials_, record.number);
  if (trial == nullptr || trial->attempt < record.attempt) return false;
  if (trial->attempt > record.attempt) return true;
  trial->reports[record.step] = record.value;
  // A process also reads what it appended itself.
  if (record.rungs.size() > trial->rungs.size()) trial->rungs = record.rungs;
  return true;
}

bool Study::apply(const SeedResult& record) {
  StudyTrial* const trial = find_trial(trials_, record.number);
  if (trial == nullptr || trial->attempt < record.attempt) return false;
  if (trial->attempt == record.attempt && record.values.size() == goals_.size())
    trial->seeds[record.seed] = record.values;
  return true;
}

// Of two endings of one attempt, the earlier one counts, in whatever order they are read.
bool Study::apply(const TrialEnd& record) {
  StudyTrial* const trial = find_trial(trials_, record.number);
  if (trial == nullptr || trial->attempt < record.attempt) return false;
  if (trial->attempt > record.attempt) return true;
  if (trial->state != TrialState::running && trial->ended <= record.time) return true;
  const bool is_valid = record.state != TrialState::complete || record.values.size() == goals_.size();
  trial->state = is_valid ? record.state : TrialState::failed;
  trial->values = is_valid ? record.values : std::vector<double>();
  trial->message = is_valid ? record.message : "a wrong number of values";
  trial->ended = record.time;
  return true;
}

Status Study::open_journal() {
  if (!worker_.empty()) {
    STOKER_ASSIGN_OR_RETURN(socket, lock_name(format("stoker-study-{}-{}", definition_.id, worker_)));
    if (!socket)
      return exists("{}: another process of {} is '{}' of this study", definition_.name, host_name(),
                    worker_);
    return use_journal(worker_, std::move(socket));
  }
  const std::string prefix = worker_prefix();
  for (int slot = 0; slot < kMostSlots; ++slot) {
    STOKER_ASSIGN_OR_RETURN(socket, lock_name(format("stoker-study-{}-{}-{}", definition_.id, prefix, slot)));
    if (socket) return use_journal(format("{}-{}", prefix, slot), std::move(socket));
  }
  return unavailable("{}: {} of this node use the study", definition_.name,
                     counted(kMostSlots, "process", "processes"));
}

Status Study::use_journal(const std::string& name, Fd slot) {
  STOKER_ASSIGN_OR_RETURN(writer,
                          JournalFile::open(folder_ / "journal" / format("{}{}", name, kJournalSuffix)));
  slot_ = std::move(slot);
  writer_ = std::move(writer);
  journal_ = name;
  writer_process_ = static_cast<int>(::getpid());
  return {};
}

Status Study::ensure_journal() {
  return writer_process_ == static_cast<int>(::getpid()) ? Status() : open_journal();
}

Status Study::set_worker(std::string name) {
  worker_ = std::move(name);
  return storage_ ? storage_->set_worker(worker_) : open_journal();
}

Status Study::append(const Record& record) {
  STOKER_RETURN_IF_ERROR(ensure_journal());
  return writer_.append(line_of(record));
}

Result<bool> Study::claim(const std::string& name) const {
  auto file = File::create_new(folder_ / "claims" / name);
  if (file) return true;
  if (file.error().code() == Code::exists) return false;
  return std::move(file).error();
}

// A claim that was abandoned is followed by a claim with the next suffix.
Result<bool> Study::claim_or_take_over(const std::string& base) {
  std::string name = base;
  for (int suffix = 1;; ++suffix) {
    STOKER_ASSIGN_OR_RETURN(is_claimed, claim(name));
    if (is_claimed) return true;
    const Path file = folder_ / "claims" / name;
    if (!path_exists(file)) return false;
    bool is_young = record::is_recent(file, now(), kAbandonedAfter);
    if (!is_young) {
      // Or this host's clock is wrong.
      STOKER_ASSIGN_OR_RETURN(time, record::filesystem_time(folder_));
      is_young = record::is_recent(file, time, kAbandonedAfter);
    }
    if (is_young) {
      has_young_claim_ = true;
      return false;
    }
    name = format("{}.{}", base, suffix);
  }
}

Result<TrialNumber> Study::claim_number() {
  for (TrialNumber number = trials_.empty() ? 0 : trials_.back().number + 1;; ++number) {
    STOKER_ASSIGN_OR_RETURN(is_claimed, claim(format("{}", number)));
    if (is_claimed) return number;
  }
}

// The first point of the definition that no trial has.
Result<std::optional<Coordinates>> Study::propose_first(std::string& origin) {
  std::vector<bool> is_started(definition_.first.size(), false);
  if (is_started.empty()) return std::optional<Coordinates>();
  for (const StudyTrial& trial : trials_) {
    if (const auto index = index_in(trial.origin, "first"); index && *index < is_started.size())
      is_started[*index] = true;
  }
  for (std::size_t index = 0; index < is_started.size(); ++index) {
    if (is_started[index]) continue;
    STOKER_ASSIGN_OR_RETURN(is_claimed, claim_or_take_over(format("first-{}", index)));
    if (!is_claimed) continue;
    origin = format("first {}", index);
    return std::optional(definition_.first[index]);
  }
  return std::optional<Coordinates>();
}

// The first cell of the grid that no trial has. A cell whose point was tried is counted when the grid first
// comes to it.
Result<std::optional<Coordinates>> Study::propose_cell(std::string& origin, std::uint64_t& skipped) {
  std::vector<bool> is_started;
  for (const StudyTrial& trial : trials_) {
    const auto index = index_in(trial.origin, "grid");
    if (!index) continue;
    if (*index >= is_started.size()) is_started.resize(*index + 1, false);
    is_started[*index] = true;
  }
  for (std::uint64_t cell = 0;; ++cell) {
    if (cell < is_started.size() && is_started[cell]) continue;
    STOKER_ASSIGN_OR_RETURN(point, sampler_->propose(cell, history()));
    if (!point) return std::optional<Coordinates>();
    if (definition_.skip_tried && was_tried(*point)) {
      skipped += cell >= is_started.size() ? 1 : 0;
      continue;
    }
    STOKER_ASSIGN_OR_RETURN(is_claimed, claim_or_take_over(format("grid-{}", cell)));
    if (!is_claimed) continue;
    origin = format("grid {}", cell);
    return point;
  }
}

bool Study::was_tried(const Coordinates& point) const {
  return has_point(trials_, point) || has_point(prior_, point);
}

// A model may like a point that was tried: other random numbers may lead elsewhere, and at last the list of
// all points.
Result<std::optional<Coordinates>> Study::propose_by_sampler(TrialNumber number, std::uint64_t& skipped) {
  const History history = this->history();
  for (std::uint64_t tries = 0; tries < kSkipTries; ++tries) {
    STOKER_ASSIGN_OR_RETURN(point, sampler_->propose(number + (tries << 40), history));
    if (!point || !definition_.skip_tried || !was_tried(*point)) return point;
    ++skipped;
  }
  if (!definition_.space.count()) return sampler_->propose(number, history);
  return propose_untried();
}

Result<std::optional<Coordinates>> Study::propose_by_optuna(TrialNumber number, std::string& state,
                                                            std::uint64_t& skipped) {
  const auto is_wanted = [&](const Coordinates& point) {
    const bool is_new = !definition_.skip_tried || !was_tried(point);
    skipped += is_new ? 0 : 1;
    return is_new;
  };
  STOKER_ASSIGN_OR_RETURN(proposed, optuna_->propose(number, history(), is_wanted));
  if (definition_.skip_tried && was_tried(proposed.point) && definition_.space.count())
    return propose_untried();
  state = std::move(proposed.state);
  return std::optional(std::move(proposed.point));
}

// The first point of the grid that no trial has. REQUIRES: the space is finite.
Result<std::optional<Coordinates>> Study::propose_untried() const {
  STOKER_ASSIGN_OR_RETURN(grid, make_sampler(SamplerKind::grid, definition_.space, 0));
  for (std::uint64_t cell = 0;; ++cell) {
    STOKER_ASSIGN_OR_RETURN(point, grid->propose(cell, history()));
    if (!point || !was_tried(*point)) return point;
  }
}

// Each started trial has one of `most_trials` claims, and each failed one adds a claim. While there are fewer
// trials than claims, some claims are abandoned; which of them is taken over does not matter.
Result<bool> Study::claim_start() {
  if (definition_.most_trials == 0) return true;
  const auto failed =
      static_cast<std::uint64_t>(std::count_if(trials_.begin(), trials_.end(), [](const StudyTrial& trial) {
        return trial.state == TrialState::failed;
      }));
  for (std::uint64_t index = trials_.size(); index < definition_.most_trials + failed; ++index) {
    STOKER_ASSIGN_OR_RETURN(is_claimed, claim_or_take_over(format("start-{}", index)));
    if (is_claimed) return true;
  }
  return false;
}

Result<Proposal> Study::start(TrialStart record) {
  STOKER_RETURN_IF_ERROR(ensure_journal());
  record.time = now();
  record.worker = journal_;
  STOKER_RETURN_IF_ERROR(append(record));
  apply(record);
  const StudyTrial* const trial = find(record.number);
  return Proposal{record.number, record.attempt, trial->point, definition_.space.decode(trial->point)};
}

Result<std::optional<Proposal>> Study::ask() {
  // Before anything is claimed: Optuna may not be there.
  if (optuna_) STOKER_RETURN_IF_ERROR(optuna_->prepare());
  STOKER_RETURN_IF_ERROR(refresh());
  has_young_claim_ = false;
  if (storage_) return ask_storage();
  STOKER_ASSIGN_OR_RETURN(may_start, claim_start());
  is_full_ = !may_start;
  if (is_full_) return std::optional<Proposal>();
  TrialStart record;
  SkippedPoints skipped;
  STOKER_ASSIGN_OR_RETURN(first, propose_first(record.origin));
  std::optional<Coordinates> point = first;
  if (!point && definition_.sampler == SamplerKind::grid) {
    STOKER_ASSIGN_OR_RETURN(cell, propose_cell(record.origin, skipped.count));
    if (!cell) return std::optional<Proposal>();
    point = cell;
  }
  STOKER_ASSIGN_OR_RETURN(number, claim_number());
  if (!point) {
    STOKER_ASSIGN_OR_RETURN(proposed, optuna_ ? propose_by_optuna(number, record.sampler_state, skipped.count)
                                              : propose_by_sampler(number, skipped.count));
    if (!proposed) return std::optional<Proposal>();
    point = proposed;
    record.origin = sampler_name(definition_);
  }
  record.number = number;
  record.point = *std::move(point);
  STOKER_ASSIGN_OR_RETURN(proposal, start(std::move(record)));
  if (skipped.count > 0) {
    skipped.number = number;
    STOKER_RETURN_IF_ERROR(append(skipped));
    apply(skipped);
  }
  return std::optional(std::move(proposal));
}

Result<Proposal> Study::retry(TrialNumber number) {
  STOKER_RETURN_IF_ERROR(refresh());
  const StudyTrial* const trial = find(number);
  if (trial == nullptr) return not_found("{}: no trial {}", definition_.name, number);
  if (trial->state != TrialState::failed)
    return invalid("{}: trial {} did not fail ({})", definition_.name, number, stoker::to_text(trial->state));
  if (storage_) return retry_in_storage(*trial);
  TrialStart record{number, trial->attempt + 1, 0, "retry", trial->point};
  STOKER_ASSIGN_OR_RETURN(is_claimed, claim_or_take_over(format("{}.{}", number, record.attempt)));
  if (!is_claimed)
    return exists("{}: trial {} was started again by another worker", definition_.name, number);
  return start(std::move(record));
}

Result<bool> Study::report(TrialNumber number, std::int64_t step, double value) {
  STOKER_RETURN_IF_ERROR(refresh());
  STOKER_ASSIGN_OR_RETURN(trial, find_running(number));
  TrialReport record{number, trial->attempt, step, std::isfinite(value) ? value : std::nan(""), {}};
  trial->reports[step] = record.value;
  const PrunerDecision decision = decide(definition_.pruner, goals_[0], definition_.name, *trial, trials_);
  trial->rungs.insert(trial->rungs.end(), decision.reached.begin(), decision.reached.end());
  record.rungs = trial->rungs;
  STOKER_RETURN_IF_ERROR(storage_ ? storage_->report(number, step, record.value, record.rungs)
                                  : append(record));
  return decision.stop;
}

Status Study::record_seeds(const StudyTrial& trial, const SeedValues& seeds) {
  if (seeds.empty()) return {};
  if (storage_) return storage_->set_seeds(trial.number, seeds);
  for (const auto& [seed, values] : seeds)
    STOKER_RETURN_IF_ERROR(append(SeedResult{trial.number, trial.attempt, seed, values}));
  return {};
}

Status Study::tell(TrialNumber number, TrialEnding ending) {
  STOKER_RETURN_IF_ERROR(refresh());
  STOKER_ASSIGN_OR_RETURN(trial, find_running(number));
  if (ending.state == TrialState::running)
    return invalid("{}: trial {} is running", definition_.name, number);
  if (ending.state != TrialState::complete) ending.values.clear();
  if (ending.state == TrialState::complete && ending.values.size() != goals_.size())
    return invalid("{}: {} for trial {} (the study has {})", definition_.name,
                   counted(ending.values.size(), "value"), number, counted(goals_.size(), "objective"));
  for (std::size_t i = 0; i < ending.values.size(); ++i) {
    if (std::isfinite(ending.values[i])) continue;
    ending = {TrialState::failed,
              {},
              format("{} is {}", definition_.objectives[i].metric, to_text(Value(ending.values[i])))};
    break;
  }
  STOKER_RETURN_IF_ERROR(record_seeds(*trial, ending.seeds));
  trial->seeds = ending.seeds;
  const TrialEnd record{number,       trial->attempt, now(),
                        ending.state, ending.values,  clipped(ending.message, kMostMessage)};
  STOKER_RETURN_IF_ERROR(storage_ ? storage_->end(number, record.state, record.values, record.message)
                                  : append(record));
  apply(record);
  if (storage_) return {};
  if (record.time - last_sync_ < kSyncInterval && record.time >= last_sync_) return {};
  last_sync_ = record.time;
  return writer_.sync();
}

std::string Study::location() const { return storage_ ? storage_->location() : folder_.string(); }

Status Study::bind_folder() {
  if (!storage_) return {};
  if (is_in(folder_))
    return invalid("{}: is a study itself, and its runs are not trials of the storage (storage)", folder_)
        .cure("mv {} {}", shell_quote(folder_.string()), shell_quote(folder_.string() + ".old"));
  return storage_->bind(folder_);
}

bool Study::is_of_folder(const StudyTrial& trial) const {
  return !storage_ || (!trial.worker.empty() && trial.worker.find('/') == std::string::npos);
}

std::uint64_t Study::outside() const { return storage_ ? storage_->outside() : 0; }

std::uint64_t Study::damaged() const {
  std::uint64_t count = 0;
  for (const auto& [name, reader] : readers_) count += reader.damaged();
  return count;
}

std::string Study::first_damaged() const {
  for (const auto& [name, reader] : readers_) {
    if (reader.damaged() > 0) return reader.path().string();
  }
  return "";
}

}  // namespace stoker::sweep
