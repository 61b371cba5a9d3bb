// Cuts token files of any length into sequences of one length: the documents of a split, concatenated in
// packed order. Used by the loader. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataset/shard_source.h"
#include "stoker/loader.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::loader {

/// The part of one document in a sequence.
struct TokenSpan {
  std::uint64_t sample = 0;  ///< the document
  dataset::Locator file;
  std::uint64_t from = 0;  ///< its first token, within the document
  std::uint64_t count = 0;
  std::uint64_t to = 0;  ///< destination in the sequence
};

class TokenTable {
 public:
  /// `component` names the documents' files. `samples` must outlive the table. Fails with Invalid for
  /// invalid options or too few tokens for one sequence, with Corrupt naming a sample whose file is missing
  /// or not a whole number of tokens.
  static Result<TokenTable> create(const dataset::SampleTable& samples, std::uint16_t component,
                                   const TokenOptions& options);

  /// The tokens left over at the end of the split are in no sequence.
  std::uint64_t sequences() const { return sequences_; }
  /// Sequences that begin before sample number `sample`.
  std::uint64_t sequences_before(std::uint64_t sample) const;
  std::uint64_t tokens() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Adds the spans of sequence number `sequence`. REQUIRES: below sequences().
  void spans(std::uint64_t sequence, std::vector<TokenSpan>& out) const;

 private:
  TokenTable(const dataset::SampleTable& samples, std::uint16_t component, const TokenOptions& options)
      : samples_(&samples), options_(options), component_(component) {}

  const dataset::SampleTable* samples_;
  TokenOptions options_;
  std::uint16_t component_ = 0;
  std::vector<std::uint64_t> ends_;  // tokens up to the end of each document
  std::uint64_t sequences_ = 0;
};

/// The sample's file of that component, or nothing.
std::optional<dataset::Locator> find_component(const dataset::SampleTable& samples, std::uint64_t sample,
                                               std::uint16_t component);

/// Widens tokens to the element type at `out`. False when one does not fit it.
bool widen_tokens(DType stored, DType element, std::span<const std::byte> tokens, std::byte* out);

}  // namespace stoker::loader
