// The implementation of each fault. Used by fault.cc only, which keeps the journal: an action gets an entry
// that is already written, and an undo may run twice. Blocking.
#pragma once

#include <string>

#include "lab/fault/fault.h"
#include "lab/fault/journal.h"
#include "stoker/time.h"

namespace stoker::lab::fault {

/// Checks a request and fills in the entry (target, rank, text, notes) without changing anything.
using Prepare = Status (*)(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
/// Injects the fault of the entry; may change its text and notes.
using Act = Status (*)(Lab& lab, JournalEntry* entry);
/// Undoes it and returns the result in one line, without the target: "link up".
using Undo = Result<std::string> (*)(Lab& lab, const JournalEntry& entry);

/// Kill and freeze a node's slurmd, slurmctld, or a rank. A killed rank cannot be healed.
Status prepare_signal(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
Status send_signal(Lab& lab, JournalEntry* entry);
Result<std::string> undo_signal(Lab& lab, const JournalEntry& entry);

/// Network links: namespaces mode only.
Status prepare_cut(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
Status cut(Lab& lab, JournalEntry* entry);
Result<std::string> undo_cut(Lab& lab, const JournalEntry& entry);
Status prepare_slow(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
Status slow(Lab& lab, JournalEntry* entry);
Result<std::string> undo_slow(Lab& lab, const JournalEntry& entry);

/// Disks: only with little free space.
Status prepare_fill(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
Status fill(Lab& lab, JournalEntry* entry);
Result<std::string> undo_fill(Lab& lab, const JournalEntry& entry);

/// Slurm commands that affect a node or a job.
Status prepare_drain(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
Status drain(Lab& lab, JournalEntry* entry);
Result<std::string> undo_drain(Lab& lab, const JournalEntry& entry);
Status prepare_expire(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
Status expire(Lab& lab, JournalEntry* entry);
Result<std::string> undo_expire(Lab& lab, const JournalEntry& entry);
Status prepare_preempt(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
Status preempt(Lab& lab, JournalEntry* entry);
Result<std::string> undo_preempt(Lab& lab, const JournalEntry& entry);
Status prepare_oom(const Lab& lab, const FaultRequest& request, JournalEntry* entry);
Status oom(Lab& lab, JournalEntry* entry);

}  // namespace stoker::lab::fault
