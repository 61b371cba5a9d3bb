// The processes of a `stoker hello`: one per rank on this machine, or one srun for all. Starts them, collects
// their output and srun's, ends them. One thread.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "rank/plan.h"
#include "stoker/status.h"
#include "stoker/strong.h"

namespace stoker::netcheck {

struct WorkerSetOptions {
  rank::Plan plan;
  std::vector<std::string> srun_options;  ///< in addition to the standard ones
  Environment environment;
  Path stoker;  ///< the executable
  std::string invitation;
  Duration start_limit{0};  ///< time for a rank to connect
};

/// The arguments of srun.
std::vector<std::string> srun_command(const WorkerSetOptions& options);

class WorkerSet {
 public:
  static Result<WorkerSet> start(const WorkerSetOptions& options);

  /// One line of output.
  struct Line {
    std::optional<Rank> rank;  ///< empty: srun itself
    std::string text;
  };
  /// Reads the available output without blocking and returns the new lines.
  std::vector<Line> poll_output();
  /// The last 200 lines of output.
  const std::vector<Line>& output() const { return output_; }
  /// True once all processes have ended: no further rank can join.
  bool is_over() const;
  /// Ends all of them with SIGTERM, and SIGKILL after `grace`.
  void end(Duration grace);

 private:
  struct Worker {
    Child child;
    std::optional<Rank> rank;
    Fd output;
    std::string line;  // an incomplete line
    bool has_ended = false;
  };
  Status start_one(std::vector<std::string> argv, Environment environment, std::optional<Rank> rank);
  void read(Worker& worker, std::vector<Line>* lines);

  std::list<Worker> workers_;
  std::vector<Line> output_;
};

/// Parses a line of srun's labelled output: "2: cannot reach" belongs to rank 2.
WorkerSet::Line parse_label(std::string_view line);

}  // namespace stoker::netcheck
