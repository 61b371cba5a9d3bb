#include "data/pack/shard_plan.h"

#include <algorithm>

#include "format/tar.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kPreferredBytes = 1'000'000'000;
constexpr std::uint64_t kSmallestBytes = 4u << 20;  // one hash block
constexpr std::uint64_t kReaders = 8;
constexpr std::uint64_t kMostShards = 10'000;

std::uint64_t pieces(std::uint64_t bytes, std::uint64_t piece) {
  return std::max<std::uint64_t>(1, (bytes + piece - 1) / piece);
}

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// FNV-1a and a finisher: spreads keys evenly, needs no secret and never changes.
std::uint64_t spread(std::string_view key) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return mix(hash);
}

}  // namespace

SplitSizing size_split(std::uint64_t samples, std::uint64_t bytes, const ShardSizing& wanted) {
  SplitSizing sizing{.files = 0, .samples = samples, .bytes = bytes, .shards = 1, .reason = {}};
  if (wanted.shards) {
    sizing.shards = static_cast<std::uint64_t>(*wanted.shards);
    sizing.reason = "as --shards says";
  } else if (wanted.shard_size) {
    sizing.shards = pieces(bytes, std::max<std::uint64_t>(1, wanted.shard_size->value));
    sizing.reason = "as --shard-size says";
  } else {
    sizing.shards = pieces(bytes, kPreferredBytes);
    sizing.reason = "about 1 GB each: long reads, few files";
    if (sizing.shards > kMostShards) {
      sizing.shards = kMostShards;
      sizing.reason = "more than 10 000 files would be slow to list";
    } else if (sizing.shards < kReaders) {
      sizing.shards = kReaders;
      sizing.reason = "fewer than 8 would starve 8 readers";
    }
    if (const std::uint64_t most = std::max<std::uint64_t>(1, bytes / kSmallestBytes); sizing.shards > most) {
      sizing.shards = most;
      sizing.reason = "smaller ones than 4 MiB would not be worth a file";
    }
  }
  if (sizing.shards > samples) {
    sizing.shards = std::max<std::uint64_t>(1, samples);
    sizing.reason = "one per sample, there are no more";
  }
  return sizing;
}

std::uint64_t archive_bytes(const Source& source, const SourceSample& sample) {
  const std::string key = source.key(sample);
  std::uint64_t bytes = 0;
  bool has_label_file = false;
  for (std::uint32_t i = 0; i < sample.files; ++i) {
    const SourceFile& file = source.file(sample, i);
    const std::string extension = extension_of(file.name);
    has_label_file = has_label_file || extension == "cls";
    bytes += formats::tar_member_bytes(format("{}.{}", key, extension), file.bytes);
  }
  const bool writes_label = !has_label_file && source.folders[sample.folder].label >= 0;
  return bytes + (writes_label ? formats::tar_member_bytes(key + ".cls", 1) : 0);
}

std::vector<ShardSpec> deal(const Source& source, std::uint32_t split, std::uint64_t shards,
                            SampleOrder order) {
  std::vector<SourceSample> samples = source.samples[split];
  if (order == SampleOrder::shuffled) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> ranked;  // position breaks ties
    ranked.reserve(samples.size());
    for (std::uint32_t i = 0; i < samples.size(); ++i) ranked.emplace_back(spread(source.key(samples[i])), i);
    std::sort(ranked.begin(), ranked.end());
    std::vector<SourceSample> shuffled;
    shuffled.reserve(samples.size());
    for (const auto& [hash, i] : ranked) shuffled.push_back(samples[i]);
    samples = std::move(shuffled);
  }
  std::vector<ShardSpec> dealt;
  for (std::uint64_t s = 0; s < shards; ++s) {
    const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(s * samples.size() / shards);
    const auto end = samples.begin() + static_cast<std::ptrdiff_t>((s + 1) * samples.size() / shards);
    ShardSpec& spec = dealt.emplace_back();
    spec.file = format("{}-{:06}.tar", source.splits[split], s);
    spec.split = split;
    spec.samples.assign(begin, end);
    for (const SourceSample& sample : spec.samples) spec.files += sample.files;
  }
  return dealt;
}

}  // namespace stoker::data
