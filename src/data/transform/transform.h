// What happens to an image between its stored bytes and the model: decode, crop, resize, flip, colour,
// normalisation, all in one pass that ends at the sample's place in the batch. The random part is a pure
// function of (seed, epoch, sample), so it is the same on any thread, rank and attempt. Used by the loader.
// A Transform is immutable and thread-safe; each thread brings its own TransformScratch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"
#include "data/decode/image.h"
#include "data/transform/operation.h"
#include "data/transform/randomness.h"

namespace stoker::data {

/// Where the colours of a sample lie: as three planes, or beside each other in every pixel.
enum class Layout { nchw, nhwc };

struct TransformOptions {
  /// In the order they are applied; `normalize` may only be the last. See recipe().
  std::vector<Operation> operations = {};
  /// f32, bf16 and f16 hold values in 0..1, or what normalize makes of them; u8 holds bytes, and nothing
  /// normalised.
  DType element = DType::f32;
  Layout layout = Layout::nchw;
};

/// Memory that one thread keeps between images. Thread-compatible.
class TransformScratch {
 public:
  TransformScratch();
  ~TransformScratch();
  TransformScratch(TransformScratch&&) noexcept;
  TransformScratch& operator=(TransformScratch&&) noexcept;

 private:
  friend class Transform;
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

/// Applies one list of operations.
class Transform {
 public:
  /// Fails with Invalid for an unknown operation or parameter, a value out of range, an element type that is
  /// none of the four, or a list that leaves open what size the images come out with.
  static Result<Transform> create(const TransformOptions& options);
  Transform(Transform&&) noexcept;
  Transform& operator=(Transform&&) noexcept;
  ~Transform();

  /// Of every sample.
  std::uint32_t width() const;
  std::uint32_t height() const;
  DType element() const;
  Layout layout() const;
  /// 3 x height() x width().
  std::size_t elements() const;
  /// Whether an operation has a reducing_gap: apply_to_file() may then give other pixels than apply().
  bool reduces() const;
  /// elements() x size_of(element()).
  std::size_t bytes() const;

  /// Decodes `file` (JPEG, PNG or WebP), no more of it than is needed, and writes the transformed sample to
  /// `out`. Pixels as torchvision gives them on PIL images, each operation of the normalisation rounded to
  /// float32. Fails as decode_image does, or with Invalid when an operation does not fit the image.
  /// REQUIRES: out.size() == bytes(), aligned to the element.
  Status apply_to_file(std::span<const std::byte> file, const Occasion& occasion, TransformScratch& scratch,
                       std::span<std::byte> out) const;
  /// The same from pixels that are decoded already.
  Status apply(const ImageView& image, const Occasion& occasion, TransformScratch& scratch,
               std::span<std::byte> out) const;

 private:
  struct Plan;
  explicit Transform(std::unique_ptr<const Plan> plan);

  std::unique_ptr<const Plan> plan_;
};

}  // namespace stoker::data
