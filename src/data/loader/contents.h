// What a loader's batches hold, and which files each unit of the order needs for it. A unit is a sample, or
// with Content::tokens a sequence. Used by the loader's machinery. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"
#include "data/components/tokens.h"
#include "data/loader.h"
#include "data/transform/transform.h"
#include "format/shard_source.h"

namespace stoker::data {

/// "sample 'cat/0042' (in shard 'train-000001.tar')".
std::string name_of(const formats::ShardSource& source, std::uint64_t sample);

/// Larger files are no samples; the bound comes before memory is taken for them.
inline constexpr std::uint64_t kLargestFile = 1u << 30;

/// One file, or a stretch of one, that a unit is made of.
struct Part {
  enum class Purpose : std::uint8_t { image, bytes, array, tokens, fields };
  Purpose purpose = Purpose::image;
  bool is_whole = true;     ///< the CRC covers it
  std::uint32_t place = 0;  ///< of the unit in its batch
  std::uint32_t group = 0;  ///< with fields: which of Contents::field_groups()
  std::uint64_t sample = 0;
  formats::Locator file;
  std::uint64_t skip = 0;   ///< with tokens: bytes of the file before those wanted
  std::uint64_t count = 0;  ///< with tokens: bytes wanted
  std::uint64_t to = 0;     ///< with tokens: where they go, in tokens
};

class Contents {
 public:
  /// Fails as Loader::open. `source` must outlive the result.
  static Result<Contents> create(const formats::ShardSource& source, const LoaderOptions& options);

  Content content() const { return options_.content; }
  /// Units of an epoch.
  std::uint64_t units() const { return tokens_ ? tokens_->sequences() : source_->samples().size(); }
  /// Those of each shard of the split, in order.
  std::vector<std::uint64_t> units_per_shard() const;
  /// Those of each chunk: see SampleTable::samples_per_chunk().
  std::vector<std::uint64_t> units_per_chunk() const;
  /// How a unit lies in the batch; 0 bytes: as long as its file.
  DType element() const { return element_; }
  const Shape& shape() const { return shape_; }
  std::size_t row_bytes() const { return row_bytes_; }
  /// With Content::images.
  const Transform* transform() const { return transform_ ? &*transform_ : nullptr; }
  const TokenOptions& token_options() const { return options_.tokens; }
  /// Those of one component each; the second is where its first field is among all.
  using FieldGroup = std::pair<std::vector<Field>, std::size_t>;
  const std::vector<FieldGroup>& field_groups() const { return field_groups_; }

  /// The file that the unit itself is, for all but tokens. Corrupt, naming the sample, when it has none or
  /// one of over 1 GiB.
  Result<formats::Locator> file_of(std::uint64_t unit) const;
  /// Adds all parts of a unit but for `file_of`'s, which the caller has asked for already, or not.
  Status add_parts(std::uint64_t unit, std::uint32_t place, std::vector<Part>& parts) const;
  Status add_fields(std::uint64_t unit, std::uint32_t place, std::vector<Part>& parts) const;
  /// With Content::bytes: file_of() of each of `units`, with a length over kLargestFile where that fails.
  void find_files(std::span<const std::uint64_t> units, std::span<formats::Locator> out) const;
  /// Those of `units`, written to `out`; -1 where there is none.
  void labels(std::span<const std::uint64_t> units, std::span<std::int64_t> out) const;
  /// For messages: "sequence 7, from sample '...' (in shard '...')".
  std::string name(std::uint64_t unit) const;

 private:
  Contents(const formats::ShardSource& source, const LoaderOptions& options)
      : source_(&source), options_(options) {}
  std::vector<std::uint64_t> units_of(std::span<const std::uint64_t> samples) const;
  Status set_up_images();
  Status set_up_array();
  Status set_up_tokens();
  Status set_up_fields();
  Result<std::uint16_t> component(std::string_view name) const;
  Status choose_component(std::string_view usual);
  Result<Shape> shape_of_first();

  const formats::ShardSource* source_;
  LoaderOptions options_;
  std::optional<Transform> transform_;
  std::optional<TokenTable> tokens_;
  std::optional<std::uint16_t> component_;  // none: the first image, else the first file
  std::vector<FieldGroup> field_groups_;
  std::vector<std::uint16_t> field_components_;  // of each group
  DType element_ = DType::f32;
  Shape shape_;
  std::size_t row_bytes_ = 0;
};

}  // namespace stoker::data
