// Reads a sample's source files and makes them what is packed: looks at images, makes them smaller or turns
// them where that is asked for, leaves out what is broken. Thread-safe: samples of one shard may be read by
// several threads.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/pack/pack.h"
#include "data/pack/source/tree.h"

namespace stoker::data {

struct ImageVerdict;

/// Told after each source file, from any thread: its bytes. False: stop.
using FileDone = std::function<bool(std::uint64_t bytes)>;

/// One file of a sample.
struct ReadFile {
  const SourceFile* file = nullptr;
  std::string extension;
  bool is_image = false;
  bool is_held = false;  ///< else it is read in pieces when it is written
  FileBytes content;

  std::span<const std::byte> bytes() const { return content.bytes(); }
};

/// A sample as it was read. Keeps its memory for the next one.
class ReadSample {
 public:
  std::span<ReadFile> files() { return std::span(files_).first(count_); }
  std::span<const ReadFile> files() const { return std::span(files_).first(count_); }
  /// Begins another sample, of so many files.
  void begin(std::size_t count);
  /// Bytes of memory that are kept.
  std::size_t capacity() const;
  /// Gives up the memory of files larger than `most`.
  void drop_larger_than(std::size_t most);

  Status status;                    ///< why it could not be read
  formats::ImageStatistics images;  ///< of its good images
  std::vector<LeftOut> left_out;    ///< not empty: it is not packed

 private:
  std::vector<ReadFile> files_;
  std::size_t count_ = 0;
};

class SampleReader {
 public:
  /// `plan` must outlive it.
  SampleReader(const PackPlan& plan, FileDone done) : plan_(plan), done_(std::move(done)) {}

  void read(const SourceSample& sample, ReadSample& into) const;
  /// Whether packing goes on: asked between the pieces of a large file.
  bool goes_on() const { return done_(0); }

 private:
  Status load(const SourceSample& sample, ReadSample& into) const;
  Status load(const SourceFolder& folder, ReadFile& file) const;
  const ReadFile* look_at_images(const SourceFolder& folder, ReadSample& sample) const;
  void shrink(ReadFile& file, ImageVerdict& verdict, formats::ImageStatistics& images) const;
  void rewrite(ReadFile& file, ImageVerdict& verdict) const;
  void leave_out_rest(const SourceFolder& folder, const ReadFile& broken, ReadSample& sample) const;

  const PackPlan& plan_;
  FileDone done_;
};

}  // namespace stoker::data
