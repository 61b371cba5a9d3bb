// What differs between two groups of runs, and how their results differ. A group has one run, or several with
// different seeds. Used by `stoker compare`. Pure functions of facts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/compare/significance.h"
#include "report/facts.h"
#include "report/results.h"
#include "stoker/status.h"

namespace stoker::report {

/// In the order of their usual effect on a result.
enum class Aspect { data, parameters, code, software, hardware, other };
/// "data", "parameters", ...
std::string_view to_text(Aspect aspect);

/// A fact with different values. A group whose runs differ among each other has several: "1, 2, 3".
struct FactChange {
  Aspect aspect = Aspect::other;
  std::string what;    ///< "train.optimizer.lr", "commit", "torch"
  std::string before;  ///< "-" if it has none
  std::string after;
};

/// A result of the runs: the last value of a metric, or a speed.
struct ResultChange {
  std::string name;  ///< "validation loss", "samples/s", or as the program logged it
  Better better = Better::unknown;
  std::vector<double> before;  ///< of the runs that have it
  std::vector<double> after;
  std::optional<Significance> significance;

  double difference() const { return mean_of(after) - mean_of(before); }
  /// Of the mean before, with its sign; nan where that is 0.
  double relative_difference() const;
};

struct RunComparison {
  std::vector<std::string> before;  ///< run ids
  std::vector<std::string> after;
  std::vector<FactChange> changes;
  std::vector<ResultChange> results;
  std::vector<std::string> notes;  ///< what could not be compared
};

/// Neither group may be empty.
RunComparison compare(const std::vector<RunFacts>& before, const std::vector<RunFacts>& after);

/// A condition for continuous integration.
struct Guard {
  std::string metric;
  Better better = Better::unknown;  ///< unknown: by the metric's name
  double tolerance = 0;             ///< of the mean before: 0.01 for 1 %
};
/// Parses "accuracy", "loss:lower", "score:higher:1%". Invalid with what is wrong.
Result<Guard> parse_guard(std::string_view text);

struct GuardVerdict {
  bool is_met = true;
  std::string text;  ///< "loss: 3.2 % worse, at most 1 % is allowed"
};
/// Not met if the result is worse than allowed. With two or more runs on both sides, a difference that may be
/// chance is not worse. Invalid for a metric that the runs do not have, or whose good direction is unknown.
Result<GuardVerdict> check_guard(const Guard& guard, const RunComparison& comparison);

}  // namespace stoker::report
