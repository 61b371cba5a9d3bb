// Logs and records in a temporary folder, for tests of explain_failure: "rank-0003.log" belongs to rank 3.
#pragma once

#include <string>

#include "base/file.h"
#include "diagnose/failure.h"
#include "stoker/text.h"

namespace stoker::diagnose {

class TestLogs {
 public:
  TestLogs& add(const std::string& name, const std::string& text, int rank = -1) {
    STOKER_CHECK(write_file(box_ / name, text).ok());
    facts.logs.push_back({.file = box_ / name, .name = name, .rank = rank});
    return *this;
  }
  TestLogs& record(const std::string& text, int rank = -1) {
    facts.records.push_back({"records", text, rank});
    return *this;
  }
  TestLogs& first(int rank) {
    facts.first_rank = rank;
    return *this;
  }
  TestLogs& without_slurm() {
    facts.job = "";
    facts.started_as = StartKind::local;
    return *this;
  }
  Diagnosis explain() const { return explain_failure(facts); }

  FailureFacts facts;

 private:
  TempDirectory box_;
};

inline const std::string kTraceback =
    "Traceback (most recent call last):\n  File \"train.py\", line 7, in load\n";

/// Lines with progress.
inline std::string steps(int count, const std::string& prefix = "") {
  std::string text;
  for (int i = 0; i < count; ++i) text += format("{}step {}: loss 0.5\n", prefix, i);
  return text;
}

inline Diagnosis explain_log(const std::string& text) {
  TestLogs logs;
  return logs.add("train.log", text).explain();
}

}  // namespace stoker::diagnose
