// The faults in force in a lab, one small file each in <lab>/faults. Used by cause and heal. Thread-safe: one
// file per fault, written and removed in one step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/lab.h"

namespace stoker::lab::fault {

/// A fault that was caused, or was about to be when its process died.
struct Entry {
  std::string id;                            ///< the file's name without ".json"; sorts by time
  std::string kind;                          ///< "cut"
  std::string target;                        ///< "n3", "controller", "shared", "812"
  int rank = -1;                             ///< of a job
  std::string text;                          ///< what was done: "link down"
  double time = 0;                           ///< Unix seconds
  std::map<std::string, std::string> notes;  ///< what undoing it needs

  /// The note of that name, or "".
  std::string note(const std::string& name) const;
};

/// Gives the entry an id and a time and writes it. From then on heal undoes it.
Status record(const Lab& lab, Entry* entry);
/// Replaces what was written: more is known now.
Status update(const Lab& lab, const Entry& entry);
Status forget(const Lab& lab, const Entry& entry);
/// All entries, the oldest first. A file that is none is Corrupt, naming it.
Result<std::vector<Entry>> in_force(const Lab& lab);

}  // namespace stoker::lab::fault
