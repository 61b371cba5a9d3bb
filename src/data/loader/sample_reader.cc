#include "data/loader/sample_reader.h"

#include <algorithm>

#include "data/decode/decode.h"

namespace stoker::data {

std::string name_of(const formats::ShardSource& source, std::uint64_t sample) {
  const formats::SampleTable& table = source.samples();
  const std::string& shard = source.split().shards[table.place(sample).shard].file;
  const std::string_view key = table.key(sample);
  if (key.empty()) return format("sample {} (in shard '{}')", sample, shard);
  return format("sample '{}' (in shard '{}')", printable(key), shard);
}

// Adds which sample it was; what is stored wrongly is damaged, the rest has failed.
Outcome SampleReader::explain(std::uint64_t sample, Status& error) const {
  error = std::move(error).with_context(name_of(plan_.source, sample));
  return error.code() == Code::corrupt ? Outcome::damaged : Outcome::failed;
}

Result<std::span<const std::byte>> SampleReader::stored(const formats::Locator& locator) {
  read_ += locator.length;
  if (plan_.memory) return plan_.memory->view(locator);
  bytes_.resize(locator.length);
  RETURN_IF_ERROR(plan_.source.read(locator.shard, locator.offset, bytes_));
  return std::span<const std::byte>(bytes_);
}

Outcome SampleReader::fetch(std::uint64_t sample, std::span<const std::byte>& file, Status& error) {
  const std::optional<formats::Locator> locator = plan_.source.samples().image(sample);
  if (!locator || locator->length > kLargestFile) {
    error =
        corrupt("{}: {}", name_of(plan_.source, sample), locator ? "an image of over 1GiB" : "has no image");
    return Outcome::damaged;
  }
  const Result<std::span<const std::byte>> bytes = stored(*locator);
  error = bytes.status();
  if (!error.ok()) return explain(sample, error);
  clock_.end(Stage::read);
  if (plan_.check == Check::crc) {
    error = plan_.source.check(sample, *locator, *bytes);  // names shard and sample itself
    if (!error.ok()) return Outcome::damaged;
    clock_.end(Stage::check);
  }
  file = *bytes;
  return Outcome::whole;
}

Outcome SampleReader::read_image(const Occasion& occasion, std::span<std::byte> out, Status& error) {
  clock_.begin();
  if (const std::optional<ImageView> view = plan_.cache.find(occasion.sample)) {
    error = transform_->apply(*view, occasion, scratch_, out);
    clock_.end(Stage::transform);
    if (error.ok()) return Outcome::cached;
    error = std::move(error).with_context(name_of(plan_.source, occasion.sample));
    return Outcome::failed;
  }
  std::span<const std::byte> file;
  const Outcome outcome = fetch(occasion.sample, file, error);
  if (outcome != Outcome::whole) return outcome;
  error = plan_.cache.is_on() ? decode_and_keep(file, occasion, out)
                              : transform_->apply_to_file(file, occasion, scratch_, out);
  clock_.end(Stage::decode);
  if (error.ok()) return Outcome::whole;
  error = std::move(error).with_context(name_of(plan_.source, occasion.sample));
  // Invalid is what is no image to us, and also an image that an operation does not fit: a mistake in the
  // transform.
  const bool is_no_image = error.code() == Code::invalid && !inspect_image(file).ok();
  return error.code() == Code::corrupt || is_no_image ? Outcome::damaged : Outcome::failed;
}

Status SampleReader::decode_and_keep(std::span<const std::byte> file, const Occasion& occasion,
                                     std::span<std::byte> out) {
  RETURN_IF_ERROR(decode_image(file, image_));
  clock_.end(Stage::decode);
  plan_.cache.keep(occasion.sample, image_.view());
  RETURN_IF_ERROR(transform_->apply(image_.view(), occasion, scratch_, out));
  clock_.end(Stage::transform);
  return Status();
}

Outcome SampleReader::read_bytes(std::uint64_t sample, const formats::Locator& locator,
                                 std::span<std::byte> out, Status& error) {
  clock_.begin();
  if (plan_.memory) {
    const Result<std::span<const std::byte>> bytes = stored(locator);
    error = bytes.status();
    if (error.ok()) std::copy(bytes->begin(), bytes->end(), out.begin());
  } else {
    read_ += locator.length;
    error = plan_.source.read(locator.shard, locator.offset, out);
  }
  if (!error.ok()) return explain(sample, error);
  clock_.end(Stage::read);
  if (plan_.check == Check::none) return Outcome::whole;
  error = plan_.source.check(sample, locator, out);
  clock_.end(Stage::check);
  return error.ok() ? Outcome::whole : Outcome::damaged;
}

}  // namespace stoker::data
