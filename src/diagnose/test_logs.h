// Logs and records in a temporary folder, for tests of explain_failure: "rank-0003.log" belongs to rank 3.
#pragma once

#include <string>

#include "base/file.h"
#include "diagnose/failure.h"

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

}  // namespace stoker::diagnose
