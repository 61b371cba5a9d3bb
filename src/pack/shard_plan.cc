#include "pack/shard_plan.h"

#include <algorithm>
#include <map>

#include "archive/tar.h"
#include "arrays/samples/writer.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "pack/pack.h"
#include "sources/order_hash.h"

namespace stoker::pack {

namespace {

constexpr std::uint64_t kImageBytes = 1'000'000'000;  // common advice: 256 MB to 2 GB
constexpr std::uint64_t kTextBytes = 4'000'000'000;   // common advice: 1 to 10 GB
constexpr std::uint64_t kSmallestBytes = 4u << 20;    // one hash block
constexpr std::uint64_t kReaders = 8;
constexpr std::uint64_t kMaxShards = 10'000;

std::uint64_t pieces(std::uint64_t bytes, std::uint64_t piece) {
  return std::max<std::uint64_t>(1, (bytes + piece - 1) / piece);
}

// The same number of shards for each reader, so that all read the same amount.
Status round_to_readers(std::string_view subject, const TargetReaders& wanted, SplitSizing& sizing) {
  const std::uint64_t readers = wanted.readers();
  const std::string whose =
      format("{} x {}", counted(wanted.ranks, "rank"), counted(wanted.workers, "worker"));
  if (sizing.samples < readers) {
    Status status = invalid("{}: {} are too few for {} readers (--for ranks={},workers={})", subject,
                            counted(sizing.samples, "sample"), readers, wanted.ranks, wanted.workers);
    const std::uint64_t workers = sizing.samples / wanted.ranks;
    if (workers == 0) return status;
    return std::move(status).cure("--for ranks={},workers={}", wanted.ranks, workers);
  }
  const std::uint64_t each = (sizing.shards + readers - 1) / readers;
  if (each * readers <= sizing.samples) {
    sizing.shards = each * readers;
    sizing.reason = each == 1 ? format("{}: one for each", whose) : format("{}: {} for each", whose, each);
  } else {
    sizing.shards = sizing.samples;
    sizing.reason = "one per sample";
  }
  return {};
}

void choose_shard_count(const ShardSizing& wanted, SplitSizing& sizing) {
  sizing.shards = pieces(sizing.bytes, wanted.is_text ? kTextBytes : kImageBytes);
  sizing.reason = wanted.is_text ? "about 4 GB each for sequential reads" : "about 1 GB each for long reads";
  if (sizing.shards > kMaxShards) {
    sizing.shards = kMaxShards;
    sizing.reason = "more than 10 000 files would be slow to list";
  } else if (sizing.shards < kReaders && !wanted.readers) {
    sizing.shards = kReaders;
    sizing.reason = "fewer than 8 would starve 8 readers";
  }
  if (wanted.readers) return;
  const std::uint64_t most = std::max<std::uint64_t>(1, sizing.bytes / kSmallestBytes);
  if (sizing.shards > most) {
    sizing.shards = most;
    sizing.reason = "shards under 4 MiB are not worthwhile";
  }
}

}  // namespace

Result<SplitSizing> size_split(std::string_view subject, std::uint64_t samples, std::uint64_t bytes,
                               const ShardSizing& wanted) {
  SplitSizing sizing{.files = 0, .samples = samples, .bytes = bytes, .shards = 1, .reason = {}};
  if (wanted.shards) {
    sizing.shards = static_cast<std::uint64_t>(*wanted.shards);
    sizing.reason = "set by --shards";
    if (wanted.readers && sizing.shards < wanted.readers->readers()) {
      return invalid("{}: {} are fewer than {} readers (--shards, --for ranks={},workers={})", subject,
                     counted(sizing.shards, "shard"), wanted.readers->readers(), wanted.readers->ranks,
                     wanted.readers->workers);
    }
  } else if (wanted.shard_size) {
    sizing.shards = pieces(bytes, std::max<std::uint64_t>(1, wanted.shard_size->value));
    sizing.reason = "set by --shard-size";
  } else {
    choose_shard_count(wanted, sizing);
  }
  if (wanted.readers && !wanted.shards)
    STOKER_RETURN_IF_ERROR(round_to_readers(subject, *wanted.readers, sizing));
  if (sizing.shards > samples) {
    sizing.shards = std::max<std::uint64_t>(1, samples);
    sizing.reason = "one per sample";
  }
  return sizing;
}

std::string label_json(const std::vector<std::string>& classes, std::int64_t label) {
  nlohmann::ordered_json json = {{"label", label}};
  if (static_cast<std::size_t>(label) < classes.size())
    json["class"] = classes[static_cast<std::size_t>(label)];
  return json_text(json);
}

void SampleBytes::add(const SampleBytes& other) {
  payload += other.payload;
  tar += other.tar;
  tfrecord += other.tfrecord;
  parquet += other.parquet;
  arrays += other.arrays;
}

std::uint64_t SampleBytes::in(dataset::ContainerKind kind) const {
  switch (kind) {
    case dataset::ContainerKind::tar:
      return tar;
    case dataset::ContainerKind::tfrecord:
      return tfrecord;
    case dataset::ContainerKind::parquet:
      return parquet;
    case dataset::ContainerKind::hdf5:
    case dataset::ContainerKind::zarr:
    case dataset::ContainerKind::zarr_2:
    case dataset::ContainerKind::mds:  // not writable
    case dataset::ContainerKind::npy:
      break;
  }
  return arrays;
}

SampleBytes sample_bytes(const sources::PackSource& source, const sources::SourceSample& sample,
                         LabelMembers labels) {
  // Framing, key and label of a record; name and lengths of each file. Approximate.
  constexpr std::uint64_t kRecord = 56;
  constexpr std::uint64_t kRecordFile = 16;
  const std::size_t folder = source.folders[sample.folder].member.size() + 1;
  SampleBytes bytes;
  bool has_label = sample.label >= 0;
  for (std::uint32_t i = 0; i < sample.files; ++i) {
    const sources::SourceFile& file = source.file(sample, i);
    if (source.has_label_files && sources::extension_of(file.name) == "cls") {
      has_label = true;
      continue;
    }
    bytes.payload += file.bytes;
    bytes.tfrecord += kRecordFile + file.bytes;
    bytes.parquet += file.bytes;
    bytes.arrays += file.bytes;
    if (folder + file.name.size() <= archive::kTarShortName) {
      bytes.tar += archive::kTarBlock +
                   (file.bytes + archive::kTarBlock - 1) / archive::kTarBlock * archive::kTarBlock;
    } else {
      bytes.tar += archive::tar_member_bytes(
          format("{}.{}", source.key(sample), sources::extension_of(file.name)), file.bytes);
    }
  }
  bytes.tfrecord += kRecord + folder + source.file(sample, 0).name.size();
  bytes.arrays += arrays::kSampleArrayBytes + folder + source.file(sample, 0).name.size();
  bytes.parquet += parquet::kParquetRowBytes + folder + source.file(sample, 0).name.size();
  if (has_label && labels != LabelMembers::index)
    bytes.tar += archive::tar_member_bytes(source.key(sample) + ".json", 1);
  return bytes;
}

parquet::ParquetColumns columns_of(const sources::PackSource& source) {
  std::map<std::string, std::uint64_t> bytes;
  for (const sources::SourceFolder& folder : source.folders) {
    for (const sources::SourceFile& file : folder.files)
      bytes[sources::extension_of(file.name)] += file.bytes;
  }
  if (source.has_label_files) bytes.erase("cls");
  parquet::ParquetColumns shape;
  shape.has_labels = source.has_labels();
  for (const auto& [name, sum] : bytes) shape.files.push_back(name);
  std::stable_partition(shape.files.begin(), shape.files.end(), sources::is_main_image);
  for (std::size_t i = 0; i < shape.files.size(); ++i) {
    if (bytes[shape.files[i]] > bytes[shape.files[shape.streamed]]) shape.streamed = i;
  }
  return shape;
}

namespace {

// Positions of the samples in the requested order.
std::vector<std::uint32_t> sample_order(const sources::PackSource& source,
                                        const std::vector<sources::SourceSample>& samples,
                                        ShardAssignment how) {
  struct Placed {
    double at = 0;  // relative position in its class; 0 if classes do not matter
    std::uint64_t hash = 0;
    std::uint32_t sample = 0;
    auto operator<=>(const Placed&) const = default;
  };
  std::vector<Placed> placed;
  placed.reserve(samples.size());
  for (std::uint32_t i = 0; i < samples.size(); ++i)
    placed.push_back({0, order_hash(source, samples[i], how.seed), i});
  if (how.order == SampleOrder::stratified) {
    std::sort(placed.begin(), placed.end(), [&](const Placed& a, const Placed& b) {
      const std::int32_t one = samples[a.sample].label;
      const std::int32_t two = samples[b.sample].label;
      return one != two ? one < two : a < b;
    });
    for (std::size_t begin = 0; begin < placed.size();) {
      std::size_t end = begin;
      while (end < placed.size() && samples[placed[end].sample].label == samples[placed[begin].sample].label)
        ++end;
      for (std::size_t i = begin; i < end; ++i) {
        placed[i].at = (static_cast<double>(i - begin) + 0.5) / static_cast<double>(end - begin);
      }
      begin = end;
    }
  }
  std::sort(placed.begin(), placed.end());
  std::vector<std::uint32_t> order;
  order.reserve(placed.size());
  for (const Placed& p : placed) order.push_back(p.sample);
  return order;
}

}  // namespace

std::vector<ShardSpec> assign_samples(const sources::PackSource& source, std::uint32_t split,
                                      std::uint64_t shards, ShardAssignment how) {
  const std::vector<sources::SourceSample>& samples = source.samples[split];
  std::vector<std::uint32_t> order;
  if (how.order != SampleOrder::source) order = sample_order(source, samples, how);
  std::vector<ShardSpec> shards_out;
  for (std::uint64_t s = 0; s < shards; ++s) {
    const std::size_t begin = s * samples.size() / shards;
    const std::size_t end = (s + 1) * samples.size() / shards;
    ShardSpec& spec = shards_out.emplace_back();
    spec.file = format("{}-{:06}.{}", source.splits[split], s, shard_extension(how.container));
    spec.split = split;
    spec.samples.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const sources::SourceSample& sample = samples[order.empty() ? i : order[i]];
      spec.samples.push_back(sample);
      spec.files += sample.files;
    }
  }
  return shards_out;
}

}  // namespace stoker::pack
