// Whether an error is final: what the log shows after it. Decides whether a cause may be called known. Pure
// functions. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "diagnose/suspect.h"

namespace stoker::diagnose {

/// What a line after an error shows about the process, in words. Frames, reports of launchers and further
/// errors show nothing: a failure prints them itself.
std::optional<AfterError> after_error_of(std::string_view line);

/// Whether the error ended its process, as far as the log shows. It is not final if the program reports a way
/// around it, if later lines of that process report work or a success that no failed end follows, or if its
/// training counts on. Errors of other processes, closing lines of the shell or Slurm, and output that a
/// buffer held back do not count. Records are final.
bool is_final(const Suspect& suspect);

/// Whether a later uncaught exception of the same process has nothing to do with the suspect: then either may
/// be the cause. `hits`: of the end of the logs.
bool is_disputed(const Suspect& suspect, const std::vector<Suspect>& hits);

/// Whether the script did its work in spite of a line of its shell, such as "module: command not found". The
/// word "done" alone is no work.
bool script_worked_after(const LogScan& log, const Hit& hit);

}  // namespace stoker::diagnose
