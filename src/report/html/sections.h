// The sections of a run's page as HTML; "" if there is no content. For page.cc only.
#pragma once

#include <string>

#include "report/facts.h"

namespace stoker::report::html {

/// The result sentence, the command, and the key figures.
std::string header(const RunFacts& facts);
std::string attempts_section(const RunFacts& facts);
std::string learning_section(const RunFacts& facts);
/// Metrics that the program logged.
std::string metrics_section(const RunFacts& facts);
std::string time_section(const RunFacts& facts);
std::string traced_section(const RunFacts& facts);
std::string machine_section(const RunFacts& facts);
std::string checkpoints_section(const RunFacts& facts);
std::string logs_section(const RunFacts& facts);
std::string facts_section(const RunFacts& facts);
std::string rerun_section(const RunFacts& facts);
/// The tasks of an array.
std::string tasks_sections(const RunFacts& facts);
std::string notes_section(const RunFacts& facts);

}  // namespace stoker::report::html
