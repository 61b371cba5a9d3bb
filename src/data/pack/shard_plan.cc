#include "data/pack/shard_plan.h"

#include <algorithm>
#include <map>

#include "base/json/json.h"
#include "data/pack/pack.h"
#include "data/pack/source/order_hash.h"
#include "format/samples/writer.h"
#include "format/tar.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kImageBytes = 1'000'000'000;  // the field's advice: 256 MB to 2 GB
constexpr std::uint64_t kTextBytes = 4'000'000'000;   // 1 to 10 GB
constexpr std::uint64_t kSmallestBytes = 4u << 20;    // one hash block
constexpr std::uint64_t kReaders = 8;
constexpr std::uint64_t kMostShards = 10'000;

std::uint64_t pieces(std::uint64_t bytes, std::uint64_t piece) {
  return std::max<std::uint64_t>(1, (bytes + piece - 1) / piece);
}

// A whole number of shards for each reader, so that all read the same amount.
Status give_readers(std::string_view subject, const ReadersWanted& wanted, SplitSizing& sizing) {
  const std::uint64_t readers = wanted.readers();
  const std::string whose = format("{} ranks x {} workers", wanted.ranks, wanted.workers);
  if (sizing.samples < readers) {
    Status status = invalid("{}: {} samples cannot give {} readers a shard each (--for ranks={},workers={})",
                            subject, sizing.samples, readers, wanted.ranks, wanted.workers);
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
    sizing.reason = "one per sample, there are no more";
  }
  return {};
}

void choose(const ShardSizing& wanted, SplitSizing& sizing) {
  sizing.shards = pieces(sizing.bytes, wanted.is_text ? kTextBytes : kImageBytes);
  sizing.reason = wanted.is_text ? "about 4 GB each: read front to back, few files"
                                 : "about 1 GB each: long reads, few files";
  if (sizing.shards > kMostShards) {
    sizing.shards = kMostShards;
    sizing.reason = "more than 10 000 files would be slow to list";
  } else if (sizing.shards < kReaders && !wanted.readers) {
    sizing.shards = kReaders;
    sizing.reason = "fewer than 8 would starve 8 readers";
  }
  if (wanted.readers) return;
  const std::uint64_t most = std::max<std::uint64_t>(1, sizing.bytes / kSmallestBytes);
  if (sizing.shards > most) {
    sizing.shards = most;
    sizing.reason = "smaller ones than 4 MiB would not be worth a file";
  }
}

}  // namespace

Result<SplitSizing> size_split(std::string_view subject, std::uint64_t samples, std::uint64_t bytes,
                               const ShardSizing& wanted) {
  SplitSizing sizing{.files = 0, .samples = samples, .bytes = bytes, .shards = 1, .reason = {}};
  if (wanted.shards) {
    sizing.shards = static_cast<std::uint64_t>(*wanted.shards);
    sizing.reason = "as --shards says";
    if (wanted.readers && sizing.shards < wanted.readers->readers()) {
      return invalid("{}: {} shards are fewer than {} readers (--shards, --for ranks={},workers={})", subject,
                     sizing.shards, wanted.readers->readers(), wanted.readers->ranks,
                     wanted.readers->workers);
    }
  } else if (wanted.shard_size) {
    sizing.shards = pieces(bytes, std::max<std::uint64_t>(1, wanted.shard_size->value));
    sizing.reason = "as --shard-size says";
  } else {
    choose(wanted, sizing);
  }
  if (wanted.readers && !wanted.shards) RETURN_IF_ERROR(give_readers(subject, *wanted.readers, sizing));
  if (sizing.shards > samples) {
    sizing.shards = std::max<std::uint64_t>(1, samples);
    sizing.reason = "one per sample, there are no more";
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

std::uint64_t SampleBytes::in(ContainerKind kind) const {
  switch (kind) {
    case ContainerKind::tar:
      return tar;
    case ContainerKind::tfrecord:
      return tfrecord;
    case ContainerKind::parquet:
      return parquet;
    case ContainerKind::hdf5:
    case ContainerKind::zarr:
    case ContainerKind::zarr_2:
    case ContainerKind::mds:  // is not written
    case ContainerKind::npy:
      break;
  }
  return arrays;
}

SampleBytes sample_bytes(const Source& source, const SourceSample& sample, LabelMembers labels) {
  // Framing, key and label of a record; with each file's name and lengths. A few bytes more or less do not
  // matter here.
  constexpr std::uint64_t kRecord = 56;
  constexpr std::uint64_t kRecordFile = 16;
  const std::size_t folder = source.folders[sample.folder].member.size() + 1;
  SampleBytes bytes;
  bool has_label = sample.label >= 0;
  for (std::uint32_t i = 0; i < sample.files; ++i) {
    const SourceFile& file = source.file(sample, i);
    if (source.has_label_files && extension_of(file.name) == "cls") {
      has_label = true;
      continue;
    }
    bytes.payload += file.bytes;
    bytes.tfrecord += kRecordFile + file.bytes;
    bytes.parquet += file.bytes;
    bytes.arrays += file.bytes;
    if (folder + file.name.size() <= formats::kTarPlainName) {
      bytes.tar += formats::kTarBlock +
                   (file.bytes + formats::kTarBlock - 1) / formats::kTarBlock * formats::kTarBlock;
    } else {
      bytes.tar +=
          formats::tar_member_bytes(format("{}.{}", source.key(sample), extension_of(file.name)), file.bytes);
    }
  }
  bytes.tfrecord += kRecord + folder + source.file(sample, 0).name.size();
  bytes.arrays += formats::kSampleArrayBytes + folder + source.file(sample, 0).name.size();
  bytes.parquet += formats::kParquetRowBytes + folder + source.file(sample, 0).name.size();
  if (has_label && labels != LabelMembers::index)
    bytes.tar += formats::tar_member_bytes(source.key(sample) + ".json", 1);
  return bytes;
}

formats::ParquetShape columns_of(const Source& source) {
  std::map<std::string, std::uint64_t> bytes;
  for (const SourceFolder& folder : source.folders) {
    for (const SourceFile& file : folder.files) bytes[extension_of(file.name)] += file.bytes;
  }
  if (source.has_label_files) bytes.erase("cls");
  formats::ParquetShape shape;
  shape.has_labels = source.has_labels();
  for (const auto& [name, sum] : bytes) shape.files.push_back(name);
  std::stable_partition(shape.files.begin(), shape.files.end(), is_picture);
  for (std::size_t i = 0; i < shape.files.size(); ++i) {
    if (bytes[shape.files[i]] > bytes[shape.files[shape.streamed]]) shape.streamed = i;
  }
  return shape;
}

namespace {

// Positions of the samples in the wanted order.
std::vector<std::uint32_t> arrange(const Source& source, const std::vector<SourceSample>& samples,
                                   Dealing how) {
  struct Placed {
    double at = 0;  // how far into its class; 0 where classes do not matter
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

std::vector<ShardSpec> deal(const Source& source, std::uint32_t split, std::uint64_t shards, Dealing how) {
  const std::vector<SourceSample>& samples = source.samples[split];
  std::vector<std::uint32_t> order;
  if (how.order != SampleOrder::source) order = arrange(source, samples, how);
  std::vector<ShardSpec> dealt;
  for (std::uint64_t s = 0; s < shards; ++s) {
    const std::size_t begin = s * samples.size() / shards;
    const std::size_t end = (s + 1) * samples.size() / shards;
    ShardSpec& spec = dealt.emplace_back();
    spec.file = format("{}-{:06}.{}", source.splits[split], s, shard_ending(how.container));
    spec.split = split;
    spec.samples.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const SourceSample& sample = samples[order.empty() ? i : order[i]];
      spec.samples.push_back(sample);
      spec.files += sample.files;
    }
  }
  return dealt;
}

}  // namespace stoker::data
