#include "dataset/shard_source.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <sys/resource.h>

#include "base/hash.h"
#include "base/language/counted.h"
#include "base/thread.h"
#include "codec/chunks/chunk_reader.h"

namespace stoker::dataset {

SampleTable::SampleTable(std::vector<const IndexSection*> sections, const DatasetSchema& schema)
    : sections_(std::move(sections)), components_(schema.components), has_labels_(schema.has_labels) {
  std::uint64_t sum = 0;
  begin_.push_back(0);
  for (const IndexSection* section : sections_) {
    sum += section->samples();
    begin_.push_back(sum);
    std::vector<std::uint16_t>& numbers = renumber_.emplace_back();
    for (const std::string& name : section->names()) {
      const auto found = std::find_if(components_.begin(), components_.end(),
                                      [&](const ComponentInfo& c) { return c.name == name; });
      STOKER_CHECK(found != components_.end());  // open_dataset compared them
      numbers.push_back(static_cast<std::uint16_t>(found - components_.begin()));
    }
  }
  if (size() > 0) fill_buckets();
}

void SampleTable::fill_buckets() {
  constexpr std::size_t kPerSection = 4;
  while (size() >> bucket_shift_ >= kPerSection * sections_.size()) ++bucket_shift_;
  std::uint32_t section = 0;
  for (std::uint64_t bucket = 0; bucket <= (size() - 1) >> bucket_shift_; ++bucket) {
    while (begin_[section + 1] <= bucket << bucket_shift_) ++section;
    buckets_.push_back(section);
  }
  buckets_.push_back(static_cast<std::uint32_t>(sections_.size() - 1));
}

SampleTable::SamplePosition SampleTable::position(std::uint64_t sample) const {
  const std::uint64_t bucket = sample >> bucket_shift_;
  const auto at = [&](std::uint32_t section) { return begin_.begin() + section + 1; };
  const auto end = std::upper_bound(at(buckets_[bucket]), at(buckets_[bucket + 1]), sample);
  const auto shard = static_cast<std::uint32_t>(end - begin_.begin() - 1);
  return {.shard = shard, .sample = sample - begin_[shard]};
}

std::uint32_t SampleTable::component_count(std::uint64_t sample) const {
  const SamplePosition at = position(sample);
  return sections_[at.shard]->component_count(at.sample);
}

Locator SampleTable::locator(SamplePosition at, std::uint32_t which) const {
  const Component c = sections_[at.shard]->component(at.sample, which);
  return {.shard = at.shard,
          .component = renumber_[at.shard][c.name],
          .crc32c = c.crc32c,
          .offset = c.offset,
          .length = c.length};
}

Locator SampleTable::locate(std::uint64_t sample, std::uint32_t which) const {
  return locator(position(sample), which);
}

void SampleTable::locate(std::span<const std::uint64_t> samples, std::optional<std::uint16_t> component,
                         std::span<Locator> out) const {
  // Prefetch the index entries of a group together.
  constexpr std::size_t kGroup = 32;
  std::array<SamplePosition, kGroup> positions;
  for (std::size_t begin = 0; begin < samples.size(); begin += kGroup) {
    const std::size_t count = std::min(kGroup, samples.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      positions[i] = position(samples[begin + i]);
      sections_[positions[i].shard]->prefetch(positions[i].sample);
    }
    for (std::size_t i = 0; i < count; ++i) out[begin + i] = choose(positions[i], component);
  }
}

Locator SampleTable::choose(SamplePosition at, std::optional<std::uint16_t> component) const {
  const std::uint32_t count = sections_[at.shard]->component_count(at.sample);
  for (std::uint32_t which = 0; which < count; ++which) {
    const Locator found = locator(at, which);
    if (component ? found.component == *component : components_[found.component].is_image) return found;
  }
  return component ? Locator{.shard = at.shard, .length = kNoFile} : locator(at, 0);
}

std::optional<Locator> SampleTable::image(std::uint64_t sample) const {
  const SamplePosition at = position(sample);
  const std::uint32_t count = sections_[at.shard]->component_count(at.sample);
  for (std::uint32_t which = 0; which < count; ++which) {
    const Locator found = locator(at, which);
    if (components_[found.component].is_image) return found;
  }
  return std::nullopt;
}

std::optional<std::int64_t> SampleTable::label(std::uint64_t sample) const {
  if (!has_labels_) return std::nullopt;
  const SamplePosition at = position(sample);
  return sections_[at.shard]->label(at.sample);
}

void SampleTable::labels(std::span<const std::uint64_t> samples, std::span<std::int64_t> out) const {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const SamplePosition at = has_labels_ ? position(samples[i]) : SamplePosition{};
    out[i] = has_labels_ ? sections_[at.shard]->label(at.sample) : -1;
  }
}

std::vector<std::uint64_t> SampleTable::samples_per_chunk() const {
  std::vector<std::uint64_t> counts;
  for (const IndexSection* section : sections_) {
    const codec::ChunkMap* chunks = section->chunks();
    if (!chunks) {
      counts.push_back(section->samples());
      continue;
    }
    std::uint64_t before = 0;
    for (std::uint64_t sample = 0; sample < section->samples(); ++sample) {
      Component largest = section->component(sample, 0);
      for (std::uint32_t i = 1; i < section->component_count(sample); ++i) {
        const Component other = section->component(sample, i);
        if (other.length > largest.length) largest = other;
      }
      const std::uint64_t block = largest.length == 0 ? before : chunks->block(largest.offset);
      if (sample == 0 || block != before) counts.push_back(0);
      ++counts.back();
      before = block;
    }
  }
  return counts;
}

std::string_view SampleTable::key(std::uint64_t sample) const {
  const SamplePosition at = position(sample);
  return sections_[at.shard]->key(at.sample);
}

Status ShardSource::check(std::uint64_t sample, const Locator& locator,
                          std::span<const std::byte> bytes) const {
  const std::uint32_t found = crc32c(bytes);
  if (found == locator.crc32c && bytes.size() == locator.length) return {};
  return corrupt("{}: sample '{}' ({}): CRC-32C expected {:08x}, found {:08x}",
                 split().shards[locator.shard].file, printable(samples().key(sample)),
                 samples().components()[locator.component].name, locator.crc32c, found);
}

namespace {

Status compare(const Manifest& manifest, const SideIndex& index, std::string_view subject) {
  if (index.sections().size() != manifest.shard_count()) {
    return corrupt("{}: index has {} sections, the manifest {}", subject, index.sections().size(),
                   counted(manifest.shard_count(), "shard"));
  }
  std::size_t i = 0;
  for (const SplitInfo& split : manifest.splits) {
    for (const ShardInfo& shard : split.shards) {
      const IndexSection& section = index.sections()[i++];
      if (section.shard_hash() != shard.hash || section.shard_bytes() != shard.bytes ||
          section.samples() != shard.samples) {
        return corrupt("{}: the index section of {} belongs to a different shard", subject, shard.file);
      }
      if (section.has_labels() != manifest.schema.has_labels) {
        return corrupt("{}: manifest and index disagree on labels ({})", subject, shard.file);
      }
      for (const std::string& name : section.names()) {
        const auto& known = manifest.schema.components;
        if (std::none_of(known.begin(), known.end(),
                         [&](const ComponentInfo& c) { return c.name == name; })) {
          return corrupt("{}: component '{}' of the index is not in the manifest ({})", subject, name,
                         shard.file);
        }
      }
    }
  }
  return {};
}

}  // namespace

std::string short_hash(const Digest& digest) {
  constexpr std::size_t kShownDigits = 12;
  return hex(digest).substr(0, kShownDigits);
}

Status check_index_bytes(const Path& folder, const OpenDataset& opened) {
  const Manifest& manifest = opened.manifest;
  const std::string name = printable((folder / kIndexFile).string());
  const std::uint64_t bytes = opened.index.bytes().size();
  if (const Digest found = sha256(opened.index.bytes()); found != manifest.index_hash) {
    return corrupt("{}: does not match the manifest (SHA-256 expected {}, found {})", name,
                   short_hash(manifest.index_hash), short_hash(found));
  }
  if (bytes == manifest.index_bytes) return {};
  return corrupt("{}: has {} bytes, the manifest lists {}", name, bytes, manifest.index_bytes);
}

Result<OpenDataset> open_dataset(const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(manifest, read_manifest(folder));
  const Path file = folder / kIndexFile;
  STOKER_ASSIGN_OR_RETURN(index, SideIndex::open(file));
  const std::string subject = printable(folder.string());
  STOKER_RETURN_IF_ERROR(compare(manifest, index, subject));
  OpenDataset opened{std::move(manifest), std::move(index)};
  const bool is_known = opened.manifest.index_bytes == opened.index.bytes().size() &&
                        opened.manifest.index_table == opened.index.table_digest();
  // Hashing every byte takes 3 ms for 100 000 samples, so the table decides where the manifest has its hash.
  if (!is_known) STOKER_RETURN_IF_ERROR(check_index_bytes(folder, opened));
  return opened;
}

namespace {

using SteadyClock = std::chrono::steady_clock;

// A dataset in a node's cache (docs/formats/cache.md): a shard is an absolute link to the source, or a
// relative one to its copy, which takes the place of the other while a job stages the dataset.
constexpr auto kLookInterval = std::chrono::seconds(1);

bool is_in_cache(const Path& folder) { return path_exists(folder / "../../shards"); }

bool is_link_to_source(const Path& shard) {
  std::error_code error;
  return std::filesystem::read_symlink(shard, error).is_absolute();
}

// The file of a shard. Never changes.
struct ShardBytes {
  codec::ShardFile file;
  MappedFile map;
  std::unique_ptr<codec::ChunkReader> chunks;  // of a packed one
};

// A shard, opened on first use, and again when its copy is there.
struct OpenShard {
  std::atomic<const ShardBytes*> current{nullptr};
  std::atomic<bool> is_at_source{false};  // while a copy may come
  std::atomic<SteadyClock::rep> next_look{0};

  Mutex mutex;
  // At most two. The first stays: other threads read it.
  std::vector<std::unique_ptr<const ShardBytes>> opened STOKER_GUARDED_BY(mutex);
};

}  // namespace

struct LocalShardSource::Impl {
  Path folder;
  bool is_in_cache = false;
  OpenDataset dataset;
  const SplitInfo* split = nullptr;
  SampleTable samples;
  std::vector<OpenShard> shards;
  // Shared with the readers of all shards.
  std::shared_ptr<codec::ChunkCache> cache = std::make_shared<codec::ChunkCache>(kDefaultChunkCache);
  std::atomic<std::uint64_t> source_bytes{0};
  std::atomic<std::uint64_t> copy_bytes{0};

  // Shards from this number on are opened for each read, because a process has a limit of open files.
  std::size_t open_limit = max_open_shards();

  Result<const ShardBytes*> shard(std::uint32_t number);

 private:
  static std::size_t max_open_shards();
  Result<std::unique_ptr<const ShardBytes>> open(std::uint32_t number) const;
  const ShardBytes* look_for_copy(std::uint32_t number, const ShardBytes* current);
};

// A quarter of the limit, which is often 1024: other datasets and other code need open files too.
std::size_t LocalShardSource::Impl::max_open_shards() {
  constexpr std::size_t kLeast = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeast;
  return std::max<std::size_t>(kLeast, limit.rlim_cur / 4);
}

Result<const ShardBytes*> LocalShardSource::Impl::shard(std::uint32_t number) {
  OpenShard& shard = shards[number];
  if (const ShardBytes* current = shard.current.load(std::memory_order_acquire)) {
    return shard.is_at_source.load(std::memory_order_relaxed) ? look_for_copy(number, current) : current;
  }
  const MutexLock lock(shard.mutex);
  if (const ShardBytes* current = shard.current.load(std::memory_order_relaxed)) return current;
  const bool is_at_source = is_in_cache && is_link_to_source(folder / split->shards[number].file);
  STOKER_ASSIGN_OR_RETURN(bytes, open(number));
  shard.is_at_source.store(is_at_source, std::memory_order_relaxed);
  shard.next_look = (SteadyClock::now() + kLookInterval).time_since_epoch().count();
  shard.opened.push_back(std::move(bytes));
  const ShardBytes* const current = shard.opened.back().get();
  shard.current.store(current, std::memory_order_release);
  return current;
}

Result<std::unique_ptr<const ShardBytes>> LocalShardSource::Impl::open(std::uint32_t number) const {
  const ShardInfo& info = split->shards[number];
  const Path path = folder / info.file;
  const codec::ChunkMap* chunks = samples.sections()[number]->chunks();
  STOKER_ASSIGN_OR_RETURN(
      file, codec::ShardFile::open(path, chunks ? chunks->parts() : std::vector<codec::ShardPart>()));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (size != info.bytes) {
    return corrupt("{}: has {} bytes, the manifest lists {}", printable(path.string()), size, info.bytes);
  }
  auto bytes = std::make_unique<ShardBytes>();
  if (chunks) {
    bytes->chunks = std::make_unique<codec::ChunkReader>(*chunks, cache, printable(path.string()));
  } else {
    STOKER_ASSIGN_OR_RETURN(map, MappedFile::open(path));
    bytes->map = std::move(map);
  }
  if (number >= open_limit && (!chunks || chunks->parts().empty())) {
    STOKER_ASSIGN_OR_RETURN(reopened, codec::ShardFile::open(path, {{path.filename().string(), size}}));
    file = std::move(reopened);
  }
  bytes->file = std::move(file);
  return std::unique_ptr<const ShardBytes>(std::move(bytes));
}

// One thread looks, all other threads read on. Without a copy, or with one that cannot be opened, it is
// `current`.
const ShardBytes* LocalShardSource::Impl::look_for_copy(std::uint32_t number, const ShardBytes* current) {
  OpenShard& shard = shards[number];
  const SteadyClock::time_point now = SteadyClock::now();
  SteadyClock::rep next = shard.next_look.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < next) return current;
  const SteadyClock::rep later = (now + kLookInterval).time_since_epoch().count();
  if (!shard.next_look.compare_exchange_strong(next, later)) return current;
  if (is_link_to_source(folder / split->shards[number].file)) return current;
  auto copy = open(number);
  if (!copy.ok()) return current;
  const MutexLock lock(shard.mutex);
  shard.opened.push_back(std::move(*copy));
  current = shard.opened.back().get();
  shard.current.store(current, std::memory_order_release);
  shard.is_at_source.store(false, std::memory_order_relaxed);
  return current;
}

LocalShardSource::LocalShardSource(std::unique_ptr<Impl> parts) : impl_(std::move(parts)) {}
LocalShardSource::~LocalShardSource() = default;

Result<std::unique_ptr<LocalShardSource>> LocalShardSource::open(const Path& dataset,
                                                                 std::string_view split) {
  STOKER_ASSIGN_OR_RETURN(opened, open_dataset(dataset));
  auto parts = std::make_unique<Impl>();
  parts->folder = dataset;
  parts->is_in_cache = is_in_cache(dataset);
  parts->dataset = std::move(opened);
  const Manifest& manifest = parts->dataset.manifest;
  STOKER_ASSIGN_OR_RETURN(found, manifest.split(split));
  parts->split = found;
  std::size_t section = 0;
  for (const SplitInfo& before : manifest.splits) {
    if (&before == found) break;
    section += before.shards.size();
  }
  std::vector<const IndexSection*> sections;
  for (std::size_t i = 0; i < found->shards.size(); ++i) {
    sections.push_back(&parts->dataset.index.sections()[section + i]);
  }
  parts->samples = SampleTable(std::move(sections), manifest.schema);
  parts->shards = std::vector<OpenShard>(found->shards.size());
  return std::unique_ptr<LocalShardSource>(new LocalShardSource(std::move(parts)));
}

const Manifest& LocalShardSource::manifest() const { return impl_->dataset.manifest; }
const SplitInfo& LocalShardSource::split() const { return *impl_->split; }
const SampleTable& LocalShardSource::samples() const { return impl_->samples; }

Status LocalShardSource::read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const {
  STOKER_ASSIGN_OR_RETURN(opened, impl_->shard(shard));
  if (impl_->is_in_cache) {
    const bool is_at_source = impl_->shards[shard].is_at_source.load(std::memory_order_relaxed);
    (is_at_source ? impl_->source_bytes : impl_->copy_bytes).fetch_add(out.size(), std::memory_order_relaxed);
  }
  return opened->chunks ? opened->chunks->read(opened->file, offset, out) : opened->file.read_at(offset, out);
}

void LocalShardSource::will_need(std::uint32_t shard, std::uint64_t offset, std::uint64_t length) const {
  const Result<const ShardBytes*> opened = impl_->shard(shard);
  if (!opened.ok()) return;  // read() will report the error
  if ((*opened)->chunks) return (*opened)->chunks->will_need((*opened)->file, offset, length);
  (*opened)->file.will_need(offset, length);
}

Result<std::span<const std::byte>> LocalShardSource::map(std::uint32_t shard) const {
  STOKER_ASSIGN_OR_RETURN(opened, impl_->shard(shard));
  if (opened->chunks) return unavailable("{}: is packed", impl_->split->shards[shard].file);
  return opened->map.bytes();
}

void LocalShardSource::set_chunk_cache_limit(ByteCount limit) { impl_->cache->set_limit(limit); }

codec::ChunkCache::Counts LocalShardSource::chunk_cache_counts() const { return impl_->cache->counts(); }

LocalShardSource::ReadBytes LocalShardSource::read_bytes() const {
  return {.source = impl_->source_bytes.load(std::memory_order_relaxed),
          .copy = impl_->copy_bytes.load(std::memory_order_relaxed)};
}

}  // namespace stoker::dataset
