// Reads the source files of a sample and prepares them for packing: checks, re-encodes and converts images,
// and leaves out broken ones. Thread-safe: several threads may read samples of one shard.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pack/pack.h"
#include "sources/files/tree.h"
#include "stoker/status.h"

namespace stoker::pack {

struct ImageVerdict;

/// Called with the bytes of each source file, from any thread. False: stop.
using FileDone = std::function<bool(std::uint64_t bytes)>;

/// One file of a sample.
struct LoadedFile {
  const sources::SourceFile* file = nullptr;
  std::string extension;
  bool is_image = false;
  bool is_held = false;  ///< else it is read in pieces while writing
  sources::FileBytes content;

  std::span<const std::byte> bytes() const { return content.bytes(); }
};

/// A loaded sample. Its memory is reused for the next one.
class LoadedSample {
 public:
  std::span<LoadedFile> files() { return std::span(files_).first(count_); }
  std::span<const LoadedFile> files() const { return std::span(files_).first(count_); }
  /// Starts a sample of `count` files.
  void begin(std::size_t count);
  /// Bytes of allocated memory.
  std::size_t capacity() const;
  /// Frees the memory of files larger than `most`.
  void drop_larger_than(std::size_t most);

  Status status;                           ///< of reading it
  dataset::ImageStatistics images;         ///< of its valid images
  std::vector<sources::LeftOut> left_out;  ///< not empty: the sample is not packed

 private:
  std::vector<LoadedFile> files_;
  std::size_t count_ = 0;
};

class SourceSampleReader {
 public:
  /// `plan` must outlive it.
  SourceSampleReader(const PackPlan& plan, FileDone done) : plan_(plan), done_(std::move(done)) {}

  void read(const sources::SourceSample& sample, LoadedSample& into) const;
  /// Whether packing continues: checked between the pieces of a large file.
  bool should_continue() const { return done_(0); }

 private:
  Status load(const sources::SourceSample& sample, LoadedSample& into) const;
  Status load(const sources::SourceFolder& folder, LoadedFile& file) const;
  const LoadedFile* check_images(const sources::SourceFolder& folder, LoadedSample& sample) const;
  void reencode(LoadedFile& file, ImageVerdict& verdict, dataset::ImageStatistics& images) const;
  void rewrite(LoadedFile& file, ImageVerdict& verdict) const;
  void exclude_rest(const sources::SourceFolder& folder, const LoadedFile& broken,
                    LoadedSample& sample) const;

  const PackPlan& plan_;
  FileDone done_;
};

}  // namespace stoker::pack
