#include "image/transform/transform.h"

#include <algorithm>
#include <optional>

#include "image/decode/decode.h"
#include "image/transform/canvas.h"
#include "image/transform/ops/step.h"
#include "image/transform/sample_writer.h"

namespace stoker::image {
namespace {

const std::vector<StepKind>& step_kinds() {
  static const std::vector<StepKind> kinds = [] {
    std::vector<StepKind> all;
    for (const auto& some : {augment_steps(), colour_steps(), crop_steps(), flip_steps()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return kinds;
}

constexpr std::string_view kNormalize = "normalize";
// In torchvision's lists it precedes normalize; here float values are always scaled to 0..1.
constexpr std::string_view kToTensor = "to_tensor";

Status unknown_operation(std::string_view name) {
  std::vector<std::string_view> known{kNormalize, kToTensor};
  for (const StepKind& kind : step_kinds()) known.push_back(kind.name);
  return invalid("transform: unknown operation '{}'{}", name, suggestion(canonical_name(name), known));
}

Result<std::unique_ptr<Step>> make_step(const TransformOperation& operation, Extent& extent) {
  Parameters parameters(operation);
  const auto kind = std::find_if(step_kinds().begin(), step_kinds().end(),
                                 [&](const StepKind& k) { return k.name == parameters.name(); });
  if (kind == step_kinds().end()) return unknown_operation(operation.name);
  std::unique_ptr<Step> step = kind->make(parameters, extent);
  STOKER_RETURN_IF_ERROR(parameters.status());
  return step;
}

Result<Normalization> read_normalisation(const TransformOperation& operation, DType element) {
  Parameters parameters(operation);
  const auto mean = parameters.numbers("mean", {0, 0, 0}, {-1e6, 1e6}, {3});
  const auto deviation = parameters.numbers("std", {1, 1, 1}, {1e-6, 1e6}, {3});
  STOKER_RETURN_IF_ERROR(parameters.status());
  if (element == DType::u8) {
    return invalid("transform: normalize: element type U8 cannot hold normalised values")
        .cure("omit normalize, and normalise on the device");
  }
  Normalization normalisation;
  for (std::size_t c = 0; c < 3; ++c) {
    normalisation.mean[c] = static_cast<float>(mean[c]);
    normalisation.deviation[c] = static_cast<float>(deviation[c]);
  }
  return normalisation;
}

// Pixels that are decoded already.
class DecodedSource : public PixelSource {
 public:
  explicit DecodedSource(const ImageView& image) : image_(image) {}
  std::uint32_t width() const override { return image_.width; }
  std::uint32_t height() const override { return image_.height; }
  Result<PartialImage> pixels(const ImageRegion&, std::uint32_t) override {
    return PartialImage{image_, 0, 0};
  }

 private:
  ImageView image_;
};

// An encoded image, decoded only as far as needed.
class FileSource : public PixelSource {
 public:
  FileSource(Decoder& decoder, const ImageInfo& info, Image& decoded)
      : decoder_(decoder), info_(info), decoded_(decoded) {}
  std::uint32_t width() const override { return info_.width; }
  std::uint32_t height() const override { return info_.height; }
  bool can_reduce() const override { return decoder_.can_reduce(); }
  Result<PartialImage> pixels(const ImageRegion& wanted, std::uint32_t reduction) override {
    ImageRegion got;
    STOKER_RETURN_IF_ERROR(decoder_.decode(wanted, decoded_, got, reduction));
    return PartialImage{decoded_.view(), got.x, got.y};
  }

 private:
  Decoder& decoder_;
  ImageInfo info_;
  Image& decoded_;
};

}  // namespace

struct TransformScratch::Buffers {
  CanvasBuffers canvas;
  Decoder decoder;
  Image decoded;
};

TransformScratch::TransformScratch() : buffers_(std::make_unique<Buffers>()) {}
TransformScratch::~TransformScratch() = default;
TransformScratch::TransformScratch(TransformScratch&&) noexcept = default;
TransformScratch& TransformScratch::operator=(TransformScratch&&) noexcept = default;

struct Transform::Plan {
  std::vector<std::unique_ptr<Step>> steps;
  bool has_reducing_gap = false;
  SampleWriter writer;

  Status run(PixelSource& source, const SampleKey& sample_key, CanvasBuffers& buffers,
             std::span<std::byte> out) const {
    Canvas canvas(source, buffers);
    PhiloxStream rng(sample_key);
    for (const auto& step : steps) STOKER_RETURN_IF_ERROR(step->apply(canvas, rng));
    return canvas.write(writer, out);
  }
};

Transform::Transform(std::unique_ptr<const Plan> plan) : plan_(std::move(plan)) {}
Transform::Transform(Transform&&) noexcept = default;
Transform& Transform::operator=(Transform&&) noexcept = default;
Transform::~Transform() = default;

Result<Transform> Transform::create(const TransformOptions& options) {
  constexpr DType kElements[] = {DType::f32, DType::bf16, DType::f16, DType::u8};
  if (std::find(std::begin(kElements), std::end(kElements), options.element) == std::end(kElements)) {
    return invalid("transform: images of {} are not supported (F32, BF16, F16 or U8)",
                   to_text(options.element));
  }
  std::vector<std::unique_ptr<Step>> steps;
  Extent extent;
  Normalization normalisation{{0, 0, 0}, {1, 1, 1}};
  const TransformOperation* last = nullptr;
  for (const TransformOperation& operation : options.operations) {
    if (last) {
      return invalid("transform: {} follows normalize, which must be the last operation",
                     canonical_name(operation.name));
    }
    const std::string name = canonical_name(operation.name);
    if (name == kToTensor) {
      STOKER_RETURN_IF_ERROR(Parameters(operation).status());
    } else if (name == kNormalize) {
      STOKER_ASSIGN_OR_RETURN(read, read_normalisation(operation, options.element));
      normalisation = read;
      last = &operation;
    } else {
      STOKER_ASSIGN_OR_RETURN(step, make_step(operation, extent));
      steps.push_back(std::move(step));
    }
  }
  if (!extent) {
    return invalid("transform: no operation fixes the output size").cure("add center_crop with a size");
  }
  const bool has_reducing_gap = std::any_of(
      options.operations.begin(), options.operations.end(),
      [](const TransformOperation& operation) { return operation.parameters.contains("reducing_gap"); });
  return Transform(std::make_unique<const Plan>(
      Plan{std::move(steps), has_reducing_gap,
           SampleWriter({extent->width, extent->height, options.element, options.layout}, normalisation)}));
}

std::uint32_t Transform::width() const { return plan_->writer.form().width; }
std::uint32_t Transform::height() const { return plan_->writer.form().height; }
DType Transform::element() const { return plan_->writer.form().element; }
ImageLayout Transform::layout() const { return plan_->writer.form().layout; }
bool Transform::has_reducing_gap() const { return plan_->has_reducing_gap; }
std::size_t Transform::elements() const { return std::size_t{3} * width() * height(); }
std::size_t Transform::bytes() const { return elements() * size_of(element()); }

Status Transform::apply_to_file(std::span<const std::byte> file, const SampleKey& sample_key,
                                TransformScratch& scratch, std::span<std::byte> out) const {
  TransformScratch::Buffers& buffers = *scratch.buffers_;
  STOKER_ASSIGN_OR_RETURN(info, buffers.decoder.open(file));
  FileSource source(buffers.decoder, info, buffers.decoded);
  return plan_->run(source, sample_key, buffers.canvas, out);
}

Status Transform::apply(const ImageView& image, const SampleKey& sample_key, TransformScratch& scratch,
                        std::span<std::byte> out) const {
  DecodedSource source(image);
  return plan_->run(source, sample_key, scratch.buffers_->canvas, out);
}

}  // namespace stoker::image
