// A study in a storage of Optuna, read and written by Optuna itself (optuna/bridge.h). Belongs to one thread;
// after fork() the child may use it, too.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sweep/storage/storage_url.h"
#include "sweep/study/study.h"

namespace stoker::sweep {

/// What a sweep file asks for.
struct WantedStudy {
  Definition definition;
  std::vector<StudyTrial> prior;  ///< only for a study that is created
};

/// A study of a storage, and whether it was created.
struct StoredStudy {
  Study study;
  bool is_new = false;
};

/// Whether the storage has the study.
Result<bool> has_stored_study(const StorageUrl& url);

/// Opens the study, or creates the wanted one. `folder`: for the output of trials that run here. A study that
/// an Optuna user created has the wanted definition, or without one the space of its trials and sampler auto.
/// NotFound without the study, and for a study of an Optuna user without a trial; Invalid for other
/// objectives than its own.
Result<StoredStudy> open_stored_study(const StorageUrl& url, const Path& folder, const WantedStudy* wanted,
                                      MissingStudy missing);

}  // namespace stoker::sweep
