#include "format/manifest.h"

#include <algorithm>
#include <cmath>

namespace stoker::formats {

namespace {

constexpr ByteCount kManifestLimit = 1_GiB;

// Strings with their length before them, so that no content can pass for another.
std::string counted(std::string_view text) { return format("{}:{}", text.size(), text); }

}  // namespace

Digest shard_hash(std::span<const Digest> blocks) { return sha256(std::as_bytes(blocks)); }

void ImageStatistics::add(const ImageStatistics& other) {
  if (other.images == 0) return;
  const bool first = images == 0;
  width_min = first ? other.width_min : std::min(width_min, other.width_min);
  height_min = first ? other.height_min : std::min(height_min, other.height_min);
  width_max = std::max(width_max, other.width_max);
  height_max = std::max(height_max, other.height_max);
  images += other.images;
  progressive += other.progressive;
  grayscale += other.grayscale;
  cmyk += other.cmyk;
  alpha += other.alpha;
  misnamed += other.misnamed;
  encoded_anew += other.encoded_anew;
  pixels += other.pixels;
  channels.add(other.channels);
}

void ChannelSums::add(const ChannelSums& other) {
  pixels += other.pixels;
  for (std::size_t c = 0; c < sum.size(); ++c) {
    sum[c] += other.sum[c];
    square_sum[c] += other.square_sum[c];
  }
}

double ChannelSums::mean(std::size_t c) const {
  return static_cast<double>(sum[c]) / static_cast<double>(pixels) / 255;
}

double ChannelSums::deviation(std::size_t c) const {
  const double square = static_cast<double>(square_sum[c]) / static_cast<double>(pixels) / (255.0 * 255.0);
  return std::sqrt(std::max(0.0, square - mean(c) * mean(c)));
}

std::uint64_t Manifest::samples() const {
  std::uint64_t sum = 0;
  for (const SplitInfo& split : splits) sum += split.samples;
  return sum;
}

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const SplitInfo& split : splits) {
    for (const ShardInfo& shard : split.shards) sum += shard.bytes;
  }
  return sum;
}

std::uint64_t Manifest::shard_count() const {
  std::uint64_t sum = 0;
  for (const SplitInfo& split : splits) sum += split.shards.size();
  return sum;
}

Result<const SplitInfo*> Manifest::split(std::string_view name) const {
  if (name.empty() && splits.size() == 1) return &splits[0];
  std::vector<std::string_view> names;
  for (const SplitInfo& candidate : splits) {
    if (candidate.name == name) return &candidate;
    names.push_back(candidate.name);
  }
  if (name.empty()) {
    std::string list;
    for (std::string_view n : names) list += format("{}{}", list.empty() ? "" : ", ", n);
    return invalid("dataset {}: has {} splits, name one (one of: {})", short_version(), splits.size(), list);
  }
  return not_found("dataset {}: no split '{}'{}", short_version(), printable(name), suggestion(name, names));
}

std::string_view to_text(BlockHash hash) { return hash == BlockHash::sha256 ? "sha256" : "crc32c"; }

void BlockHasher::update(std::span<const std::byte> bytes) {
  if (hash_ == BlockHash::sha256) {
    sha256_.update(bytes);
  } else {
    crc_ = crc32c(bytes, crc_);
  }
}

void BlockHasher::update(std::span<const std::byte> bytes, std::uint32_t crc32c) {
  if (hash_ == BlockHash::sha256) {
    sha256_.update(bytes);
  } else {
    crc_ = crc32c_of_both(crc_, crc32c, bytes.size());
  }
}

Digest BlockHasher::finish() {
  if (hash_ == BlockHash::sha256) return sha256_.finish();
  Digest digest{};
  for (std::size_t i = 0; i < sizeof crc_; ++i) digest[i] = static_cast<std::byte>(crc_ >> (24 - 8 * i));
  crc_ = 0;
  return digest;
}

Digest block_digest(BlockHash hash, std::span<const std::byte> block) {
  BlockHasher hasher(hash);
  hasher.update(block);
  return hasher.finish();
}

bool leaves_labels_to_index(const Schema& schema) { return schema.has_labels && schema.container == "tar"; }

std::string dataset_version(const Manifest& manifest) {
  const Schema& schema = manifest.schema;
  std::string text = "stoker-dataset-1\n";
  text += format("container {}\n", counted(schema.container));
  text += format("components {}\n", schema.components.size());
  for (const ComponentInfo& component : schema.components) {
    text += format("{} {}\n", counted(component.name), component.is_image ? "image" : "bytes");
  }
  text += format("labels {}\n", schema.has_labels ? "int64" : "none");
  text += format("classes {}\n", schema.classes.size());
  for (const std::string& name : schema.classes) text += counted(name) + "\n";
  if (schema.block_hash != BlockHash::sha256) text += format("blocks {}\n", to_text(schema.block_hash));
  if (manifest.content) text += format("content {}\n", hex(*manifest.content));
  text += format("splits {}\n", manifest.splits.size());
  for (const SplitInfo& split : manifest.splits) {
    text += format("{} {}\n", counted(split.name), split.shards.size());
    for (const ShardInfo& shard : split.shards) text += hex(shard.hash) + "\n";
  }
  return hex(sha256(text));
}

namespace {

// By their names; of a folder that cannot be listed nothing is known.
bool holds_shards(const Path& folder) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  return names.ok() && std::ranges::any_of(*names, [](std::string_view name) {
           constexpr std::string_view kEndings[] = {".tar",  ".tfrecord", ".parquet", ".h5",  ".hdf5",
                                                    ".zarr", ".zarr.zip", ".mds",     ".npy", ".npz"};
           return std::ranges::any_of(kEndings,
                                      [&](std::string_view ending) { return name.ends_with(ending); });
         });
}

}  // namespace

Result<Manifest> read_manifest(const Path& dataset) {
  const std::string name = printable(dataset.string());
  const Path file = dataset / kManifestFile;
  if (!folder_exists(dataset)) {
    if (!path_exists(dataset)) return not_found("{}: no such dataset", name);
    return invalid("{}: is not a folder (a dataset is a folder with manifest.json)", name)
        .cure("stoker data info {}: says what is in it", shell_quote(dataset.string()));
  }
  if (!path_exists(file)) {
    if (path_exists(dataset / kPendingFolder)) {
      return not_found("{}: is not finished: packing it was interrupted", name)
          .cure("the same `stoker data pack` again: it goes on where it stopped");
    }
    const std::string_view maker = holds_shards(dataset) ? "index" : "pack FOLDER";
    return not_found("{}: is no dataset: it has no manifest.json", name)
        .cure("stoker data {} {}", maker, shell_quote(dataset.string()));
  }
  OK_OR_RETURN(text, read_file(file, kManifestLimit));
  return parse_manifest(text, printable(file.string()));
}

}  // namespace stoker::formats
