// Fault injection in a lab. Each fault is recorded in the lab's folder before it is injected, so that any
// later process can undo it. Used by `stoker lab fault`. One process at a time should change a lab; objects
// are values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/fault/journal.h"
#include "lab/lab.h"
#include "stoker/time.h"

namespace stoker::lab::fault {

/// A kind of fault, as listed by `stoker lab fault`.
struct FaultKind {
  std::string_view name;     ///< "cut"
  std::string_view targets;  ///< valid targets: "NODE", "NODE, controller, JOB --rank N"
  std::string_view what;     ///< its effect, one line
};
/// All kinds, in display order.
std::span<const FaultKind> kinds();

/// How a link is slowed; zero disables a field.
struct LinkImpairment {
  std::uint64_t bits_per_s = 0;
  Duration delay{};  ///< added each way
  double loss = 0;   ///< of packets, 0 to 1, each way
};

/// A fault to inject.
struct FaultRequest {
  std::string kind;
  std::string target;       ///< a node's name, "controller", "shared", or a job id
  std::optional<int> rank;  ///< of the job
  LinkImpairment impairment;
  Duration after{};  ///< for expire: the new limit relative to now
};

/// A fault that was injected.
struct InjectedFault {
  std::string text;         ///< one line: "n3: link down"
  std::string heal_target;  ///< the argument of `heal`; empty if the fault cannot be undone
};

/// Injects a fault. Invalid or NotFound, without effect, for an invalid request; Exists if it is already
/// active. Blocks until it is active, at most about a minute.
Result<InjectedFault> inject(Lab& lab, const FaultRequest& request);

/// The result of healing.
struct HealResult {
  std::vector<std::string> lines;  ///< one for each: "n3: link up"
  std::vector<Status> failures;    ///< these stay active
};
/// Undoes all faults of a target (node, "controller", "shared", job id), or of the lab for "". Waits until a
/// healed daemon responds to Slurm. NotFound if a named target has no faults.
Result<HealResult> heal(Lab& lab, std::string_view target);

/// Reads "10mbit", "500kbit", "1gbit": bits per second.
Result<std::uint64_t> parse_rate(std::string_view text);
/// "10mbit".
std::string rate_text(std::uint64_t bits_per_s);
/// Reads "1%", "0.5%": a share between 0 and 1.
Result<double> parse_loss(std::string_view text);

}  // namespace stoker::lab::fault
