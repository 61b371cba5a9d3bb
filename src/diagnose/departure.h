// Which rank left its peers or never joined them, read from the lines of all ranks and of the launcher: for
// logs whose other lines only show that a peer is gone. Internal to this folder. Pure.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/root_cause.h"

namespace stoker::diagnose {

/// A log with one hit, which replaces the cause: the rank that finished or left first, that did not join, or
/// that is missing; or the task that ended first. Nothing if the lines do not show it.
std::optional<LogScan> departure_of(const std::vector<LogScan>& logs, const Choice& choice);

/// An error of a rank that its peers waited for, in place of their timeout at the start. Nothing without
/// one.
std::optional<Suspect> failure_before_timeout(const std::vector<LogScan>& logs, const Choice& choice);

}  // namespace stoker::diagnose
