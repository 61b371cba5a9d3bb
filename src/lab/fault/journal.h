// The active faults of a lab, one small file each in <lab>/faults. Used by inject and heal. Thread-safe:
// files are written and removed atomically.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/lab.h"

namespace stoker::lab::fault {

/// A fault that was injected, or was about to be when its process died.
struct JournalEntry {
  std::string id;                            ///< the file's name without ".json"; sorts by time
  std::string kind;                          ///< "cut"
  std::string target;                        ///< "n3", "controller", "shared", "812"
  int rank = -1;                             ///< of a job
  std::string text;                          ///< the effect: "link down"
  double time = 0;                           ///< Unix seconds
  std::map<std::string, std::string> notes;  ///< data for undoing it

  /// The note with this name, or "".
  std::string note(const std::string& name) const;
};

/// Assigns an id and a time and writes the entry. From then on heal undoes the fault.
Status write_entry(const Lab& lab, JournalEntry* entry);
/// Replaces a written entry.
Status update_entry(const Lab& lab, const JournalEntry& entry);
Status remove_entry(const Lab& lab, const JournalEntry& entry);
/// All entries, the oldest first. Corrupt, with the name, for an invalid file.
Result<std::vector<JournalEntry>> active_faults(const Lab& lab);

}  // namespace stoker::lab::fault
