// What is written: index.bin first, then manifest.json, each whole by rename. A crash between the two leaves
// a folder without a manifest, which is no dataset, and a rerun makes both.
#include "data/look/index_build.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/thread.h"
#include "data/look/arrays/array_scan.h"
#include "data/look/index_shards.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/class_names.h"
#include "data/pack/source.h"
#include "format/chunked/chunk_reader.h"
#include "format/side_index.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kLabelLimit = 1u << 20;

// One shard on its way.
struct Work {
  explicit Work(IndexedShard shard) : is(std::move(shard)) {}

  IndexedShard is;
  ShardScan scan;
  std::vector<Digest> blocks;
  std::vector<std::uint32_t> crcs;  // of each member, in order
  std::vector<std::optional<std::int64_t>> labels;
  Status status;
};

struct Reading {
  const IndexOptions& options;
  formats::BlockHash hash = formats::BlockHash::sha256;
};

// Reads a shard once, front to back, and feeds hashes and CRCs.
class ShardReading {
  // A member, and which one of the shard's it is.
  struct Numbered {
    const ShardMember* member = nullptr;
    std::size_t number = 0;
    formats::ChunkMap::Turn turn = {};
  };

 public:
  ShardReading(const Path& folder, const Reading& how, Work& work)
      : path_(folder / work.is.file), how_(how), work_(work) {}

  template <typename GoOn>
  Status run(const GoOn& go_on) {
    Result<ShardScan> scan = this->scan();
    if (!scan.ok()) return scan.status();
    work_.scan = std::move(*scan);
    for (const ShardSample& sample : work_.scan.samples) {
      for (const ShardMember& member : sample.members) members_.push_back({&member, members_.size()});
    }
    // Those of a Parquet file lie column by column; windows over grids come chunk by chunk as they are.
    const formats::ChunkMap* const chunks = work_.scan.chunks.get();
    const bool has_windows = chunks != nullptr && chunks->has_windows() && !chunks->has_columns();
    const bool is_shared = chunks != nullptr && chunks->shares_chunks();
    for (Numbered& member : members_) {
      const std::uint64_t at = member.member->data_offset;
      member.turn = is_shared ? chunks->turn(at) : formats::ChunkMap::Turn{.at = at};
    }
    const auto lies_before = [](const Numbered& a, const Numbered& b) { return a.turn < b.turn; };
    if (!has_windows) std::stable_sort(members_.begin(), members_.end(), lies_before);
    work_.crcs.assign(members_.size(), 0);
    OK_OR_RETURN(
        file, formats::ShardFile::open(
                  path_, work_.scan.chunks ? work_.scan.chunks->parts() : std::vector<formats::ShardPart>()));
    std::vector<std::byte> buffer(formats::kHashBlock);
    for (std::uint64_t at = 0; at < work_.scan.bytes; at += formats::kHashBlock) {
      const auto block = std::span(buffer).first(std::min(formats::kHashBlock, work_.scan.bytes - at));
      RETURN_IF_ERROR(file.read_at(at, block));
      work_.blocks.push_back(formats::block_digest(how_.hash, block));
      if (!work_.scan.chunks) feed(at, block);
      if (!go_on(block.size())) return cancelled("stopped");
    }
    if (work_.scan.chunks) RETURN_IF_ERROR(read_chunks(file, go_on));
    return read_labels(file);
  }

 private:
  Result<ShardScan> scan() const {
    if (how_.options.windows) return scan_windows(path_, printable(work_.is.file), *how_.options.windows);
    if (!work_.is.rows) return scan_for_index(path_, {how_.options.table, work_.is.table});
    if (how_.options.table.is_set()) return no_table(printable(path_.string()));
    return scan_npy(path_.parent_path(), *work_.is.rows);
  }

  // Members in an order in which each chunk is unpacked once.
  template <typename GoOn>
  Status read_chunks(const formats::ShardFile& file, const GoOn& go_on) {
    // For each thread that reads a shard; of a table a row group's columns.
    constexpr std::uint64_t kLeast = 64u << 20;
    const ByteCount kept{std::max(kLeast, work_.scan.chunks->held_for_turns())};
    constexpr std::uint64_t kPiece = 64u << 20;
    const formats::ChunkReader reader(*work_.scan.chunks, std::make_shared<formats::ChunkCache>(kept),
                                      printable(path_.string()), formats::ChunkReader::Keep::records);
    std::vector<std::byte> bytes;
    for (const Numbered& numbered : members_) {
      std::uint32_t& crc = work_.crcs[numbered.number];
      for (std::uint64_t at = 0; at < numbered.member->bytes; at += kPiece) {
        bytes.resize(std::min(kPiece, numbered.member->bytes - at));
        RETURN_IF_ERROR(reader.read(file, numbered.member->data_offset + at, bytes));
        crc = crc32c(bytes, crc);
      }
      if (!go_on(0)) return cancelled("stopped");
    }
    return {};
  }

  void feed(std::uint64_t begin, std::span<const std::byte> block) {
    const std::uint64_t end = begin + block.size();
    for (std::size_t i = next_; i < members_.size() && members_[i].member->data_offset < end; ++i) {
      const ShardMember& m = *members_[i].member;
      std::uint32_t& crc = work_.crcs[members_[i].number];
      const std::uint64_t from = std::max(begin, m.data_offset);
      const std::uint64_t to = std::min(end, m.data_offset + m.bytes);
      if (from < to) crc = crc32c(block.subspan(from - begin, to - from), crc);
      if (m.data_offset + m.bytes <= end) next_ = i + 1;
    }
  }

  Status read_labels(const formats::ShardFile& file) {
    for (const ShardSample& sample : work_.scan.samples) {
      std::optional<std::int64_t>& label = work_.labels.emplace_back(sample.label);
      if (kind_of_shard(work_.is.file) != ContainerKind::tar) continue;
      for (const ShardMember& member : sample.members) {
        if (member.extension != "cls" && member.extension != "json") continue;
        if (member.bytes > kLabelLimit) continue;
        std::string text(member.bytes, '\0');
        RETURN_IF_ERROR(file.read_at(member.data_offset, std::as_writable_bytes(std::span(text))));
        if (const auto found = label_in(member.extension, text)) label = found;
      }
    }
    return {};
  }

  static std::optional<std::int64_t> label_in(std::string_view extension, std::string_view text) {
    std::int64_t number = 0;
    if (extension == "cls") return parse_number(trim(text), &number) ? std::optional(number) : std::nullopt;
    const auto json = parse_json<nlohmann::json>(text);
    if (!json.is_object() || !json.contains("label") || !json["label"].is_number_integer())
      return std::nullopt;
    return json["label"].get<std::int64_t>();
  }

  Path path_;
  const Reading& how_;
  Work& work_;
  std::vector<Numbered> members_;  // by their places
  std::size_t next_ = 0;
};

Status read_all(const Path& folder, std::vector<Work>& shards, const Reading& how, Progress& progress) {
  std::uint64_t total = 0;
  for (const Work& shard : shards) {
    std::error_code ignored;
    if (!folder_exists(folder / shard.is.file))
      total += std::filesystem::file_size(folder / shard.is.file, ignored);
  }
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> done{0};
  const auto go_on = [&](std::uint64_t bytes) {
    const std::uint64_t now = done += bytes;
    progress.report({.done = now >> 20, .total = total >> 20, .unit = "MiB", .bytes = {now}});
    return !progress.stop_requested();
  };
  {
    const auto work = [&] {
      for (std::size_t i = next++; i < shards.size(); i = next++)
        shards[i].status = ShardReading(folder, how, shards[i]).run(go_on);
    };
    std::vector<Thread> helpers;
    for (int t = 1; t < how.options.threads && static_cast<std::size_t>(t) < shards.size(); ++t)
      helpers.emplace_back([&](const StopToken&) { work(); });
    work();
  }
  if (progress.stop_requested())
    return cancelled("{}: stopped before all shards were read", printable(folder.string()));
  for (const Work& shard : shards) RETURN_IF_ERROR(shard.status);
  return {};
}

// Which members are labels and no components: `cls` always, `json` where our pack put the label.
bool is_label_member(const ShardSample& sample, const ShardMember& member, bool json_is_label) {
  return sample.members.size() > 1 &&
         (member.extension == "cls" || (json_is_label && member.extension == "json"));
}

std::string section_of(const Work& work, bool has_labels, bool json_is_label) {
  formats::SectionBuilder section(has_labels ? formats::SectionBuilder::Labels::int64
                                             : formats::SectionBuilder::Labels::none);
  std::size_t at = 0;
  for (std::size_t i = 0; i < work.scan.samples.size(); ++i) {
    const ShardSample& sample = work.scan.samples[i];
    formats::SampleEntry entry{.key = sample.key, .label = work.labels[i].value_or(-1), .components = {}};
    for (const ShardMember& member : sample.members) {
      const std::uint32_t crc = work.crcs[at++];
      if (has_labels && is_label_member(sample, member, json_is_label)) continue;
      entry.components.push_back({.offset = member.data_offset,
                                  .length = member.bytes,
                                  .crc32c = crc,
                                  .name = section.name(member.extension)});
    }
    section.add(entry);
  }
  if (work.scan.chunks) section.set_chunks(*work.scan.chunks);
  return section.encode(work.scan.bytes, formats::shard_hash(work.blocks));
}

formats::ShardInfo info_of(const Work& work) {
  return {.file = work.is.file,
          .bytes = work.scan.bytes,
          .samples = work.scan.samples.size(),
          .hash = formats::shard_hash(work.blocks),
          .blocks = work.blocks};
}

// What is told of all tables together: classes of labels that are texts, and what was read.
Result<std::vector<std::string>> name_classes(std::vector<Work>& shards, std::optional<TableFacts>& facts) {
  std::vector<ShardScan*> scans;
  for (Work& shard : shards) {
    scans.push_back(&shard.scan);
    if (shard.scan.table) add_to(facts, *shard.scan.table);
  }
  OK_OR_RETURN(names, number_classes(scans));
  for (Work& shard : shards) {
    const bool is_renamed = shard.scan.table || !shard.scan.classes.empty();
    for (std::size_t i = 0; is_renamed && i < shard.labels.size(); ++i)
      shard.labels[i] = shard.scan.samples[i].label;
  }
  return names;
}

// The index of a manifest that is there, if the shards are its own.
Result<IndexBuild> rebuild(const Path& folder, formats::Manifest manifest, const IndexOptions& options,
                           Progress& progress) {
  OK_OR_RETURN(named, shards_of_manifest(folder, manifest));
  std::vector<Work> shards(std::make_move_iterator(named.begin()), std::make_move_iterator(named.end()));
  RETURN_IF_ERROR(read_all(folder, shards, {options, manifest.schema.block_hash}, progress));
  std::optional<TableFacts> facts;
  RETURN_IF_ERROR(name_classes(shards, facts).status());
  std::vector<std::string> sections;
  const auto& components = manifest.schema.components;
  const bool has_json = std::any_of(components.begin(), components.end(),
                                    [](const formats::ComponentInfo& c) { return c.name == "json"; });
  std::size_t i = 0;
  for (const formats::SplitInfo& split : manifest.splits) {
    for (const formats::ShardInfo& shard : split.shards) {
      const Work& work = shards[i++];
      if (formats::shard_hash(work.blocks) != shard.hash) {
        return corrupt("{}: is not the shard that the manifest names (SHA-256)",
                       printable((folder / shard.file).string()))
            .cure("stoker data verify {} --full", shell_quote(folder.string()));
      }
      sections.push_back(section_of(work, manifest.schema.has_labels, !has_json));
    }
  }
  const std::string index = formats::encode_index(sections);
  if (sha256(index) != manifest.index_hash) {
    return invalid("{}: the index cannot be made from the shards: {}", printable(folder.string()),
                   manifest.schema.container == to_text(ContainerKind::parquet)
                       ? "it held what is in no shard, or other rows or columns (--where, --columns, "
                         "--tensor, ...)"
                   : manifest.schema.has_labels
                       ? "it held labels that are in no shard (packed with --labels index)"
                       : "it held what is in no shard, or other windows (--window)")
        .cure("a copy of {}/index.bin, or pack again", printable(folder.string()));
  }
  RETURN_IF_ERROR(write_file(folder / formats::kIndexFile, index, Durability::synced));
  return IndexBuild{.manifest = std::move(manifest), .had_manifest = true};
}

// What is left out, each thing once.
std::vector<std::string> notes_on(const std::vector<Work>& shards) {
  std::set<std::string> left_out;
  for (const Work& shard : shards)
    left_out.insert(shard.scan.only_in_copies.begin(), shard.scan.only_in_copies.end());
  std::vector<std::string> notes;
  for (const std::string& what : left_out)
    notes.push_back(
        format("{} is left out: it cannot be read where it lies (stoker data convert takes it)", what));
  return notes;
}

// A file whose rows another shard shows (HDF5's virtual datasets) is part of that one.
void leave_out_parts(std::vector<Work>& shards) {
  std::set<std::string> parts;
  for (const Work& shard : shards) {
    if (!shard.scan.chunks || !is_hdf5(shard.is.file)) continue;
    for (const formats::ShardPart& part : shard.scan.chunks->parts()) {
      if (part.file != shard.is.file) parts.insert(part.file);
    }
  }
  std::erase_if(shards, [&](const Work& shard) { return parts.contains(shard.is.file); });
}

}  // namespace

Result<IndexBuild> build_index(const Path& folder, const IndexOptions& options, Progress& progress) {
  if (path_exists(folder / formats::kManifestFile)) {
    OK_OR_RETURN(manifest, formats::read_manifest(folder));
    return rebuild(folder, std::move(manifest), options, progress);
  }
  if (path_exists(folder / formats::kPendingFolder)) return formats::read_manifest(folder).status();
  OK_OR_RETURN(found,
               find_shards(folder, options.table.where, options.windows ? &*options.windows : nullptr));
  std::vector<Work> shards(std::make_move_iterator(found.shards.begin()),
                           std::make_move_iterator(found.shards.end()));
  RETURN_IF_ERROR(read_all(folder, shards, {options}, progress));
  leave_out_parts(shards);
  IndexBuild built;
  OK_OR_RETURN(classes, name_classes(shards, built.table));
  if (found.passed_over > 0) add_to(built.table, {.files_passed_over = found.passed_over});
  built.notes = notes_on(shards);
  std::erase_if(shards, [](const Work& shard) { return shard.scan.samples.empty(); });
  if (shards.empty() && built.table) return nothing_chosen(printable(folder.string()), *built.table);
  if (shards.empty()) return invalid("{}: no samples in its shards", printable(folder.string()));
  bool has_labels = true;
  std::set<std::string> components;
  for (const Work& shard : shards) {
    for (const auto& label : shard.labels) has_labels = has_labels && label.has_value();
  }
  formats::Manifest& manifest = built.manifest;
  std::map<std::string, std::vector<const Work*>> splits;
  for (const Work& shard : shards) splits[shard.is.split].push_back(&shard);
  std::vector<std::string> sections;
  for (const auto& [name, works] : splits) {
    formats::SplitInfo& split = manifest.splits.emplace_back();
    split.name = name;
    split.class_samples.resize(classes.size());
    for (const Work* work : works) {
      split.shards.push_back(info_of(*work));
      split.samples += split.shards.back().samples;
      sections.push_back(section_of(*work, has_labels, /*json_is_label=*/false));
      for (const auto& label : work->labels)
        if (!classes.empty() && label) ++split.class_samples[static_cast<std::size_t>(*label)];
      for (const ShardSample& sample : work->scan.samples) {
        for (const ShardMember& member : sample.members) {
          if (!has_labels || !is_label_member(sample, member, false)) components.insert(member.extension);
        }
      }
    }
  }
  manifest.schema.container = to_text(kind_of_shard(shards[0].is.file));
  manifest.schema.has_labels = has_labels;
  manifest.schema.classes = std::move(classes);
  for (const std::string& name : components)
    manifest.schema.components.push_back({.name = name, .is_image = is_image_extension(name)});
  const std::string index = formats::encode_index(sections);
  manifest.index_bytes = index.size();
  manifest.index_hash = sha256(index);
  manifest.version = formats::dataset_version(manifest);
  RETURN_IF_ERROR(write_file(folder / formats::kIndexFile, index, Durability::synced));
  RETURN_IF_ERROR(
      write_file(folder / formats::kManifestFile, formats::to_json(manifest), Durability::synced));
  return built;
}

}  // namespace stoker::data
