#include "data/loader/sample_reader.h"

#include "data/decode/decode.h"

namespace stoker::data {
namespace {

// Larger files are no images; the bound comes before memory is taken for them.
constexpr std::uint64_t kLargestFile = 1u << 30;

}  // namespace

std::string name_of(const formats::ShardSource& source, std::uint64_t sample) {
  const formats::SampleTable& table = source.samples();
  const std::string& shard = source.split().shards[table.place(sample).shard].file;
  const std::string_view key = table.key(sample);
  if (key.empty()) return format("sample {} (in shard '{}')", sample, shard);
  return format("sample '{}' (in shard '{}')", printable(key), shard);
}

Outcome SampleReader::fetch(std::uint64_t sample, Status& error) {
  const std::optional<formats::Locator> locator = source_.samples().image(sample);
  if (!locator || locator->length > kLargestFile) {
    error = corrupt("{}: {}", name_of(source_, sample), locator ? "an image of over 1GiB" : "has no image");
    return Outcome::damaged;
  }
  bytes_.resize(locator->length);
  error = source_.read(locator->shard, locator->offset, bytes_);
  if (!error.ok()) {
    error = std::move(error).with_context(name_of(source_, sample));
    return error.code() == Code::corrupt ? Outcome::damaged : Outcome::failed;
  }
  error = source_.check(sample, *locator, bytes_);  // names shard and sample itself
  if (!error.ok()) return Outcome::damaged;
  error = decode_image(bytes_, image_);
  if (error.ok()) return Outcome::decoded;
  error = std::move(error).with_context(name_of(source_, sample));
  return error.code() == Code::unavailable ? Outcome::failed : Outcome::damaged;
}

Outcome SampleReader::read(const Occasion& occasion, std::span<std::byte> out, Status& error) {
  Outcome outcome = Outcome::cached;
  std::optional<ImageView> view = cache_.find(occasion.sample);
  if (!view) {
    outcome = fetch(occasion.sample, error);
    if (outcome != Outcome::decoded) return outcome;
    view = image_.view();
    cache_.keep(occasion.sample, *view);
  }
  error = transform_.apply(*view, occasion, scratch_, out);
  if (error.ok()) return outcome;
  error = std::move(error).with_context(name_of(source_, occasion.sample));
  return Outcome::failed;
}

}  // namespace stoker::data
