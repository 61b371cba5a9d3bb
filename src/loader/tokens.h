// Cuts token files of any length into sequences of one length: the documents of a split, concatenated in
// packed order. A file is tokens only, or a .npy array of one dimension. Used by the loader. Immutable,
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
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

/// The layout of the documents' files.
struct TokenFile {
  DType stored = DType::u16;
  std::uint64_t header = 0;  ///< bytes before the tokens: the same in all files of a split
  bool is_npy = false;
};

/// Whether files of this component are .npy by their name.
bool is_npy_name(std::string_view component);

class TokenTable {
 public:
  /// `component` names the documents' files. `source` must outlive the table. Reads the beginning of the
  /// first document, and of .npy files that are not read whole later. Fails with Invalid for invalid options,
  /// too few tokens for one sequence, or files that hold no tokens; with Corrupt naming a sample whose file
  /// is not a whole number of tokens or has another header.
  static Result<TokenTable> create(const dataset::ShardSource& source, std::uint16_t component,
                                   const TokenOptions& options);

  const TokenFile& file() const { return file_; }

  /// The tokens left over at the end of the split are in no sequence.
  std::uint64_t sequences() const { return sequences_; }
  /// Sequences that begin before sample number `sample`.
  std::uint64_t sequences_before(std::uint64_t sample) const;
  std::uint64_t tokens() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Adds the spans of sequence number `sequence`. REQUIRES: below sequences().
  void spans(std::uint64_t sequence, std::vector<TokenSpan>& out) const;

 private:
  TokenTable(const dataset::ShardSource& source, std::uint16_t component, const TokenOptions& options)
      : source_(&source), options_(options), component_(component) {}
  Status find_layout();
  Result<std::uint64_t> count_tokens(std::uint64_t sample, const dataset::Locator& file) const;

  const dataset::ShardSource* source_;
  TokenOptions options_;
  TokenFile file_;
  std::uint16_t component_ = 0;
  std::vector<std::uint64_t> ends_;  // tokens up to the end of each document
  std::uint64_t sequences_ = 0;
};

/// The sample's file of that component, or nothing.
std::optional<dataset::Locator> find_component(const dataset::SampleTable& samples, std::uint64_t sample,
                                               std::uint16_t component);

/// A longer document is read in parts, without its CRC, which covers the whole document.
inline constexpr std::uint64_t kWholeDocument = 256u << 10;

/// Corrupt when the .npy file of `file_bytes` that begins with `beginning` has another layout.
Status check_npy_tokens(std::span<const std::byte> beginning, std::uint64_t file_bytes,
                        const TokenFile& layout);

/// Widens tokens to the element type at `out`. False when one does not fit it.
bool widen_tokens(DType stored, DType element, std::span<const std::byte> tokens, std::byte* out);

}  // namespace stoker::loader
