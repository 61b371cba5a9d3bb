// Sequences of one length out of token files of any length: the documents of a split, one behind the other
// in packed order, cut into sequences. Used by the loader. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"
#include "format/shard_source.h"

namespace stoker::data {

struct TokenOptions {
  std::uint32_t length = 1024;  ///< tokens that are a sequence's own: 1 to 2^24
  std::uint32_t ahead = 1;      ///< that it shares with the next one: what the model is to predict
  DType stored = DType::u16;    ///< u8, u16, u32, i32 or i64, little-endian
  DType element = DType::i64;   ///< in the batch: i32 or i64

  bool operator==(const TokenOptions&) const = default;
};

/// A part of one document that belongs to a sequence.
struct TokenSpan {
  std::uint64_t sample = 0;  ///< the document
  formats::Locator file;
  std::uint64_t from = 0;  ///< its first token, within the document
  std::uint64_t count = 0;
  std::uint64_t to = 0;  ///< where it goes in the sequence
};

class TokenTable {
 public:
  /// `component` names the documents' files. `samples` must outlive the table. Fails with Invalid when
  /// options make no sense or all tokens do not fill one sequence, with Corrupt naming a sample without that
  /// file, or with one that holds no whole number of tokens.
  static Result<TokenTable> create(const formats::SampleTable& samples, std::uint16_t component,
                                   const TokenOptions& options);

  /// The tokens left over at the end of the split are in no sequence.
  std::uint64_t sequences() const { return sequences_; }
  /// Those that begin before sample number `sample`.
  std::uint64_t sequences_before(std::uint64_t sample) const;
  std::uint64_t tokens() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Adds what sequence number `sequence` is made of. REQUIRES: below sequences().
  void spans(std::uint64_t sequence, std::vector<TokenSpan>& out) const;

 private:
  TokenTable(const formats::SampleTable& samples, std::uint16_t component, const TokenOptions& options)
      : samples_(&samples), options_(options), component_(component) {}

  const formats::SampleTable* samples_;
  TokenOptions options_;
  std::uint16_t component_ = 0;
  std::vector<std::uint64_t> ends_;  // tokens up to the end of each document
  std::uint64_t sequences_ = 0;
};

/// The sample's file of that kind, or nothing.
std::optional<formats::Locator> find_component(const formats::SampleTable& samples, std::uint64_t sample,
                                               std::uint16_t component);

/// Widens tokens to the element type at `out`. False when one does not fit it.
bool widen_tokens(DType stored, DType element, std::span<const std::byte> tokens, std::byte* out);

}  // namespace stoker::data
