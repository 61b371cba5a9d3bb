// Turns the stored bytes of an image into model input: decode, crop, resize, flip, colour, normalisation, in
// one pass that writes the sample into the batch. The random part is a pure function of (seed, epoch,
// sample), the same on any thread, rank and attempt. Used by the loader. A Transform is immutable and
// thread-safe; each thread has a TransformScratch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "image/decode/image.h"
#include "image/transform/philox.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"
#include "stoker/transform_options.h"

namespace stoker::image {

/// Memory that one thread reuses between images. Thread-compatible.
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
  /// Fails with Invalid for an unknown operation or parameter, a value out of range, an unsupported element
  /// type, or a list that does not fix the output size.
  static Result<Transform> create(const TransformOptions& options);
  Transform(Transform&&) noexcept;
  Transform& operator=(Transform&&) noexcept;
  ~Transform();

  /// Of every sample.
  std::uint32_t width() const;
  std::uint32_t height() const;
  DType element() const;
  ImageLayout layout() const;
  /// 3 x height() x width().
  std::size_t elements() const;
  /// Whether an operation has a reducing_gap: the pixels of apply_to_file() and apply() may then differ.
  bool has_reducing_gap() const;
  /// elements() x size_of(element()).
  std::size_t bytes() const;

  /// Decodes `file` (JPEG, PNG or WebP) as far as needed, and writes the transformed sample to `out`. Pixels
  /// are identical to torchvision on PIL images, with each operation of the normalisation rounded to
  /// float32. Fails as decode_image does, or with Invalid when an operation does not fit the image.
  /// REQUIRES: out.size() == bytes(), aligned to the element.
  Status apply_to_file(std::span<const std::byte> file, const SampleKey& sample_key,
                       TransformScratch& scratch, std::span<std::byte> out) const;
  /// The same for decoded pixels.
  Status apply(const ImageView& image, const SampleKey& sample_key, TransformScratch& scratch,
               std::span<std::byte> out) const;

 private:
  struct Plan;
  explicit Transform(std::unique_ptr<const Plan> plan);

  std::unique_ptr<const Plan> plan_;
};

}  // namespace stoker::image
