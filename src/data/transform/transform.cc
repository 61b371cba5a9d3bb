#include "data/transform/transform.h"

#include <algorithm>
#include <optional>

#include "data/decode/decode.h"
#include "data/transform/canvas.h"
#include "data/transform/ops/step.h"
#include "data/transform/sample_writer.h"

namespace stoker::data {
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
// torchvision's lists have it before normalize; here values are scaled to 0..1 whenever they are floats.
constexpr std::string_view kToTensor = "to_tensor";

Status unknown_operation(std::string_view name) {
  std::vector<std::string_view> known{kNormalize, kToTensor};
  for (const StepKind& kind : step_kinds()) known.push_back(kind.name);
  return invalid("transform: no operation is called '{}'{}", name, suggestion(canonical_name(name), known));
}

Result<std::unique_ptr<Step>> make_step(const Operation& operation, Extent& extent) {
  Parameters parameters(operation);
  const auto kind = std::find_if(step_kinds().begin(), step_kinds().end(),
                                 [&](const StepKind& k) { return k.name == parameters.name(); });
  if (kind == step_kinds().end()) return unknown_operation(operation.name);
  std::unique_ptr<Step> step = kind->make(parameters, extent);
  RETURN_IF_ERROR(parameters.status());
  return step;
}

Result<LevelFormula> read_normalisation(const Operation& operation, DType element) {
  Parameters parameters(operation);
  const auto mean = parameters.numbers("mean", {0, 0, 0}, {-1e6, 1e6}, {3});
  const auto deviation = parameters.numbers("std", {1, 1, 1}, {1e-6, 1e6}, {3});
  RETURN_IF_ERROR(parameters.status());
  if (element == DType::u8) {
    return invalid("transform: normalize: bytes hold no normalised values (element type U8)")
        .cure("leave normalize out, and normalise on the device");
  }
  LevelFormula normalisation;
  for (std::size_t c = 0; c < 3; ++c) {
    normalisation.mean[c] = static_cast<float>(mean[c]);
    normalisation.deviation[c] = static_cast<float>(deviation[c]);
  }
  return normalisation;
}

// Pixels that somebody has decoded already.
class DecodedSource : public PixelSource {
 public:
  explicit DecodedSource(const ImageView& image) : image_(image) {}
  std::uint32_t width() const override { return image_.width; }
  std::uint32_t height() const override { return image_.height; }
  Result<Held> pixels(const Region&, std::uint32_t) override { return Held{image_, 0, 0}; }

 private:
  ImageView image_;
};

// An image in its file, of which no more is decoded than is asked for.
class FileSource : public PixelSource {
 public:
  FileSource(Decoder& decoder, const ImageInfo& info, Image& decoded)
      : decoder_(decoder), info_(info), decoded_(decoded) {}
  std::uint32_t width() const override { return info_.width; }
  std::uint32_t height() const override { return info_.height; }
  bool can_reduce() const override { return decoder_.can_reduce(); }
  Result<Held> pixels(const Region& wanted, std::uint32_t reduction) override {
    Region got;
    RETURN_IF_ERROR(decoder_.decode(wanted, decoded_, got, reduction));
    return Held{decoded_.view(), got.x, got.y};
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
  bool reduces = false;
  SampleWriter writer;

  Status run(PixelSource& source, const Occasion& occasion, CanvasBuffers& buffers,
             std::span<std::byte> out) const {
    Canvas canvas(source, buffers);
    Dice dice(occasion);
    for (const auto& step : steps) RETURN_IF_ERROR(step->apply(canvas, dice));
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
  LevelFormula normalisation{{0, 0, 0}, {1, 1, 1}};
  const Operation* last = nullptr;
  for (const Operation& operation : options.operations) {
    if (last) {
      return invalid("transform: {} comes after normalize, which must be the last",
                     canonical_name(operation.name));
    }
    const std::string name = canonical_name(operation.name);
    if (name == kToTensor) {
      RETURN_IF_ERROR(Parameters(operation).status());
    } else if (name == kNormalize) {
      OK_OR_RETURN(read, read_normalisation(operation, options.element));
      normalisation = read;
      last = &operation;
    } else {
      OK_OR_RETURN(step, make_step(operation, extent));
      steps.push_back(std::move(step));
    }
  }
  if (!extent) {
    return invalid("transform: nothing in it makes all images the same size")
        .cure("add center_crop with a size");
  }
  const bool reduces =
      std::any_of(options.operations.begin(), options.operations.end(),
                  [](const Operation& operation) { return operation.parameters.contains("reducing_gap"); });
  return Transform(std::make_unique<const Plan>(
      Plan{std::move(steps), reduces,
           SampleWriter({extent->width, extent->height, options.element, options.layout}, normalisation)}));
}

std::uint32_t Transform::width() const { return plan_->writer.form().width; }
std::uint32_t Transform::height() const { return plan_->writer.form().height; }
DType Transform::element() const { return plan_->writer.form().element; }
Layout Transform::layout() const { return plan_->writer.form().layout; }
bool Transform::reduces() const { return plan_->reduces; }
std::size_t Transform::elements() const { return std::size_t{3} * width() * height(); }
std::size_t Transform::bytes() const { return elements() * size_of(element()); }

Status Transform::apply_to_file(std::span<const std::byte> file, const Occasion& occasion,
                                TransformScratch& scratch, std::span<std::byte> out) const {
  TransformScratch::Buffers& buffers = *scratch.buffers_;
  OK_OR_RETURN(info, buffers.decoder.open(file));
  FileSource source(buffers.decoder, info, buffers.decoded);
  return plan_->run(source, occasion, buffers.canvas, out);
}

Status Transform::apply(const ImageView& image, const Occasion& occasion, TransformScratch& scratch,
                        std::span<std::byte> out) const {
  DecodedSource source(image);
  return plan_->run(source, occasion, scratch.buffers_->canvas, out);
}

}  // namespace stoker::data
