// What decides how finished shards become a dataset, without the source they were made from. Lies beside the
// shards while they are packed, so that `stoker data merge` can end what several nodes began. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/pack/source.h"
#include "format/manifest.h"

namespace stoker::data {

struct ShardFacts;

struct ShardOutline {
  std::string file;  ///< "train-000000.tar"
  std::uint32_t split = 0;
};

struct Outline {
  std::string fingerprint;  ///< of everything that decides the result
  std::string source;       ///< what the user called it, for messages
  std::vector<std::string> splits;
  std::vector<std::string> classes;
  std::string container = "tar";
  formats::BlockHash hash = formats::BlockHash::sha256;
  bool has_labels = false;
  bool is_strict = false;
  double most_left_out_percent = 1;
  std::uint64_t files = 0;        ///< of the source, hidden ones not counted
  std::uint64_t shard_bytes = 0;  ///< what the shards will take, about
  std::uint32_t parts = 1;        ///< how many processes share the work, as the last of them said
  std::vector<LeftOut> left_out;  ///< when the source was listed
  std::optional<formats::SourceVersion> version;  ///< of the source
  std::vector<ShardOutline> shards;

  /// JSON with a checksum, and back. Corrupt for a damaged one.
  std::string encode() const;
  static Result<Outline> decode(std::string_view text, std::string_view subject);
};

/// What a dataset is, but for its index.
struct Assembly {
  formats::Manifest manifest;
  std::string index;
  std::string left_out_csv;  ///< empty if nothing was left out
  std::uint64_t left_out = 0;
};

/// Puts the facts of all shards together. Fails when too much was left out, when a split or a class has no
/// sample. `facts` are used up.
Result<Assembly> assemble(const Outline& outline, std::vector<ShardFacts>& facts);

/// Files of all reasons but kHidden.
std::uint64_t counted(const std::map<std::string, std::uint64_t>& left_out);

}  // namespace stoker::data
