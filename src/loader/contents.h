// The contents of a batch, and the files that each unit of the order needs for it. A unit is a sample, or
// with Content::tokens a sequence. Used by the loader. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset/shard_source.h"
#include "image/transform/transform.h"
#include "loader/tokens.h"
#include "stoker/loader.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"

namespace stoker::loader {

/// "sample 'cat/0042' (in shard 'train-000001.tar')".
std::string name_of(const dataset::ShardSource& source, std::uint64_t sample);

/// "2 x 3"; "one number" for no dimensions.
std::string shape_text(const Shape& shape);

/// Larger files are refused before memory is allocated for them.
inline constexpr std::uint64_t kLargestFile = 1u << 30;

/// One file, or a range of one, that a unit needs.
struct Part {
  enum class Purpose : std::uint8_t { image, bytes, array, tokens, fields };
  Purpose purpose = Purpose::image;
  bool is_whole = true;     ///< the CRC covers it
  std::uint32_t place = 0;  ///< of the unit in its batch
  std::uint32_t group = 0;  ///< with fields: which of Contents::field_groups()
  std::uint64_t sample = 0;
  dataset::Locator file;
  std::uint64_t skip = 0;   ///< with tokens: offset of the range in the file, in bytes
  std::uint64_t count = 0;  ///< with tokens: bytes of the range
  std::uint64_t to = 0;     ///< with tokens: destination in the sequence, in tokens
};

class Contents {
 public:
  /// Fails as Loader::open. `source` must outlive the result.
  static Result<Contents> create(const dataset::ShardSource& source, const LoaderOptions& options);

  Content content() const { return options_.content; }
  /// Units of an epoch.
  std::uint64_t units() const { return tokens_ ? tokens_->sequences() : source_->samples().size(); }
  /// Units of each shard of the split, in order.
  std::vector<std::uint64_t> units_per_shard() const;
  /// Units of each chunk: see SampleTable::samples_per_chunk().
  std::vector<std::uint64_t> units_per_chunk() const;
  /// The layout of a unit in the batch; 0 bytes: as long as its file.
  DType element() const { return element_; }
  const Shape& shape() const { return shape_; }
  std::size_t row_bytes() const { return row_bytes_; }
  /// With Content::images.
  const image::Transform* transform() const { return transform_ ? &*transform_ : nullptr; }
  const TokenOptions& token_options() const { return options_.tokens; }
  /// REQUIRES: Content::tokens.
  const TokenFile& token_file() const { return tokens_->file(); }
  /// The fields of one component each; the second member is the index of the first of them among all fields.
  using FieldGroup = std::pair<std::vector<ComponentField>, std::size_t>;
  const std::vector<FieldGroup>& field_groups() const { return field_groups_; }

  /// The file with the content of the unit, for all contents but tokens. Corrupt, naming the sample, when it
  /// has none or one over 1 GiB.
  Result<dataset::Locator> locate_file(std::uint64_t unit) const;
  /// Adds the parts with the content of a unit.
  Status add_parts(std::uint64_t unit, std::uint32_t place, std::vector<Part>& parts) const;
  Status add_fields(std::uint64_t unit, std::uint32_t place, std::vector<Part>& parts) const;
  /// With Content::bytes: locate_file() of each of `units`, with a length over kLargestFile where that fails.
  void find_files(std::span<const std::uint64_t> units, std::span<dataset::Locator> out) const;
  /// Labels of `units`, written to `out`; -1 for none.
  void labels(std::span<const std::uint64_t> units, std::span<std::int64_t> out) const;
  /// For messages: "sequence 7, from sample '...' (in shard '...')".
  std::string name(std::uint64_t unit) const;

 private:
  Contents(const dataset::ShardSource& source, const LoaderOptions& options)
      : source_(&source), options_(options) {}
  std::vector<std::uint64_t> units_of(std::span<const std::uint64_t> samples) const;
  Status set_up_images();
  Status set_up_array();
  Status set_up_tokens();
  Status set_up_fields();
  Result<std::uint16_t> component(std::string_view name) const;
  Status select_component(std::string_view usual);
  Result<Shape> first_array_shape();

  const dataset::ShardSource* source_;
  LoaderOptions options_;
  std::optional<image::Transform> transform_;
  std::optional<TokenTable> tokens_;
  std::optional<std::uint16_t> component_;  // none: the first image, else the first file
  std::vector<FieldGroup> field_groups_;
  std::vector<std::uint16_t> field_components_;  // of each group
  DType element_ = DType::f32;
  Shape shape_;
  std::size_t row_bytes_ = 0;
};

}  // namespace stoker::loader
