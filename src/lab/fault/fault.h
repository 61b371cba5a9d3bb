// Faults of a lab: what breaks on real clusters, caused on purpose and undone again. Each is written to the
// lab's folder before it is caused, so that any later process can undo it. Used by `stoker lab fault`.
// One process at a time should change a lab; objects are values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "lab/fault/journal.h"
#include "lab/lab.h"

namespace stoker::lab::fault {

/// One kind of fault, as people are shown it.
struct Kind {
  std::string_view name;     ///< "cut"
  std::string_view targets;  ///< what it may be done to: "NODE", "NODE, controller, JOB --rank N"
  std::string_view what;     ///< what it does, one line
};
/// All kinds, in the order in which a class meets them.
std::span<const Kind> kinds();

/// How a link is slowed; zero: not in that way.
struct Slowness {
  std::uint64_t bits_per_s = 0;
  Duration delay{};  ///< added each way
  double loss = 0;   ///< of packets, 0 to 1, each way
};

/// What to do to whom.
struct Request {
  std::string kind;
  std::string target;       ///< a node's name, "controller", "shared", or a job id
  std::optional<int> rank;  ///< of the job
  Slowness slowness;
  Duration after{};  ///< for expire: how far ahead the limit is set
};

/// What was done.
struct Done {
  std::string text;       ///< one line: "n3: link down"
  std::string heal_name;  ///< what `heal` takes to undo it; empty when nothing can be undone
};

/// Causes a fault. Invalid or NotFound, and nothing changed, when the request makes no sense; Exists when it
/// is in force already. Blocks until it is in force, at most about a minute.
Result<Done> cause(Lab& lab, const Request& request);

/// What became of the faults that were to be undone.
struct Healed {
  std::vector<std::string> lines;  ///< one for each: "n3: link up"
  std::vector<Status> failures;    ///< those stay in force
};
/// Undoes all faults of a target (node, "controller", "shared", job id), or all of the lab for "". Waits
/// until Slurm hears a healed daemon again. NotFound when the target has none; nothing to do is no error for
/// "".
Result<Healed> heal(Lab& lab, std::string_view target);

/// Reads "10mbit", "500kbit", "1gbit": bits per second.
Result<std::uint64_t> parse_rate(std::string_view text);
/// "10mbit".
std::string rate_text(std::uint64_t bits_per_s);
/// Reads "1%", "0.5%": a share between 0 and 1.
Result<double> parse_loss(std::string_view text);

}  // namespace stoker::lab::fault
