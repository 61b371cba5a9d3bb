// The faults one by one: how each is caused and undone. Used by fault.cc only, which keeps the journal: what
// causes a fault gets an entry that is written already, and what undoes one may find it undone. Blocking.
#pragma once

#include <string>

#include "base/time.h"
#include "lab/fault/fault.h"
#include "lab/fault/journal.h"

namespace stoker::lab::fault {

/// Checks a request and fills in the entry (target, rank, text, notes) without changing anything.
using Prepare = Status (*)(const Lab& lab, const Request& request, Entry* entry);
/// Causes what the entry says; may change its text and notes.
using Act = Status (*)(Lab& lab, Entry* entry);
/// Undoes it and tells in one line what became of it, without the target: "link up".
using Undo = Result<std::string> (*)(Lab& lab, const Entry& entry);

/// Kill and freeze: of a node's slurmd, of slurmctld, or of a rank. A killed rank cannot be undone.
Status prepare_signal(const Lab& lab, const Request& request, Entry* entry);
Status send_signal(Lab& lab, Entry* entry);
Result<std::string> undo_signal(Lab& lab, const Entry& entry);

/// Cables: namespaces mode only.
Status prepare_cut(const Lab& lab, const Request& request, Entry* entry);
Status cut(Lab& lab, Entry* entry);
Result<std::string> undo_cut(Lab& lab, const Entry& entry);
Status prepare_slow(const Lab& lab, const Request& request, Entry* entry);
Status slow(Lab& lab, Entry* entry);
Result<std::string> undo_slow(Lab& lab, const Entry& entry);

/// Disks: only those of which little is left to fill.
Status prepare_fill(const Lab& lab, const Request& request, Entry* entry);
Status fill(Lab& lab, Entry* entry);
Result<std::string> undo_fill(Lab& lab, const Entry& entry);

/// Slurm's own words against a node or a job.
Status prepare_drain(const Lab& lab, const Request& request, Entry* entry);
Status drain(Lab& lab, Entry* entry);
Result<std::string> undo_drain(Lab& lab, const Entry& entry);
Status prepare_expire(const Lab& lab, const Request& request, Entry* entry);
Status expire(Lab& lab, Entry* entry);
Result<std::string> undo_expire(Lab& lab, const Entry& entry);
Status prepare_preempt(const Lab& lab, const Request& request, Entry* entry);
Status preempt(Lab& lab, Entry* entry);
Result<std::string> undo_preempt(Lab& lab, const Entry& entry);
Status prepare_oom(const Lab& lab, const Request& request, Entry* entry);
Status oom(Lab& lab, Entry* entry);

}  // namespace stoker::lab::fault
