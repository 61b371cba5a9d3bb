// A study on disk or in a storage, shared by any number of processes on any number of nodes: they ask for
// points and tell values. A Study belongs to one thread. After fork() the child may use it, too.
//
// A folder holds study.json (Definition), journal/<worker>.log (journal.h) and claims/, whose empty files
// divide numbers and points among workers: creating a file exclusively is the one step that a shared
// filesystem decides, NFS included. docs/formats/study.md describes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/journal.h"
#include "stoker/status.h"
#include "stoker/time.h"
#include "sweep/study/definition.h"
#include "sweep/study/journal.h"
#include "sweep/study/study_storage.h"

namespace stoker::sweep {

/// What ask() returned.
struct Proposal {
  TrialNumber number = 0;
  std::uint32_t attempt = 0;
  Coordinates point;
  Assignment values;
};

/// Whether a sweep file without a study gets one.
enum class MissingStudy { create, refuse };

/// How a trial ended.
struct TrialEnding {
  TrialState state = TrialState::complete;
  std::vector<double> values;  ///< one for each objective of a complete trial, else empty
  std::string message;         ///< why it failed; at most 1 000 bytes are kept
  SeedValues seeds = {};       ///< that the values are the average of
};

class Study {
 public:
  /// Creates the folder with study.json. Exists if there is a study, Invalid by check(Definition). The
  /// definition's id is chosen here. `prior`: complete trials of other studies that the sampler knows
  /// beforehand, as points and values of this study.
  static Result<Study> create(const Path& folder, Definition definition,
                              std::span<const StudyTrial> prior = {});
  /// NotFound without a study, Corrupt for a damaged study.json.
  static Result<Study> open(const Path& folder);
  /// A study whose trials are in a storage. `folder`: for the output of trials that run here; `prior`: as for
  /// create().
  static Result<Study> open(std::unique_ptr<StudyStorage> storage, const Path& folder, Definition definition,
                            std::vector<StudyTrial> prior);
  /// Whether the folder has a study.
  static bool is_in(const Path& folder);

  const Definition& definition() const { return definition_; }
  const Path& folder() const { return folder_; }
  /// What open_study() opens again: the folder, or the address in a storage.
  std::string location() const;
  /// Whether its trials are in a storage.
  bool is_stored() const { return storage_ != nullptr; }
  /// Creates the folder for runs of trials of a storage, once. Invalid if the folder has the runs of a
  /// different study, whose trials have the same numbers. Does nothing for a study in a folder.
  Status bind_folder();
  /// A name for it on this cluster. Two folders that share a study of a storage have different names.
  /// REQUIRES: bind_folder().
  const std::string& folder_id() const { return storage_ ? storage_->folder_id() : definition_.id; }
  /// Whether a run of the trial would be in this folder.
  bool is_of_folder(const StudyTrial& trial) const;
  /// Opens a journal of this name for this process, in place of one by host and job: StudyTrial::worker of
  /// its trials. Exists while another process of this host uses the name. REQUIRES: no two hosts use the name
  /// at the same time, nothing was written through this object, and bind_folder().
  Status set_worker(std::string name);
  /// Reads what other workers appended.
  Status refresh();
  /// As of the last refresh(), ask(), report() or tell(), in order of their numbers. Numbers may be missing:
  /// of a process that was killed while it asked.
  std::span<const StudyTrial> trials() const { return trials_; }
  /// The trial with this number, or null.
  const StudyTrial* find(TrialNumber number) const;
  /// Complete trials of other studies, which the sampler knows beforehand.
  std::span<const StudyTrial> prior() const { return prior_; }

  /// Starts a trial, or nullopt when every point of the space was tried, or Definition::most_trials are
  /// running or have ended without a failure.
  Result<std::optional<Proposal>> ask();
  /// Whether the last ask() returned nullopt because of Definition::most_trials.
  bool is_full() const { return is_full_; }
  /// Whether a later ask() may return a trial although the last one returned nullopt: a process has just
  /// claimed a trial, and may have been killed before it started it.
  bool is_undecided() const { return has_young_claim_; }
  /// Starts another attempt of a trial that ended without a value, in a storage as a trial with a new number.
  /// NotFound; Invalid if it is running, complete or pruned; Exists if another worker started that attempt,
  /// or has tried to within a minute.
  Result<Proposal> retry(TrialNumber number);
  /// Whether a trial of a storage was started again, with a new number.
  bool was_retried(TrialNumber number) const;
  /// Records the metric of a running trial, and returns whether the pruner stops it. Its process then ends it
  /// as pruned. NotFound; Invalid if it is not running.
  Result<bool> report(TrialNumber number, std::int64_t step, double value);
  /// Ends a running trial. A value that is not finite makes it a failed one. NotFound; Invalid for a wrong
  /// number of values and for a trial that has ended.
  Status tell(TrialNumber number, TrialEnding ending);
  /// Lines of journals that cannot be read, with the first such journal. They are left out.
  std::uint64_t damaged() const;
  std::string first_damaged() const;
  /// Trials of a storage that are not points of the space. They are left out.
  std::uint64_t outside() const;

 private:
  Study(Path folder, Definition definition);
  Status read_prior();
  Status make_samplers();
  History history() const { return {definition_.space, goals_, trials_, prior_}; }
  // Opens this process's journal at the first append.
  Status append(const Record& record);
  Status ensure_journal();
  Status open_journal();
  Status use_journal(const std::string& name, Fd slot);
  // False if the start of its trial was not read yet.
  bool apply(const Record& record);
  bool apply(const TrialStart& record);
  bool apply(const SkippedPoints& record);
  bool apply(const TrialReport& record);
  bool apply(const SeedResult& record);
  bool apply(const TrialEnd& record);
  Result<StudyTrial*> find_running(TrialNumber number);
  Status record_seeds(const StudyTrial& trial, const SeedValues& seeds);

  // Whether this process got the name. False if another one has it.
  Result<bool> claim(const std::string& name) const;
  Result<bool> claim_or_take_over(const std::string& base);
  Result<TrialNumber> claim_number();
  Result<std::optional<Coordinates>> propose_first(std::string& origin);
  Result<std::optional<Coordinates>> propose_cell(std::string& origin, std::uint64_t& skipped);
  Result<std::optional<Coordinates>> propose_by_sampler(TrialNumber number, std::uint64_t& skipped);
  Result<std::optional<Coordinates>> propose_by_optuna(TrialNumber number, std::string& state,
                                                       std::uint64_t& skipped);
  Result<std::optional<Coordinates>> propose_untried() const;
  Result<bool> claim_start();
  bool was_tried(const Coordinates& point) const;
  Result<Proposal> start(TrialStart record);
  double now() const;

  Status refresh_from_storage();
  void put(StudyTrial trial);
  bool is_over_limit(TrialNumber number) const;
  Result<std::optional<Proposal>> ask_storage();
  Result<std::optional<Coordinates>> point_of(const BegunTrial& begun, StudyTrial& trial);
  Result<Proposal> retry_in_storage(const StudyTrial& earlier);

  Path folder_;
  Definition definition_;
  std::vector<Goal> goals_;
  std::unique_ptr<Sampler> sampler_;  // unless optuna_ proposes
  std::unique_ptr<OptunaProposer> optuna_;
  std::unique_ptr<StudyStorage> storage_;  // null: the folder
  std::vector<StudyTrial> trials_;
  std::vector<StudyTrial> prior_;
  std::map<std::string, JournalReader, std::less<>> readers_;
  std::vector<Record> waiting_;  // whose start was not read yet
  JournalFile writer_;
  Fd slot_;
  std::string worker_;   // a chosen name
  std::string journal_;  // the name in use
  int writer_process_ = 0;
  RealClock clock_;
  double last_sync_ = 0;
  bool is_full_ = false;
  bool has_young_claim_ = false;
};

}  // namespace stoker::sweep
