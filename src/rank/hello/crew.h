// The processes of a `stoker hello`: one per rank on this machine, or one srun for all. Starts them, keeps
// what they and srun say, ends them. One thread.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/strong.h"
#include "rank/plan.h"

namespace stoker::rank::hello {

struct CrewOptions {
  Plan plan;
  std::vector<std::string> srun_options;  ///< beside those that every step gets
  Environment environment;
  Path stoker;  ///< the executable
  std::string invitation;
  Duration start_limit{0};  ///< within which a rank must have reached the session
};

/// The arguments of the one srun.
std::vector<std::string> srun_command(const CrewOptions& options);

class Crew {
 public:
  static Result<Crew> start(const CrewOptions& options);

  /// One line that one of them wrote.
  struct Line {
    std::optional<Rank> rank;  ///< empty: srun itself
    std::string text;
  };
  /// Reads what has come, without waiting; the new lines.
  std::vector<Line> look();
  /// Everything said so far, at most the last 200 lines.
  const std::vector<Line>& said() const { return said_; }
  /// True once all processes have ended: no rank will come any more.
  bool is_over() const;
  /// Ends all: SIGTERM, and SIGKILL after `grace`.
  void end(Duration grace);

 private:
  struct Worker {
    Child child;
    std::optional<Rank> rank;
    Fd output;
    std::string line;  // the beginning of one
    bool has_ended = false;
  };
  Status start_one(std::vector<std::string> argv, Environment environment, std::optional<Rank> rank);
  void read(Worker& worker, std::vector<Line>* lines);

  std::list<Worker> workers_;
  std::vector<Line> said_;
};

/// A line of srun's output: "2: cannot reach" is rank 2's.
Crew::Line labelled(std::string_view line);

}  // namespace stoker::rank::hello
