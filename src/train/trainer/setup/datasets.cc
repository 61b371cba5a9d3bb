#include "train/trainer/setup/datasets.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "dataset/shard_source.h"
#include "loader/tokens.h"
#include "stoker/text.h"

namespace stoker::train {

namespace {

loader::LoaderOptions common_loader(const job::TrainOptions& train, const RankEnvironment& environment,
                                    const BatchPlace& place) {
  loader::LoaderOptions options;
  options.allocator = place.allocator;
  options.seed = train.seed;
  options.rank.rank = environment.rank;
  options.rank.world = environment.world_size;
  options.threads = std::max<std::uint32_t>(1, train.num_workers);
  options.prefetch = std::max<std::uint32_t>(1, train.prefetch);
  return options;
}

using Operations = std::vector<image::TransformOperation>;

Operations centre_crop(const job::ImageOptions& image) {
  return {{"resize", {{"size", static_cast<double>(image.validation_resize)}}},
          {"center_crop", {{"size", static_cast<double>(image.size)}}}};
}

Operations crop_of(const job::ImageOptions& image) {
  switch (image.crop) {
    case job::Crop::pad:
      return {{"random_crop",
               {{"size", static_cast<double>(image.size)}, {"padding", static_cast<double>(image.padding)}}}};
    case job::Crop::resize:
      return {{"random_resized_crop", {{"size", static_cast<double>(image.size)}}}};
    case job::Crop::none:
      break;
  }
  return centre_crop(image);
}

image::TransformOperation normalize(const job::ImageOptions& image) {
  return {"normalize", {{"mean", image.mean}, {"std", image.standard_deviation}}};
}

// Content of a sample for each model; images also have transform operations.
void set_content(loader::LoaderOptions& options, const job::TrainOptions& train) {
  if (train.model == job::ModelKind::gpt) {
    options.content = loader::Content::tokens;
    options.component = train.gpt.component;
    options.tokens.length = train.gpt.length;
    if (!loader::is_npy_name(train.gpt.component)) options.tokens.stored = train.gpt.stored;
  } else if (train.model == job::ModelKind::mlp && train.mlp.columns.empty()) {
    options.content = loader::Content::arrays;
    options.component = train.mlp.component.value_or("");
  } else if (train.model == job::ModelKind::mlp) {
    options.content = loader::Content::bytes;
    options.component = "json";
    for (const std::string& column : train.mlp.columns) options.fields.push_back({.name = column});
  } else if (train.channels_last) {
    options.transform.layout = image::ImageLayout::nhwc;
  }
}

// The first convolution rounds its input to the precision in any case, so a GPU gets half the bytes. A model
// of the user may begin with something else, and mixing needs float32.
DType image_element(const job::TrainOptions& train, const BatchPlace& place) {
  const bool is_rounded =
      place.is_gpu && train.model != job::ModelKind::torchscript && train.mixup == 0 && train.cutmix == 0;
  if (!is_rounded || train.precision == job::Precision::fp32) return DType::f32;
  return train.precision == job::Precision::bf16 ? DType::bf16 : DType::f16;
}

}  // namespace

Result<dataset::Dataset> open_dataset(const job::Job& job, const RankEnvironment& environment,
                                      const std::string& name) {
  const auto entry = job.data.find(name);
  if (entry == job.data.end()) return invalid("data.{}: no such dataset in the job", name);
  const Path folder = dataset_folder(environment, name, entry->second.source);
  const bool is_text = job.train && job.train->model == job::ModelKind::gpt;
  STOKER_ASSIGN_OR_RETURN(dataset, dataset::Dataset::open(folder, entry->second.split.value_or(""),
                                                          is_text ? dataset::LabelPolicy::optional
                                                                  : dataset::LabelPolicy::required));
  if (job.train) dataset.set_chunk_cache_limit(job.train->chunk_cache);
  return std::move(dataset);
}

loader::LoaderOptions training_loader(const job::TrainOptions& train, const RankEnvironment& environment,
                                      const BatchPlace& place) {
  loader::LoaderOptions options = common_loader(train, environment, place);
  options.batch = train.batch;
  options.shuffle = train.shuffle;
  if (train.window) options.window = *train.window;
  options.rank.remainder = loader::Remainder::pad;
  options.last_batch = train.drop_last ? loader::LastBatch::drop : loader::LastBatch::keep;
  set_content(options, train);
  if (options.content != loader::Content::images) return options;
  options.transform.operations = crop_of(train.image);
  if (train.image.flip) options.transform.operations.push_back({"random_horizontal_flip"});
  options.transform.operations.push_back(normalize(train.image));
  options.transform.element = image_element(train, place);
  return options;
}

loader::LoaderOptions validation_loader(const job::TrainOptions& train, const RankEnvironment& environment,
                                        const BatchPlace& place) {
  loader::LoaderOptions options = common_loader(train, environment, place);
  options.batch = train.validation_batch;
  options.shuffle = Shuffle::none;
  options.rank.remainder = loader::Remainder::exact;
  set_content(options, train);
  if (options.content != loader::Content::images) return options;
  options.transform.operations = centre_crop(train.image);
  options.transform.operations.push_back(normalize(train.image));
  options.transform.element = image_element(train, place);
  return options;
}

Result<std::optional<loader::Batch>> next_batch(loader::Loader& loader, Duration limit) {
  auto batch = loader.next(Deadline::after(limit));
  if (batch.ok() || batch.error().code() != Code::timeout) return batch;
  return timeout("{} (timeouts.data: {})", batch.error().message(), rounded_duration(limit));
}

// A label must mean the same class in all datasets. Bare numbers have no names to compare.
Status check_same_classes(const std::vector<NamedDataset>& datasets) {
  const NamedDataset* named = nullptr;
  for (const NamedDataset& item : datasets) {
    const std::vector<std::string>& names = item.dataset->class_names();
    if (names.empty()) continue;
    if (named == nullptr) {
      named = &item;
      continue;
    }
    const std::vector<std::string>& first = named->dataset->class_names();
    const auto [ours, theirs] = std::mismatch(first.begin(), first.end(), names.begin(), names.end());
    if (ours == first.end() || theirs == names.end()) continue;
    return invalid("data.{}: class {} is '{}', but in data.{} it is '{}'", item.name, theirs - names.begin(),
                   printable(*theirs), named->name, printable(*ours))
        .cure("pack both together, as splits of one dataset: stoker data pack --help");
  }
  return {};
}

Result<std::int64_t> class_count(const job::TrainOptions& train, const std::vector<NamedDataset>& datasets) {
  std::uint64_t classes = train.classes.value_or(0);
  if (train.model == job::ModelKind::gpt)
    return static_cast<std::int64_t>(classes);  // a vocabulary, not labels
  STOKER_RETURN_IF_ERROR(check_same_classes(datasets));
  for (const NamedDataset& item : datasets)
    STOKER_RETURN_IF_ERROR(item.dataset->check_labels().with_context("data." + item.name));
  if (!train.classes) {
    for (const NamedDataset& item : datasets) {
      classes = std::max({classes, item.dataset->class_names().size(), item.dataset->label_bound()});
    }
  }
  for (const NamedDataset& item : datasets) {
    if (item.dataset->label_bound() > classes) {
      return invalid("train.classes: {} is too small: the largest label of '{}' is {}", classes, item.name,
                     item.dataset->label_bound() - 1);
    }
  }
  return static_cast<std::int64_t>(classes);
}

// Samples with several arrays require a choice.
Status check_arrays(const job::TrainOptions& train, const dataset::Dataset& dataset) {
  std::vector<std::string> arrays;
  const auto& components = dataset.source().samples().components();
  for (const dataset::ComponentInfo& component : components) {
    if (component.name == "npy") return {};
    if (component.name.ends_with(".npy")) arrays.push_back(component.name);
  }
  if (std::ranges::all_of(components, [](const auto& component) { return component.is_image; }))
    return invalid("data.{}: has only images, but train.model: mlp needs numeric columns",
                   train.training_data)
        .cure("another train.model");
  if (train.mlp.component || arrays.size() < 2) return {};
  return invalid("train.mlp.component: not set, but each sample has {} arrays: {}", arrays.size(),
                 join(arrays, ", "))
      .cure("train: {{mlp: {{component: {}}}}}, or combine them into one array: stoker data convert --tensor",
            arrays[0]);
}

Result<std::int64_t> column_count(const job::TrainOptions& train, const dataset::Dataset& dataset) {
  if (train.model != job::ModelKind::mlp) return 0;
  if (!train.mlp.columns.empty()) return static_cast<std::int64_t>(train.mlp.columns.size());
  STOKER_RETURN_IF_ERROR(check_arrays(train, dataset));
  loader::LoaderOptions options;
  options.shuffle = Shuffle::none;
  set_content(options, train);
  options.prefetch = 1;
  STOKER_ASSIGN_OR_RETURN(loader, loader::Loader::open(dataset.source(), options));
  STOKER_ASSIGN_OR_RETURN(batch, loader->next(Deadline::after(std::chrono::minutes(1))));
  return element_count(batch->image().shape);
}

}  // namespace stoker::train
