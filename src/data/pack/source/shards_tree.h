// The files of a dataset, or of other tools' shards, as a source's tree. Read where they lie, and compared
// with the CRC-32C that an index has of each file, or that a record has of itself. Made and filled by one
// thread, read by many.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/pack/source/tree.h"

namespace stoker::data {

/// What tells that the bytes of a file are those that were written.
enum class Proof {
  none,    ///< tar has nothing for them
  file,    ///< the index has each file's CRC-32C
  record,  ///< the record has one of all its bytes
};

/// Where a file lies.
struct ShardPlace {
  std::uint32_t shard = 0;
  std::uint32_t crc32c = 0;  ///< Proof::file
  std::uint64_t offset = 0;
  std::uint64_t record_at = 0;  ///< Proof::record: the record that holds it, framing included
  std::uint64_t record_bytes = 0;
};

class ShardsTree final : public SourceTree {
 public:
  ShardsTree(Path folder, Proof proof, std::shared_ptr<Pace> pace);

  /// The number that a place has as its `shard`. `unpacked` is what is read in its stead.
  std::uint32_t add_shard(std::string file, std::uint64_t bytes, std::shared_ptr<const File> unpacked);
  /// The number that a SourceFile has as its `place`.
  std::uint64_t add_place(const ShardPlace& place);
  Proof proof() const { return proof_; }

  /// Nothing: samples come from an index and not from a walk.
  Result<Listing> list(const std::string& folder) const override;
  Status read(std::string_view folder, const SourceFile& file, FileBytes& into) const override;
  bool has_parts(const SourceFile& file) const override;
  /// The parts of a file must be asked for from front to back, by one thread: their CRCs add up.
  Status read_part(std::string_view folder, const SourceFile& file, std::uint64_t offset,
                   std::span<std::byte> out) const override;
  std::string shown(std::string_view path) const override;

 private:
  struct Shard {
    std::string file;
    std::uint64_t bytes = 0;
    std::shared_ptr<const File> unpacked;  // perhaps by several shards
  };

  std::string name_of(std::uint32_t shard) const;
  Result<const File*> open(std::uint32_t shard) const;
  Status check(std::string_view folder, const SourceFile& file, std::uint32_t found) const;
  Status read_from_record(const File& shard, const SourceFile& file, FileBytes& into) const;

  Path folder_;
  Proof proof_;
  std::shared_ptr<Pace> pace_;  // shared with whoever lists: one limit for all
  std::uint64_t number_;        // tells it from other trees in what threads keep
  std::vector<Shard> shards_;
  std::vector<ShardPlace> places_;
};

}  // namespace stoker::data
