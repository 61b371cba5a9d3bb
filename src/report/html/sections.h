// The sections of one run's page, each a string of HTML or "" when there is nothing to say. For page.cc only.
#pragma once

#include <string>

#include "report/facts.h"

namespace stoker::report::html {

/// The sentence, when and what, and the few numbers that matter most.
std::string header(const RunFacts& facts);
std::string attempts_section(const RunFacts& facts);
std::string learning_section(const RunFacts& facts);
std::string time_section(const RunFacts& facts);
std::string traced_section(const RunFacts& facts);
std::string machine_section(const RunFacts& facts);
std::string checkpoints_section(const RunFacts& facts);
std::string logs_section(const RunFacts& facts);
std::string facts_section(const RunFacts& facts);
std::string again_section(const RunFacts& facts);
std::string notes_section(const RunFacts& facts);

}  // namespace stoker::report::html
