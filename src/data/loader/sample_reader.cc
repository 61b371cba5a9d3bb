#include "data/loader/sample_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/components/npy.h"
#include "data/decode/decode.h"

namespace stoker::data {
namespace {

std::span<std::byte> row_of(const PieceJob& job, std::size_t place) {
  const std::size_t size = job.memory.row_bytes;
  return {job.memory.data.get() + place * size, size};
}

// Whether the unit has a fault already; there are few.
bool has_fault(const Filled& filled, std::size_t place) {
  return std::any_of(filled.faults.begin(), filled.faults.end(),
                     [&](const UnitFault& fault) { return fault.place == place; });
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "one number" : text;
}

}  // namespace

Occasion SampleReader::occasion(const PieceJob& job, std::uint64_t sample) const {
  return {plan_.seed, static_cast<std::uint64_t>(job.plan.epoch.value), sample};
}

// Adds which sample it was.
Status SampleReader::explain(const Part& part, Status status) const {
  return std::move(status).with_context(name_of(plan_.source, part.sample));
}

// Of bytes that came, all that is wrong is damage. What does not come is an error, as is a shard that is gone
// or cut short, but for a chunk that does not unpack: the rest of its shard may be whole.
bool SampleReader::is_damage(const formats::Locator& file, const Status& status) const {
  if (status.code() != Code::corrupt) return false;
  if (has_come_) return true;
  const bool is_packed = plan_.source.samples().sections()[file.shard]->chunks() != nullptr;
  // Unavailable says that the shard was opened, and is packed.
  return is_packed && plan_.source.map(file.shard).status().code() == Code::unavailable;
}

Filled SampleReader::fill(const PieceJob& job, const StopToken& stop) {
  plan_.contents.labels(std::span(job.plan.samples).subspan(job.begin, job.end - job.begin),
                        std::span(job.memory.labels).subspan(job.begin, job.end - job.begin));
  if (!job.files.empty() && plan_.memory && plan_.contents.field_groups().empty())
    return copy_files(job, stop);
  Filled filled;
  plan_parts(job, filled);
  fetcher_.begin(files_);
  for (std::size_t place = 0; place < parts_.size() && !stop.stop_requested(); ++place) {
    const Part& part = parts_[fetcher_.order()[place]];
    if (!filled.faults.empty() && has_fault(filled, part.place)) continue;
    job.current.store(part.place, std::memory_order_relaxed);
    read_ += part.file.length;
    clock_.begin();
    has_come_ = false;
    Status status = take(part, place, job);
    if (status.ok()) continue;
    const bool may_skip = is_damage(part.file, status);
    filled.faults.push_back({part.place, may_skip, std::move(status)});
  }
  filled.seconds = clock_.take();
  filled.bytes = std::exchange(read_, 0);
  return filled;
}

// Files as they are, from shards in memory: small ones cost little more than being copied.
Filled SampleReader::copy_files(const PieceJob& job, const StopToken& stop) {
  constexpr std::size_t kAhead = 6;
  Filled filled;
  for (std::size_t i = job.begin; i < job.end && !stop.stop_requested(); ++i) {
    if (i + kAhead < job.end) plan_.memory->expect(job.files[i + kAhead]);
    job.current.store(i, std::memory_order_relaxed);
    clock_.begin();
    has_come_ = false;
    Status status = copy_file(job, i);
    if (status.ok()) continue;
    const bool may_skip = is_damage(job.files[i], status);
    filled.faults.push_back({i, may_skip, std::move(status)});
  }
  filled.seconds = clock_.take();
  filled.bytes = std::exchange(read_, 0);
  return filled;
}

Status SampleReader::copy_file(const PieceJob& job, std::size_t place) {
  const formats::Locator& file = job.files[place];
  const std::uint64_t sample = job.plan.samples[place];
  if (file.length > kLargestFile) {
    has_come_ = true;  // that there is no such file is known without reading
    return plan_.contents.file_of(sample).status();
  }
  const std::span<std::byte> out(job.memory.data.get() + job.memory.offsets[place], file.length);
  const std::byte* bytes = plan_.memory->find(file);
  if (!bytes) {
    const Result<std::span<const std::byte>> read = plan_.memory->view(file, alone_);
    if (!read.ok()) return read.status().with_context(name_of(plan_.source, sample));
    bytes = read->data();
  }
  std::copy_n(bytes, out.size(), out.begin());
  has_come_ = true;
  read_ += file.length;
  clock_.end(Stage::read);
  if (plan_.check == Check::none) return Status();
  Status status = plan_.source.check(sample, file, out);  // names shard and sample itself
  clock_.end(Stage::check);
  return status;
}

void SampleReader::plan_parts(const PieceJob& job, Filled& filled) {
  parts_.clear();
  for (std::size_t i = job.begin; i < job.end; ++i) {
    const std::uint64_t unit = job.plan.samples[i];
    const auto place = static_cast<std::uint32_t>(i);
    const std::size_t before = parts_.size();
    Status status;
    if (!job.files.empty()) {
      parts_.push_back(
          {.purpose = Part::Purpose::bytes, .place = place, .sample = unit, .file = job.files[i]});
      if (job.files[i].length > kLargestFile) status = plan_.contents.file_of(unit).status();
    } else if (!plan_.cache.is_on() || !take_cached(job, i, filled)) {
      status = plan_.contents.add_parts(unit, place, parts_);
    }
    if (status.ok()) status = plan_.contents.add_fields(unit, place, parts_);
    if (status.ok()) continue;
    parts_.resize(before);
    if (!has_fault(filled, i)) filled.faults.push_back({i, true, std::move(status)});
  }
  files_.clear();
  for (const Part& part : parts_) files_.push_back(part.file);
}

bool SampleReader::take_cached(const PieceJob& job, std::size_t place, Filled& filled) {
  const std::uint64_t sample = job.plan.samples[place];
  const std::optional<ImageView> view = plan_.cache.find(sample);
  if (!view) return false;
  clock_.begin();
  Status status =
      plan_.contents.transform()->apply(*view, occasion(job, sample), scratch_, row_of(job, place));
  clock_.end(Stage::transform);
  if (status.ok()) {
    ++filled.cached;
  } else {
    filled.faults.push_back({place, false, std::move(status).with_context(name_of(plan_.source, sample))});
  }
  return true;
}

Status SampleReader::check(const Part& part, std::span<const std::byte> bytes) const {
  if (plan_.check == Check::none || !part.is_whole) return Status();
  return plan_.source.check(part.sample, part.file, bytes);  // names shard and sample itself
}

Status SampleReader::take(const Part& part, std::size_t place, const PieceJob& job) {
  if (part.purpose == Part::Purpose::bytes)
    return take_bytes(part, place,
                      {job.memory.data.get() + job.memory.offsets[part.place], part.file.length});
  const Result<std::span<const std::byte>> file = fetcher_.view(place);
  if (!file.ok()) return explain(part, file.status());
  has_come_ = true;
  clock_.end(Stage::read);
  RETURN_IF_ERROR(check(part, *file));
  clock_.end(Stage::check);
  Status status;
  switch (part.purpose) {
    case Part::Purpose::image:
      status = take_image(part, *file, job);
      break;
    case Part::Purpose::array:
      status = take_array(part, *file, row_of(job, part.place));
      break;
    case Part::Purpose::tokens:
      status = take_tokens(part, *file, row_of(job, part.place));
      break;
    case Part::Purpose::fields:
      status = take_fields(part, *file, job.memory);
      break;
    case Part::Purpose::bytes:
      break;
  }
  clock_.end(Stage::decode);
  return status.ok() ? status : explain(part, std::move(status));
}

Status SampleReader::take_bytes(const Part& part, std::size_t place, std::span<std::byte> out) {
  Status status = fetcher_.copy(place, out);
  if (!status.ok()) return explain(part, std::move(status));
  has_come_ = true;
  clock_.end(Stage::read);
  status = check(part, out);
  clock_.end(Stage::check);
  return status;
}

Status SampleReader::take_image(const Part& part, std::span<const std::byte> file, const PieceJob& job) {
  const std::span<std::byte> out = row_of(job, part.place);
  const Occasion when = occasion(job, part.sample);
  const Status status = plan_.cache.is_on()
                            ? decode_and_keep(file, when, out)
                            : plan_.contents.transform()->apply_to_file(file, when, scratch_, out);
  // Invalid is what is no image to us, and also an image that an operation does not fit: a mistake in the
  // transform.
  if (status.code() == Code::invalid && !inspect_image(file).ok()) return corrupt("{}", status.message());
  return status;
}

Status SampleReader::decode_and_keep(std::span<const std::byte> file, const Occasion& when,
                                     std::span<std::byte> out) {
  RETURN_IF_ERROR(decode_image(file, image_));
  clock_.end(Stage::decode);
  plan_.cache.keep(when.sample, image_.view());
  RETURN_IF_ERROR(plan_.contents.transform()->apply(image_.view(), when, scratch_, out));
  clock_.end(Stage::transform);
  return Status();
}

Status SampleReader::take_array(const Part& part, std::span<const std::byte> file, std::span<std::byte> out) {
  const std::string_view component = plan_.source.samples().components()[part.file.component].name;
  std::span<const std::byte> elements = file;
  if (component == "npy" || component.ends_with(".npy")) {
    Result<NpyInfo> info = read_npy(file);
    if (!info.ok()) return corrupt("{}", info.status().message());
    if (info->element != plan_.contents.element() || info->shape != plan_.contents.shape()) {
      return corrupt("{}: expected {} of {}, found {} of {}", component, shape_text(plan_.contents.shape()),
                     to_text(plan_.contents.element()), shape_text(info->shape), to_text(info->element));
    }
    elements = file.subspan(info->data_at);
  } else if (file.size() != out.size()) {
    return corrupt("{}: expected {} bytes ({} of {}), found {}", component, out.size(),
                   shape_text(plan_.contents.shape()), to_text(plan_.contents.element()), file.size());
  }
  std::memcpy(out.data(), elements.data(), out.size());
  return Status();
}

Status SampleReader::take_tokens(const Part& part, std::span<const std::byte> file,
                                 std::span<std::byte> out) {
  const TokenOptions& options = plan_.contents.token_options();
  std::byte* to = out.data() + part.to * size_of(options.element);
  if (widen_tokens(options.stored, options.element, file.subspan(part.skip, part.count), to)) return Status();
  return corrupt("tokens: one is negative or does not fit {}", to_text(options.element));
}

Status SampleReader::take_fields(const Part& part, std::span<const std::byte> file, Batch::Memory& memory) {
  const auto& [fields, first] = plan_.contents.field_groups()[part.group];
  OK_OR_RETURN(values, read_fields(file, fields));
  for (std::size_t i = 0; i < values.size(); ++i)
    memory.columns[first + i].set(part.place, std::move(values[i]));
  return Status();
}

}  // namespace stoker::data
