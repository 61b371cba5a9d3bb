// How a study proceeds, for `stoker sweep status`, `stoker status` and `stoker top`.
#pragma once

#include <string>
#include <vector>

#include "sweep/study/study.h"

namespace stoker::cli {

class Output;

/// Prints counts, the best values, the pace, failures and running trials. `now`: Unix time in seconds.
void print_study_status(const sweep::Study& study, double now, Output& out);
/// The same as one JSON object.
std::string study_status_json(const sweep::Study& study, double now);

/// A study in one line, or why it cannot be read.
struct StudyLine {
  std::string folder;
  std::string text;      ///< "lr: minimize loss, sampler auto, 17 complete of 50, 2 running"
  std::string progress;  ///< "best loss 0.31 in trial 9, 120 trials/h, 15 min left"; may be empty
  std::string json;      ///< study_status_json(); empty if it cannot be read
  bool is_running = false;
};
/// The studies in the folders `*.study` of the current folder, by name.
std::vector<StudyLine> list_studies();

}  // namespace stoker::cli
