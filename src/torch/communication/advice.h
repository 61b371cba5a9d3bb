// What measured exchanges say about the settings that could make them cheaper. No libtorch. Pure functions
// over plain values, used by the trainer when it ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stoker::torch {

/// What one rank measured, as means over its steps.
struct ExchangeFacts {
  double step_s = 0;
  double waited_s = 0;  ///< part of it that the rank stood still for others
};

/// What all ranks share.
struct ExchangeSettings {
  std::vector<std::int64_t> buckets;  ///< bytes of each gradient bucket
  bool is_compressed = false;         ///< train.compress_gradients is not none
};

/// One sentence with its measure, and the setting that pays most, or that none does; empty when the waiting
/// is less than a twentieth of the steps, or nobody measured anything.
///
/// The rank that waits least came last to nearly every exchange: what it waits is what moving the bytes
/// costs. What others wait beyond that they wait for slower ranks, which no setting of exchanges makes
/// faster.
std::string advise(std::span<const ExchangeFacts> ranks, const ExchangeSettings& settings);

/// A rank's facts as it sends them to rank 0, and back; nothing when the text is none.
std::string facts_text(const ExchangeFacts& facts);
ExchangeFacts parse_facts(const std::string& text);

}  // namespace stoker::torch
