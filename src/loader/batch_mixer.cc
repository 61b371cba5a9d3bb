#include "loader/batch_mixer.h"

#include <algorithm>

namespace stoker::loader {
namespace {

// A soft label has one number per class.
constexpr std::int64_t kMaxClasses = 1'000'000;

// The largest label + 1, or the number of class names if that is larger.
Result<std::uint32_t> count_classes(const dataset::ShardSource& source) {
  auto classes = static_cast<std::int64_t>(source.manifest().schema.classes.size());
  std::uint64_t first = 0;
  for (const dataset::IndexSection* section : source.samples().sections()) {
    for (std::uint64_t i = 0; i < section->samples(); ++i) {
      const std::int64_t label = section->has_labels() ? section->label(i) : -1;
      if (label < 0)
        return invalid("loader: {} has no label to mix (mixup, cutmix)", name_of(source, first + i));
      classes = std::max(classes, std::min(label, kMaxClasses) + 1);
    }
    first += section->samples();
  }
  if (classes <= kMaxClasses) return static_cast<std::uint32_t>(classes);
  return invalid("loader: labels of over {} classes are too many to mix (mixup, cutmix)", kMaxClasses);
}

}  // namespace

Result<std::optional<BatchMixer>> BatchMixer::create(const dataset::ShardSource& source,
                                                     const Contents& contents, const LoaderOptions& options) {
  if (options.mixing.empty()) return std::optional<BatchMixer>();
  const image::Transform* transform = contents.transform();
  if (!transform) return invalid("loader: mixup and cutmix need images");
  const image::BatchShape shape{.width = transform->width(),
                                .height = transform->height(),
                                .element = transform->element(),
                                .layout = transform->layout()};
  for (const image::MixOptions& kind : options.mixing) {
    STOKER_RETURN_IF_ERROR(draw_mix(kind, {}, shape).status());
    STOKER_RETURN_IF_ERROR(can_mix(kind.kind, shape));
  }
  STOKER_ASSIGN_OR_RETURN(classes, count_classes(source));
  return std::optional<BatchMixer>(BatchMixer(options, shape, classes));
}

void BatchMixer::mix(const image::SampleKey& sample_key, Batch::Memory& memory) const {
  image::BatchShape shape = shape_;
  shape.samples = memory.samples.size();
  const image::MixOptions& kind = choose_mix(kinds_, sample_key);
  const image::Mix mix = draw_mix(kind, sample_key, shape).value();
  STOKER_CHECK(apply_mix(kind.kind, mix, shape, {memory.data, shape.samples * memory.row_bytes}).ok());
  memory.classes = classes_;
  memory.soft_labels.assign(shape.samples * classes_, 0.0f);
  for (std::size_t i = 0; i < shape.samples; ++i) {
    const std::size_t partner = (i > 0 ? i : shape.samples) - 1;
    float* const row = memory.soft_labels.data() + i * classes_;
    row[memory.labels[i]] += static_cast<float>(mix.share);
    row[memory.labels[partner]] += static_cast<float>(1 - mix.share);
  }
}

}  // namespace stoker::loader
