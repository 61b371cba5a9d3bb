// The tables of `stoker hello`: times of collectives, and how the GPUs of each node are connected. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/language/translator.h"
#include "netcheck/report.h"

namespace stoker::netcheck {

struct CheckTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  ///< empty: nothing to show
  std::vector<std::string> notes = {};         ///< lines below it
};

/// Stoker's own collectives over TCP.
CheckTable timing_table(const Report& report, const Translator& words);
/// All-reduces over NCCL, with speeds as in nccl-tests.
CheckTable gpu_timing_table(const Report& report, const Translator& words);
/// Pairs of GPUs. Pairs with the same connection share a row.
CheckTable gpu_link_table(const Report& report, const Translator& words);

}  // namespace stoker::netcheck
