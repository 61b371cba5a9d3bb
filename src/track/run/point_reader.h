// All points of a run in the order of its files: points of programs, steps and epochs of the trainer, samples
// of the nodes, of all attempts and ranks. Reads behind stored positions, so that a reader that is killed
// continues exactly. Reads while the run writes: a line counts when it is complete. One thread; bounded
// memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "record/media/media.h"
#include "record/points/points.h"
#include "record/run_folder.h"

namespace stoker::track {

/// What was read of one file.
struct FilePosition {
  std::uint64_t offset = 0;  ///< bytes
  double sampled = 0;        ///< of a node's samples: the time of the last used row, Unix seconds

  friend bool operator==(const FilePosition&, const FilePosition&) = default;
};
/// By path in the run folder: "attempts/1/points-0000.csv".
using Positions = std::map<std::string, FilePosition, std::less<>>;

/// Rows of samples closer than this to the last used row are skipped: trackers store one row for each metric.
inline constexpr double kSampleInterval_s = 10;

struct TrackedPoint {
  int attempt = 0;
  std::optional<int> rank;           ///< nullopt: a sample of a node, whose number is in the name
  double time = 0;                   ///< Unix seconds; that of the run's creation if unknown
  std::optional<std::int64_t> step;  ///< nullopt: a summary value. Of a sample: seconds since the creation
  double value = 0;
  std::string name;  ///< "loss", "system/node0/host_cpu_percent"
};

/// "loss" for rank 0, "rank3/loss" for rank 3.
std::string name_with_rank(const TrackedPoint& point);

/// An image or a histogram.
struct TrackedMedia {
  int attempt = 0;
  int rank = 0;
  record::MediaRecord record;  ///< its time is that of the run's creation if unknown

  /// "samples" for rank 0, "rank3/samples" for rank 3.
  std::string name() const;
};

/// Of a histogram, for trackers that show none: count, mean, lowest and highest value as points
/// "weights/mean", ... Empty for an image.
std::vector<TrackedPoint> points_of(const TrackedMedia& media);
/// Path for the file of an image: "samples/step-000000120.png". Of attempt 2 "step-000000120-attempt2.png".
Path file_path_of(const TrackedMedia& media);

struct PointBatch {
  std::vector<TrackedPoint> points;
  std::vector<TrackedMedia> media;
  std::size_t media_weight = 0;  ///< points that the media count as, for the limit of a batch
  Positions ends;                ///< of the files that were read
  std::size_t damaged = 0;       ///< lines that were skipped

  bool is_empty() const { return ends.empty(); }
  /// Whether only lines without content were read.
  bool has_content() const { return !points.empty() || !media.empty(); }
  std::size_t size() const { return points.size() + media.size(); }
};

class PointReader {
 public:
  /// Of an array, only the points of `task`, as points of rank 0.
  explicit PointReader(record::RunFolder run, std::optional<std::uint32_t> task = {})
      : run_(std::move(run)), task_(task) {}

  /// Lists the files of the run: read() then starts with the first one.
  void begin_pass(const Positions& done);
  /// The next points behind `done`, about `limit` of them: a row of a table is never divided, and an image or
  /// a histogram counts as one for each 64 bytes. An empty batch ends the pass.
  PointBatch read(const Positions& done, std::size_t limit);
  /// The points of an earlier batch.
  PointBatch read_again(const Positions& done, const Positions& ends);

  /// A file of the run with points.
  struct Source {
    enum class Kind { points, steps, epochs, samples, media };
    std::string key;
    Path path;
    int attempt = 0;
    Kind kind = Kind::points;
    int number = 0;  ///< of the rank or node
    record::PointSource origin = record::PointSource::program;
    bool has_siblings = false;  ///< its rank has several files of points
  };

 private:
  using NamesOfRank = std::map<std::string, record::PointSource, std::less<>>;

  void list_attempt(const record::Attempt& attempt);
  void read_old_names(const Source& source, std::uint64_t end);
  bool read_source(const Source& source, std::uint64_t until, std::size_t limit, FilePosition& at,
                   PointBatch& batch);
  void read_line(const Source& source, std::string_view line, FilePosition& at, PointBatch& batch);
  void read_point(const Source& source, std::string_view line, PointBatch& batch);
  void read_media(const Source& source, std::string_view line, PointBatch& batch);
  void read_row(const Source& source, std::string_view line, FilePosition& at, PointBatch& batch);
  const std::vector<std::string>& columns_of(const Source& source, std::uint64_t end);
  bool counts(const Source& source, std::string_view metric);

  record::RunFolder run_;
  std::optional<std::uint32_t> task_;
  std::vector<Source> sources_;
  std::size_t current_ = 0;
  std::map<std::string, std::vector<std::string>, std::less<>> columns_;  // of tables, by key
  std::map<std::pair<int, int>, NamesOfRank> names_;                      // by attempt and rank
  std::map<std::string, bool, std::less<>> has_old_names_;                // by key
  File open_;
  std::string open_key_;
};

}  // namespace stoker::track
