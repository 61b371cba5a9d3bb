// The forms of a report. All say the same, from the same facts. Used by `stoker report`. Thread-safe: no
// state.
#pragma once

#include <span>
#include <string>

#include "report/facts.h"

namespace stoker::report {

/// The result in one sentence: "resnet20 on cifar10: 61.2 % top-1 after 3 epochs, 2 min 11 s, 2 ranks,
/// resumed once".
std::string result_sentence(const RunFacts& facts);
/// For a terminal: at most a few screens, no control bytes but line ends.
std::string to_plain_text(std::span<const RunFacts> runs);
/// {"format": "stoker-report", "version": 1, "runs": [...]}: fields in docs/commands/report.md.
std::string to_json(std::span<const RunFacts> runs);
/// One page that needs no other file and no network, under a content policy that allows neither.
std::string to_html(std::span<const RunFacts> runs);

}  // namespace stoker::report
