// What one tracker has received of a run: RUN/track/<tracker>.json, replaced by rename after each delivery.
// Format: docs/formats/track.md. Values; one writer per file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "stoker/status.h"
#include "track/run/point_reader.h"

namespace stoker::track {

struct TrackState {
  std::uint64_t delivered = 0;  ///< points
  std::uint64_t refused = 0;    ///< points and params that the tracker does not accept
  Positions done;
  std::uint64_t batch = 0;           ///< number of the last batch
  std::optional<Positions> pending;  ///< ends of that batch until its delivery is confirmed
  std::map<std::string, std::string, std::less<>> values;  ///< of the tracker: its run id, its file

  /// The value, or "".
  std::string value(std::string_view key) const;
};

/// An empty state if the file does not exist. Corrupt for a damaged file or an unknown version.
Result<TrackState> load_state(const Path& file);
Status save_state(const Path& file, const TrackState& state);

}  // namespace stoker::track
