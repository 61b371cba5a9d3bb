#include "loader/sample_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/npy.h"
#include "image/decode/decode.h"

namespace stoker::loader {
namespace {

std::span<std::byte> row_of(const PieceJob& job, std::size_t place) {
  const std::size_t size = job.memory.row_bytes;
  return {job.memory.data + place * size, size};
}

// Whether the unit has a fault already. There are few faults.
bool has_fault(const PieceResult& result, std::size_t place) {
  return std::any_of(result.faults.begin(), result.faults.end(),
                     [&](const UnitFault& fault) { return fault.place == place; });
}

}  // namespace

image::SampleKey SampleReader::sample_key(const PieceJob& job, std::uint64_t sample) const {
  return {context_.seed, static_cast<std::uint64_t>(job.plan.epoch.value), sample};
}

// Adds the name of the sample.
Status SampleReader::with_sample_name(const Part& part, Status status) const {
  return std::move(status).with_context(name_of(context_.source, part.sample));
}

// Every error in bytes that were read is damage. A failed read is an error, as is a missing or truncated
// shard. The exception is a chunk that does not unpack, because the rest of its shard may be intact.
bool SampleReader::is_damage(const dataset::Locator& file, const Status& status) const {
  if (status.code() != Code::corrupt) return false;
  if (is_file_read_) return true;
  const bool is_packed = context_.source.samples().sections()[file.shard]->chunks() != nullptr;
  // Unavailable means that the shard was opened, and is packed.
  return is_packed && context_.source.map(file.shard).status().code() == Code::unavailable;
}

PieceResult SampleReader::fill(const PieceJob& job, const StopToken& stop) {
  context_.contents.labels(std::span(job.plan.samples).subspan(job.begin, job.end - job.begin),
                           std::span(job.memory.labels).subspan(job.begin, job.end - job.begin));
  if (!job.files.empty() && context_.memory && context_.contents.field_groups().empty())
    return copy_files(job, stop);
  PieceResult result;
  plan_parts(job, result);
  fetcher_.begin(files_);
  for (std::size_t place = 0; place < parts_.size() && !stop.stop_requested(); ++place) {
    const Part& part = parts_[fetcher_.order()[place]];
    if (!result.faults.empty() && has_fault(result, part.place)) continue;
    job.current.store(part.place, std::memory_order_relaxed);
    read_ += part.file.length;
    clock_.begin();
    is_file_read_ = false;
    Status status = load_part(part, place, job);
    if (status.ok()) continue;
    const bool may_skip = is_damage(part.file, status);
    result.faults.push_back({part.place, may_skip, std::move(status)});
  }
  result.seconds = clock_.take();
  result.bytes = std::exchange(read_, 0);
  return result;
}

// Copies files unchanged from shards in memory: small files cost little more than the copy.
PieceResult SampleReader::copy_files(const PieceJob& job, const StopToken& stop) {
  constexpr std::size_t kAhead = 6;
  PieceResult result;
  for (std::size_t i = job.begin; i < job.end && !stop.stop_requested(); ++i) {
    if (i + kAhead < job.end) context_.memory->prefetch(job.files[i + kAhead]);
    job.current.store(i, std::memory_order_relaxed);
    clock_.begin();
    is_file_read_ = false;
    Status status = copy_file(job, i);
    if (status.ok()) continue;
    const bool may_skip = is_damage(job.files[i], status);
    result.faults.push_back({i, may_skip, std::move(status)});
  }
  result.seconds = clock_.take();
  result.bytes = std::exchange(read_, 0);
  return result;
}

Status SampleReader::copy_file(const PieceJob& job, std::size_t place) {
  const dataset::Locator& file = job.files[place];
  const std::uint64_t sample = job.plan.samples[place];
  if (file.length > kLargestFile) {
    is_file_read_ = true;  // a missing file is known without reading
    return context_.contents.locate_file(sample).status();
  }
  const std::span<std::byte> out(job.memory.data + job.memory.offsets[place], file.length);
  const std::byte* bytes = context_.memory->find(file);
  if (!bytes) {
    const Result<std::span<const std::byte>> read = context_.memory->view(file, file_buffer_);
    if (!read.ok()) return read.status().with_context(name_of(context_.source, sample));
    bytes = read->data();
  }
  std::copy_n(bytes, out.size(), out.begin());
  is_file_read_ = true;
  read_ += file.length;
  clock_.end(Stage::read);
  if (context_.check == Check::none) return Status();
  Status status = context_.source.check(sample, file, out);  // names shard and sample
  clock_.end(Stage::check);
  return status;
}

void SampleReader::plan_parts(const PieceJob& job, PieceResult& result) {
  parts_.clear();
  for (std::size_t i = job.begin; i < job.end; ++i) {
    const std::uint64_t unit = job.plan.samples[i];
    const auto place = static_cast<std::uint32_t>(i);
    const std::size_t before = parts_.size();
    Status status;
    if (!job.files.empty()) {
      parts_.push_back(
          {.purpose = Part::Purpose::bytes, .place = place, .sample = unit, .file = job.files[i]});
      if (job.files[i].length > kLargestFile) status = context_.contents.locate_file(unit).status();
    } else if (!context_.cache.is_enabled() || !load_cached(job, i, result)) {
      status = context_.contents.add_parts(unit, place, parts_);
    }
    if (status.ok()) status = context_.contents.add_fields(unit, place, parts_);
    if (status.ok()) continue;
    parts_.resize(before);
    if (!has_fault(result, i)) result.faults.push_back({i, true, std::move(status)});
  }
  files_.clear();
  for (const Part& part : parts_) files_.push_back(part.file);
}

bool SampleReader::load_cached(const PieceJob& job, std::size_t place, PieceResult& result) {
  const std::uint64_t sample = job.plan.samples[place];
  const std::optional<image::ImageView> view = context_.cache.find(sample);
  if (!view) return false;
  clock_.begin();
  Status status =
      context_.contents.transform()->apply(*view, sample_key(job, sample), scratch_, row_of(job, place));
  clock_.end(Stage::transform);
  if (status.ok()) {
    ++result.cached;
  } else {
    result.faults.push_back({place, false, std::move(status).with_context(name_of(context_.source, sample))});
  }
  return true;
}

Status SampleReader::check(const Part& part, std::span<const std::byte> bytes) const {
  if (context_.check == Check::none || !part.is_whole) return Status();
  return context_.source.check(part.sample, part.file, bytes);  // names shard and sample
}

Status SampleReader::load_part(const Part& part, std::size_t place, const PieceJob& job) {
  if (part.purpose == Part::Purpose::bytes)
    return load_bytes(part, place, {job.memory.data + job.memory.offsets[part.place], part.file.length});
  const Result<std::span<const std::byte>> file = fetcher_.view(place);
  if (!file.ok()) return with_sample_name(part, file.status());
  is_file_read_ = true;
  clock_.end(Stage::read);
  STOKER_RETURN_IF_ERROR(check(part, *file));
  clock_.end(Stage::check);
  Status status;
  switch (part.purpose) {
    case Part::Purpose::image:
      status = load_image(part, *file, job);
      break;
    case Part::Purpose::array:
      status = load_array(part, *file, row_of(job, part.place));
      break;
    case Part::Purpose::tokens:
      status = load_tokens(part, *file, row_of(job, part.place));
      break;
    case Part::Purpose::fields:
      status = load_fields(part, *file, job.memory);
      break;
    case Part::Purpose::bytes:
      break;
  }
  clock_.end(Stage::decode);
  return status.ok() ? status : with_sample_name(part, std::move(status));
}

Status SampleReader::load_bytes(const Part& part, std::size_t place, std::span<std::byte> out) {
  Status status = fetcher_.copy(place, out);
  if (!status.ok()) return with_sample_name(part, std::move(status));
  is_file_read_ = true;
  clock_.end(Stage::read);
  status = check(part, out);
  clock_.end(Stage::check);
  return status;
}

Status SampleReader::load_image(const Part& part, std::span<const std::byte> file, const PieceJob& job) {
  const std::span<std::byte> out = row_of(job, part.place);
  const image::SampleKey when = sample_key(job, part.sample);
  const Status status = context_.cache.is_enabled()
                            ? decode_and_cache(file, when, out)
                            : context_.contents.transform()->apply_to_file(file, when, scratch_, out);
  // Invalid is an unsupported image, or an image that an operation does not fit. The latter is a mistake in
  // the transform.
  if (status.code() == Code::invalid && !image::inspect_image(file).ok())
    return corrupt("{}", status.message());
  return status;
}

Status SampleReader::decode_and_cache(std::span<const std::byte> file, const image::SampleKey& when,
                                      std::span<std::byte> out) {
  STOKER_RETURN_IF_ERROR(decode_image(file, image_));
  clock_.end(Stage::decode);
  context_.cache.insert(when.sample, image_.view());
  STOKER_RETURN_IF_ERROR(context_.contents.transform()->apply(image_.view(), when, scratch_, out));
  clock_.end(Stage::transform);
  return Status();
}

Status SampleReader::load_array(const Part& part, std::span<const std::byte> file, std::span<std::byte> out) {
  const std::string_view component = context_.source.samples().components()[part.file.component].name;
  std::span<const std::byte> elements = file;
  if (component == "npy" || component.ends_with(".npy")) {
    Result<codec::NpyInfo> info = codec::read_npy(file);
    if (!info.ok()) return corrupt("{}", info.status().message());
    if (info->element != context_.contents.element() || info->shape != context_.contents.shape()) {
      return corrupt("{}: expected {} of {}, found {} of {}", component,
                     shape_text(context_.contents.shape()), to_text(context_.contents.element()),
                     shape_text(info->shape), to_text(info->element));
    }
    elements = file.subspan(info->data_offset);
  } else if (file.size() != out.size()) {
    return corrupt("{}: expected {} bytes ({} of {}), found {}", component, out.size(),
                   shape_text(context_.contents.shape()), to_text(context_.contents.element()), file.size());
  }
  std::memcpy(out.data(), elements.data(), out.size());
  return Status();
}

Status SampleReader::load_tokens(const Part& part, std::span<const std::byte> file,
                                 std::span<std::byte> out) {
  const TokenOptions& options = context_.contents.token_options();
  const TokenFile& layout = context_.contents.token_file();
  if (layout.is_npy && part.is_whole) STOKER_RETURN_IF_ERROR(check_npy_tokens(file, file.size(), layout));
  std::byte* to = out.data() + part.to * size_of(options.element);
  if (widen_tokens(layout.stored, options.element, file.subspan(part.skip, part.count), to)) return Status();
  return corrupt("tokens: a token is negative or does not fit {}", to_text(options.element));
}

Status SampleReader::load_fields(const Part& part, std::span<const std::byte> file, Batch::Memory& memory) {
  const auto& [fields, first] = context_.contents.field_groups()[part.group];
  STOKER_ASSIGN_OR_RETURN(values, read_fields(file, fields));
  for (std::size_t i = 0; i < values.size(); ++i)
    memory.columns[first + i].set(part.place, std::move(values[i]));
  return Status();
}

}  // namespace stoker::loader
