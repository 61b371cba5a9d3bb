#include "dataset/array_view.h"

#include <algorithm>
#include <map>

#include "arrays/samples/hdf5_blocks.h"
#include "arrays/samples/layout.h"

namespace stoker::dataset {

namespace {

// The range of keys in a shard's `bytes`, after all files.
struct Keys {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

Keys keys_of(const IndexSection& section) {
  Keys keys{.begin = arrays::kHdf5FirstByte, .bytes = 0};
  for (std::uint64_t i = 0; i < section.samples(); ++i) {
    for (std::uint32_t c = 0; c < section.component_count(i); ++c) {
      const Component file = section.component(i, c);
      keys.begin = std::max(keys.begin, file.offset + file.length);
    }
    keys.bytes += section.key(i).size();
  }
  keys.begin -= arrays::kHdf5FirstByte;
  return keys;
}

// Whether the shard has its last key where ours have it.
Status check_written_by_pack(const Path& path, const IndexSection& section, const Keys& keys) {
  const auto foreign = [&] {
    return invalid("{}: was written by another tool: the view supports only Stoker's shards",
                   printable(path.string()))
        .cure("stoker data convert {} OUT --format hdf5", shell_quote(path.parent_path().string()));
  };
  if (section.chunks() || !section.has_keys() || section.samples() == 0) return foreign();
  const std::string_view last = section.key(section.samples() - 1);
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (size != section.shard_bytes())
    return corrupt("{}: has {} bytes, the index lists {}", printable(path.string()), size,
                   section.shard_bytes());
  std::string found(last.size(), '\0');
  const std::uint64_t end = arrays::kHdf5FirstByte + keys.begin + keys.bytes;
  if (end > section.shard_bytes()) return foreign();
  STOKER_RETURN_IF_ERROR(file.read_at(end - last.size(), std::as_writable_bytes(std::span(found))));
  return found == last ? Status() : foreign();
}

// The arrays of numbers of all shards.
class ViewArrays {
 public:
  explicit ViewArrays(std::span<const ViewedShard> shards) {
    for (const ViewedShard& shard : shards) {
      samples_ += shard.section->samples();
      has_labels_ = has_labels_ && shard.section->has_labels();
      for (const std::string& name : shard.section->names()) files_[name];
    }
    for (auto& [name, places] : files_) {
      // A sample without such a file: it ends before it begins.
      for (std::uint64_t i = 0; i < samples_; ++i) places.insert(places.end(), {1, 0});
    }
  }

  /// `before` are the bytes of the shards before it.
  void add(const IndexSection& section, const Keys& keys, std::uint64_t before) {
    std::vector<std::vector<std::uint64_t>*> places;
    for (const std::string& name : section.names()) places.push_back(&files_[name]);
    std::uint64_t key = before + keys.begin;
    for (std::uint64_t i = 0; i < section.samples(); ++i, ++sample_) {
      for (std::uint32_t c = 0; c < section.component_count(i); ++c) {
        const Component file = section.component(i, c);
        const std::uint64_t begin = before + file.offset - arrays::kHdf5FirstByte;
        std::uint64_t* const pair = places[file.name]->data() + 2 * sample_;
        pair[0] = begin;
        pair[1] = begin + file.length;
      }
      keys_.insert(keys_.end(), {key, key + section.key(i).size()});
      key += section.key(i).size();
      if (has_labels_) labels_.push_back(static_cast<std::uint64_t>(section.label(i)));
    }
  }

  std::uint64_t samples() const { return samples_; }
  bool has_labels() const { return has_labels_; }
  const std::map<std::string, std::vector<std::uint64_t>>& files() const { return files_; }
  const std::vector<std::uint64_t>& keys() const { return keys_; }
  const std::vector<std::uint64_t>& labels() const { return labels_; }

 private:
  std::uint64_t samples_ = 0;
  std::uint64_t sample_ = 0;
  bool has_labels_ = true;
  std::map<std::string, std::vector<std::uint64_t>> files_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> labels_;
};

// A file that grows; each block begins at a multiple of 8.
class Blocks {
 public:
  std::uint64_t add(std::string_view block) {
    out_.resize((out_.size() + 7) / 8 * 8, '\0');
    const std::uint64_t address = out_.size();
    out_ += block;
    return address;
  }
  std::uint64_t add_numbers(const std::vector<std::uint64_t>& numbers) {
    return add({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::uint64_t)});
  }
  std::string finish(std::uint64_t root) {
    const std::string head = arrays::hdf5_superblock(out_.size(), root);
    return out_.replace(0, head.size(), head);
  }

 private:
  std::string out_ = std::string(arrays::kHdf5FirstByte, '\0');
};

std::string view_of(const ViewArrays& numbers, std::span<const arrays::Hdf5Source> sources,
                    std::uint64_t bytes) {
  constexpr arrays::Hdf5Element kUnsigned{.bytes = 8, .is_signed = false};
  Blocks blocks;
  const std::vector<std::uint64_t> pairs{numbers.samples(), 2};
  std::map<std::string, std::uint64_t> root;
  std::map<std::string, std::uint64_t> files;
  const std::uint64_t heap = blocks.add(hdf5_heap(sources));
  root[std::string(arrays::kSampleBytes)] = blocks.add(arrays::hdf5_virtual_bytes(bytes, heap));
  const std::uint64_t keys = blocks.add_numbers(numbers.keys());
  root[std::string(arrays::kSampleKeys)] = blocks.add(arrays::hdf5_dataset(pairs, kUnsigned, keys));
  for (const auto& [name, places] : numbers.files()) {
    const std::uint64_t at = blocks.add_numbers(places);
    files[name] = blocks.add(arrays::hdf5_dataset(pairs, kUnsigned, at));
  }
  if (numbers.has_labels()) {
    const std::uint64_t at = blocks.add_numbers(numbers.labels());
    root[std::string(arrays::kSampleLabels)] =
        blocks.add(arrays::hdf5_dataset({numbers.samples()}, {.bytes = 8, .is_signed = true}, at));
  }
  root[std::string(arrays::kSampleFiles)] = blocks.add(arrays::hdf5_group(files));
  return blocks.finish(blocks.add(arrays::hdf5_group(root)));
}

}  // namespace

Status write_hdf5_view(const Path& folder, const std::string& name, std::span<const ViewedShard> shards) {
  ViewArrays numbers(shards);
  std::vector<arrays::Hdf5Source> sources;
  std::uint64_t before = 0;
  for (const ViewedShard& shard : shards) {
    const Keys keys = keys_of(*shard.section);
    STOKER_RETURN_IF_ERROR(check_written_by_pack(folder / shard.file, *shard.section, keys));
    numbers.add(*shard.section, keys, before);
    sources.push_back({shard.file, stoker::format("/{}", arrays::kSampleBytes), keys.begin + keys.bytes});
    before += keys.begin + keys.bytes;
  }
  return write_file(folder / name, view_of(numbers, sources, before), Durability::synced);
}

}  // namespace stoker::dataset
