// Any transform, applied to any image: a sample or an error.
#include <cstdint>
#include <cstdlib>
#include <fuzzer/FuzzedDataProvider.h>

#include "image/transform/transform.h"

namespace {

using stoker::DType;
using stoker::image::Parameter;
using stoker::image::TransformOperation;

constexpr const char* kNames[] = {"resize",
                                  "center_crop",
                                  "random_crop",
                                  "random_resized_crop",
                                  "pad",
                                  "random_horizontal_flip",
                                  "random_vertical_flip",
                                  "color_jitter",
                                  "grayscale",
                                  "random_grayscale",
                                  "rand_augment",
                                  "trivial_augment_wide",
                                  "to_tensor",
                                  "normalize"};
constexpr const char* kKeys[] = {"size",          "padding",    "fill",
                                 "interpolation", "antialias",  "scale",
                                 "ratio",         "p",          "brightness",
                                 "contrast",      "saturation", "hue",
                                 "num_ops",       "magnitude",  "num_magnitude_bins",
                                 "mean",          "std",        "pad_if_needed",
                                 "reducing_gap"};
constexpr const char* kFilters[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};

// Sides stay small: the loader rejects sizes in gigabytes.
double number(FuzzedDataProvider& data) {
  return data.ConsumeBool() ? data.ConsumeIntegralInRange(0, 70)
                            : data.ConsumeFloatingPointInRange(-2.0, 70.0);
}

Parameter parameter(FuzzedDataProvider& data) {
  switch (data.ConsumeIntegralInRange(0, 3)) {
    case 0:
      return data.ConsumeBool();
    case 1:
      return number(data);
    case 2:
      return std::string(data.PickValueInArray(kFilters));
    default: {
      std::vector<double> numbers(data.ConsumeIntegralInRange<std::size_t>(0, 4));
      for (double& n : numbers) n = number(data);
      return numbers;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  stoker::image::TransformOptions options;
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::u8, DType::i64};
  options.element = data.PickValueInArray(kTypes);
  options.layout = data.ConsumeBool() ? stoker::image::ImageLayout::nchw : stoker::image::ImageLayout::nhwc;
  const int count = data.ConsumeIntegralInRange(0, 6);
  for (int i = 0; i < count; ++i) {
    TransformOperation operation{data.PickValueInArray(kNames)};
    const int keys = data.ConsumeIntegralInRange(0, 4);
    for (int k = 0; k < keys; ++k) operation.parameters[data.PickValueInArray(kKeys)] = parameter(data);
    options.operations.push_back(std::move(operation));
  }
  const auto transform = stoker::image::Transform::create(options);
  if (!transform.ok()) return 0;
  stoker::image::Image image{data.ConsumeIntegralInRange(1u, 60u), data.ConsumeIntegralInRange(1u, 60u), {}};
  image.pixels.resize(std::size_t{3} * image.width * image.height, data.ConsumeIntegral<std::uint8_t>());
  stoker::image::TransformScratch scratch;
  std::vector<std::byte> out(transform->bytes());
  const stoker::image::SampleKey sample_key{1, 2, data.ConsumeIntegral<std::uint64_t>()};
  const bool done = transform->apply(image.view(), sample_key, scratch, out).ok();
  if (done && out.size() != transform->elements() * stoker::size_of(transform->element())) std::abort();
  return 0;
}
