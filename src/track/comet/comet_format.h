// The messages of an offline archive of Comet, one a line of JSON, with the files that they name:
// messages.json as comet_ml 3.58 writes and reads it. A run has several archives with one experiment key, and
// each point is in one of them. One thread.
// https://www.comet.com/docs/v2/api-and-sdk/python-sdk/reference/OfflineExperiment/
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "track/files/file_format.h"

namespace stoker::track {

/// The same for all attempts of the run.
std::string comet_experiment_key(const TrackedRun& run);
/// Below the folder of the trackers, without ".zip": "comet/<key>-001". `number`: from 1.
Path comet_archive_name(const TrackedRun& run, std::uint64_t number);
/// experiment.json of an archive. The first archive of a run makes the experiment.
std::string comet_experiment_json(const TrackedRun& run, const std::string& project, std::uint64_t number);
/// The bin of comet_ml.utils.Histogram that contains `value`: bins grow by 10 % on both sides of 0.
int comet_bin(double value);

class CometFormat final : public FileFormat {
 public:
  explicit CometFormat(std::uint64_t number) : number_(number) {}
  Path path(const TrackedRun& run) const override;
  void head(const TrackedRun& run, std::string* out) override;
  void rows(const PointBatch& batch, FileEnd before, std::string* out) override;
  std::vector<SideFile> side_files(const PointBatch& batch, FileEnd before) override;
  void tail(const TrackedRun& run, FileEnd before, std::string* out) override;

 private:
  std::uint64_t number_;
  std::deque<std::string> histograms_;  ///< the side files of the last call have views of it
};

}  // namespace stoker::track
