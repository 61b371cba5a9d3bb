#include "loader/contents.h"

#include <algorithm>

#include "codec/npy.h"
#include "stoker/text.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kLargestRow = 1u << 30;

std::string_view component_format(std::string_view component) {
  return component.substr(component.rfind('.') + 1);  // npos + 1 is 0
}

Shape shape_of(const image::Transform& transform) {
  const std::int64_t height = transform.height();
  const std::int64_t width = transform.width();
  return transform.layout() == image::ImageLayout::nchw ? Shape{3, height, width} : Shape{height, width, 3};
}

}  // namespace

std::string name_of(const dataset::ShardSource& source, std::uint64_t sample) {
  const dataset::SampleTable& table = source.samples();
  const std::string& shard = source.split().shards[table.position(sample).shard].file;
  const std::string_view key = table.key(sample);
  if (key.empty()) return format("sample {} (in shard '{}')", sample, shard);
  return format("sample '{}' (in shard '{}')", printable(key), shard);
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "one number" : text;
}

Result<Contents> Contents::create(const dataset::ShardSource& source, const LoaderOptions& options) {
  const std::string& split = source.split().name;
  if (source.samples().size() == 0) return invalid("loader: split '{}' has no samples", split);
  if (options.content != Content::images && options.cache.value > 0)
    return invalid("loader: only decoded images can be cached (cache)");
  Contents contents(source, options);
  switch (options.content) {
    case Content::images:
      STOKER_RETURN_IF_ERROR(contents.set_up_images());
      break;
    case Content::bytes:
      STOKER_RETURN_IF_ERROR(contents.select_component(""));
      break;
    case Content::arrays:
      STOKER_RETURN_IF_ERROR(contents.set_up_array());
      break;
    case Content::tokens:
      STOKER_RETURN_IF_ERROR(contents.set_up_tokens());
      break;
  }
  STOKER_RETURN_IF_ERROR(contents.set_up_fields());
  return contents;
}

Result<std::uint16_t> Contents::component(std::string_view name) const {
  const auto& known = source_->samples().components();
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i].name == name) return static_cast<std::uint16_t>(i);
    names.push_back(known[i].name);
  }
  return invalid("loader: split '{}' has no component '{}'{}", source_->split().name, name,
                 suggestion(name, names));
}

Status Contents::select_component(std::string_view usual) {
  if (!options_.component.empty()) {
    STOKER_ASSIGN_OR_RETURN(number, component(options_.component));
    component_ = number;
  } else if (const Result<std::uint16_t> number = component(usual); number.ok()) {
    component_ = *number;
  }
  return Status();
}

Status Contents::set_up_images() {
  STOKER_ASSIGN_OR_RETURN(made, image::Transform::create(options_.transform));
  transform_ = std::move(made);
  // Otherwise the first image of a sample is used, whatever its name.
  if (!options_.component.empty()) STOKER_RETURN_IF_ERROR(select_component(""));
  if (transform_->has_reducing_gap() && options_.cache.value > 0)
    return invalid(
        "loader: a transform with reducing_gap cannot be combined with a cache of decoded images (cache)");
  element_ = transform_->element();
  shape_ = shape_of(*transform_);
  row_bytes_ = transform_->bytes();
  return Status();
}

// Reads the header of the first sample.
Result<Shape> Contents::first_array_shape() {
  STOKER_ASSIGN_OR_RETURN(file, locate_file(0));
  const std::string& name = source_->samples().components()[file.component].name;
  if (component_format(name) != "npy") {
    return invalid("loader: '{}' has no header with its element type and shape (array)", name);
  }
  std::vector<std::byte> bytes(file.length);
  STOKER_RETURN_IF_ERROR(source_->read(file.shard, file.offset, bytes));
  STOKER_RETURN_IF_ERROR(source_->check(0, file, bytes));
  const Result<codec::NpyInfo> info = codec::read_npy(bytes);
  if (!info.ok()) return info.status().with_context(name_of(*source_, 0));
  element_ = info->element;
  return info->shape;
}

Status Contents::set_up_array() {
  STOKER_RETURN_IF_ERROR(select_component("npy"));
  if (options_.array) {
    element_ = options_.array->element;
    shape_ = options_.array->shape;
  } else {
    STOKER_ASSIGN_OR_RETURN(shape, first_array_shape());
    shape_ = std::move(shape);
  }
  row_bytes_ = size_of(element_);
  for (const std::int64_t size : shape_) {
    if (size < 1 || static_cast<std::uint64_t>(size) > kLargestRow / row_bytes_)
      return invalid("loader: arrays of {} x {} bytes are not between 1 byte and 1 GiB", size, row_bytes_);
    row_bytes_ *= static_cast<std::size_t>(size);
  }
  return Status();
}

Status Contents::set_up_tokens() {
  // What Hugging Face's tokenizers call the tokens; attention_mask comes before it.
  STOKER_RETURN_IF_ERROR(select_component("input_ids.npy"));
  if (!component_) component_ = 0;
  STOKER_ASSIGN_OR_RETURN(table, TokenTable::create(*source_, *component_, options_.tokens));
  tokens_ = std::move(table);
  element_ = options_.tokens.element;
  shape_ = {std::int64_t{options_.tokens.length} + options_.tokens.ahead};
  row_bytes_ = static_cast<std::size_t>(shape_[0]) * size_of(element_);
  if (!options_.fields.empty()) return invalid("loader: sequences of tokens have no fields (fields)");
  return Status();
}

Status Contents::set_up_fields() {
  for (std::size_t i = 0; i < options_.fields.size(); ++i) {
    const ComponentField& field = options_.fields[i];
    STOKER_ASSIGN_OR_RETURN(number, component(field.component));
    if (field.name.empty() && field.kind != FieldKind::text)
      return invalid("loader: field {} of '{}' has no name (fields)", i, field.component);
    // Consecutive fields of a file form one group: the file is read and parsed once.
    const bool is_next = !field_groups_.empty() && field_components_.back() == number &&
                         field_groups_.back().first[0].name.empty() == field.name.empty();
    if (!is_next) {
      field_groups_.push_back({{}, i});
      field_components_.push_back(number);
    }
    field_groups_.back().first.push_back(field);
  }
  return Status();
}

// Converts the sample counts of consecutive runs to unit counts.
std::vector<std::uint64_t> Contents::units_of(std::span<const std::uint64_t> samples) const {
  std::vector<std::uint64_t> units;
  std::uint64_t sum = 0, before = 0;
  for (const std::uint64_t run : samples) {
    sum += run;
    const std::uint64_t until = tokens_ ? tokens_->sequences_before(sum) : sum;
    units.push_back(until - before);
    before = until;
  }
  return units;
}

std::vector<std::uint64_t> Contents::units_per_shard() const {
  std::vector<std::uint64_t> samples;
  for (const dataset::ShardInfo& shard : source_->split().shards) samples.push_back(shard.samples);
  return units_of(samples);
}

std::vector<std::uint64_t> Contents::units_per_chunk() const {
  return units_of(source_->samples().samples_per_chunk());
}

Result<dataset::Locator> Contents::locate_file(std::uint64_t unit) const {
  const dataset::SampleTable& samples = source_->samples();
  std::optional<dataset::Locator> file;
  if (component_) {
    file = find_component(samples, unit, *component_);
  } else {
    file = samples.image(unit);
    if (!file && options_.content != Content::images) file = samples.locate(unit, 0);
  }
  if (!file) {
    const std::string what = component_ ? format("'{}'", samples.components()[*component_].name) : "image";
    return corrupt("{}: has no {}", name_of(*source_, unit), what);
  }
  if (file->length > kLargestFile) {
    return corrupt("{}: {} over 1 GiB", name_of(*source_, unit), transform_ ? "an image" : "a file");
  }
  return *file;
}

Status Contents::add_parts(std::uint64_t unit, std::uint32_t place, std::vector<Part>& parts) const {
  if (!tokens_) {
    STOKER_ASSIGN_OR_RETURN(file, locate_file(unit));
    const Part::Purpose purpose = options_.content == Content::images  ? Part::Purpose::image
                                  : options_.content == Content::bytes ? Part::Purpose::bytes
                                                                       : Part::Purpose::array;
    parts.push_back({.purpose = purpose, .place = place, .sample = unit, .file = file});
    return Status();
  }
  std::vector<TokenSpan> spans;
  tokens_->spans(unit, spans);
  const TokenFile& layout = tokens_->file();
  const std::size_t size = size_of(layout.stored);
  for (const TokenSpan& span : spans) {
    Part part{.purpose = Part::Purpose::tokens, .place = place, .sample = span.sample, .file = span.file};
    part.skip = layout.header + span.from * size;
    part.count = span.count * size;
    part.to = span.to;
    part.is_whole = span.file.length <= kWholeDocument;
    if (!part.is_whole) {
      part.file.offset += part.skip;
      part.file.length = part.count;
      part.skip = 0;
    }
    parts.push_back(part);
  }
  return Status();
}

Status Contents::add_fields(std::uint64_t unit, std::uint32_t place, std::vector<Part>& parts) const {
  for (std::size_t group = 0; group < field_groups_.size(); ++group) {
    const auto file = find_component(source_->samples(), unit, field_components_[group]);
    if (!file || file->length > kLargestFile) {
      const std::string& name = field_groups_[group].first[0].component;
      return corrupt("{}: has no '{}'{}", name_of(*source_, unit), name, file ? " of at most 1 GiB" : "");
    }
    parts.push_back({.purpose = Part::Purpose::fields,
                     .place = place,
                     .group = static_cast<std::uint32_t>(group),
                     .sample = unit,
                     .file = *file});
  }
  return Status();
}

void Contents::find_files(std::span<const std::uint64_t> units, std::span<dataset::Locator> out) const {
  static_assert(dataset::SampleTable::kNoFile > kLargestFile);
  source_->samples().locate(units, component_, out);
}

void Contents::labels(std::span<const std::uint64_t> units, std::span<std::int64_t> out) const {
  if (tokens_) {
    std::fill(out.begin(), out.end(), -1);
  } else {
    source_->samples().labels(units, out);
  }
}

std::string Contents::name(std::uint64_t unit) const {
  if (!tokens_) return name_of(*source_, unit);
  std::vector<TokenSpan> spans;
  tokens_->spans(unit, spans);
  return format("sequence {}, from {}", unit, name_of(*source_, spans.front().sample));
}

}  // namespace stoker::loader
