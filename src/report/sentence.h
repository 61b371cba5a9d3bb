// The result of a run in one sentence, and number formats of reports. Thread-safe: no state.
#pragma once

#include <string>

#include "report/facts.h"

namespace stoker::report {

/// The result in one sentence: "resnet20 on cifar10: 61.2 % top-1 after 3 epochs, 2 min 11 s, 2 ranks,
/// resumed once".
std::string result_sentence(const RunFacts& facts);
/// "done", "failed with exit code 7", ...
std::string state_text(const RunFacts& facts);

/// "61.2 %"; "-" for NaN.
std::string percent(double fraction);
/// Three or four significant digits: "0.0123", "1.85", "1 204"; "-" for NaN.
std::string significant(double value);
/// The same, with "nan" and "inf".
std::string metric_text(double value);
/// "2 min 11 s".
std::string seconds_text(double seconds);

}  // namespace stoker::report
