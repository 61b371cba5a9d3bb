#include "pack/shard/shard_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/hash.h"
#include "base/json/json.h"
#include "dataset/side_index.h"
#include "pack/container/container.h"
#include "pack/shard/block_file.h"
#include "pack/shard/stored_number_internal.h"
#include "sources/files/tree.h"

namespace stoker::pack {

namespace {

using dataset::SectionBuilder;

// A thread writes its shards sequentially: reuses the read buffers, except very large ones.
LoadedSample& spare_sample() {
  thread_local LoadedSample sample;
  return sample;
}

void keep_memory(LoadedSample sample) {
  constexpr std::size_t kMaxKept = 16u << 20;
  sample.drop_larger_than(kMaxKept);
  spare_sample() = std::move(sample);
}

class Writer final : public ShardWriter {
 public:
  Writer(const PackPlan& plan, std::shared_ptr<ReadAhead> samples, BlockFile file)
      : plan_(plan),
        samples_(std::move(samples)),
        file_(std::move(file)),
        container_(Container::make(plan.container, plan.columns, file_)),
        section_(plan.source.has_labels() ? SectionBuilder::Labels::int64 : SectionBuilder::Labels::none),
        own_(std::move(spare_sample())) {}
  ~Writer() override { keep_memory(std::move(own_)); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool is_complete() const override { return samples_->is_done(); }
  Status write_next() override {
    const sources::SourceSample& from = samples_->upcoming();
    LoadedSample& sample = samples_->next(own_);
    STOKER_RETURN_IF_ERROR(sample.status);
    if (!sample.left_out.empty()) {
      std::move(sample.left_out.begin(), sample.left_out.end(), std::back_inserter(left_out_));
      return {};
    }
    images_.add(sample.images);
    return write_members(from, sample);
  }
  Sha256Lane& lane() override { return file_.lane(); }

  Result<ShardFacts> finish() override {
    STOKER_RETURN_IF_ERROR(container_->finish());
    STOKER_RETURN_IF_ERROR(file_.finish());
    section_.set_offsets(container_->deferred_offsets());
    ShardFacts facts;
    facts.bytes = file_.bytes();
    facts.samples = section_.samples();
    facts.blocks = file_.blocks();
    facts.images = images_;
    facts.left_out = std::move(left_out_);
    facts.section = section_.encode(facts.bytes, dataset::shard_hash(facts.blocks));
    return facts;
  }

 private:
  // Sorts the main image first, so that the first image of a sample is the picture and not its mask.
  static void sort_members(std::span<LoadedFile> files) {
    const auto rank = [](const LoadedFile& file) { return sources::is_main_image(file.extension) ? 0 : 1; };
    std::sort(files.begin(), files.end(), [&](const LoadedFile& a, const LoadedFile& b) {
      return rank(a) != rank(b) ? rank(a) < rank(b) : a.extension < b.extension;
    });
  }

  Status write_members(const sources::SourceSample& from, LoadedSample& sample) {
    const sources::SourceFolder& folder = plan_.source.folders[from.folder];
    entry_.key = plan_.source.key(from);
    entry_.label = from.label;
    entry_.components.clear();
    files_.clear();
    places_.clear();
    if (sample.files().size() > 1) sort_members(sample.files());
    for (const LoadedFile& file : sample.files()) {
      if (file.extension == "cls") {
        STOKER_RETURN_IF_ERROR(read_label(folder, file, entry_.label));
      } else {
        STOKER_ASSIGN_OR_RETURN(found, packed(folder, file));
        files_.push_back(std::move(found));
      }
    }
    if (files_.empty()) {
      return invalid("{}: sample '{}' has only a label file", plan_.source.tree->display_path(""),
                     printable(entry_.key));
    }
    STOKER_RETURN_IF_ERROR(container_->add(entry_.key, files_, label(), places_));
    for (std::size_t i = 0; i < files_.size(); ++i) {
      entry_.components.push_back({.offset = places_[i].offset,
                                   .length = files_[i].size,
                                   .crc32c = places_[i].crc32c,
                                   .name = section_.name(files_[i].extension)});
    }
    section_.add(entry_);
    return {};
  }

  PackedLabel label() const {
    if (entry_.label < 0) return {};
    PackedLabel label{.number = entry_.label, .extension = {}, .text = {}};
    if (plan_.options.labels == LabelMembers::index || plan_.container != dataset::ContainerKind::tar)
      return label;
    const bool is_json = plan_.options.labels == LabelMembers::json;
    label.extension = is_json ? "json" : "cls";
    label.text = is_json ? label_json(plan_.source.classes, entry_.label) : std::to_string(entry_.label);
    return label;
  }

  std::string shown(const sources::SourceFolder& folder, const LoadedFile& file) const {
    return plan_.source.tree->display_path(plan_.source.path_of(folder, *file.file));
  }

  Status read_label(const sources::SourceFolder& folder, const LoadedFile& file, std::int64_t& label) const {
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    if (file.is_held && parse_number(trim(text), &label) && label >= 0) return {};
    return invalid("{}: label '{}' is not a natural number", shown(folder, file),
                   printable(text.substr(0, 20)));
  }

  Result<PackedFile> packed(const sources::SourceFolder& folder, const LoadedFile& file) const {
    if (file.is_held) {
      return PackedFile{
          .extension = file.extension, .size = file.bytes().size(), .bytes = file.bytes(), .read = nullptr};
    }
    if (!plan_.source.tree->has_parts(*file.file)) {
      return invalid("{}: is compressed and has {} bytes (at most 1 GiB)", shown(folder, file),
                     file.file->bytes);
    }
    return PackedFile{.extension = file.extension,
                      .size = file.file->bytes,
                      .bytes = {},
                      .read = [this, &folder, &file](std::uint64_t at, std::span<std::byte> out) -> Status {
                        if (!samples_->reader().should_continue()) return cancelled("stopped");
                        return plan_.source.tree->read_part(folder.path, *file.file, at, out);
                      }};
  }

  const PackPlan& plan_;
  const std::shared_ptr<ReadAhead> samples_;
  BlockFile file_;
  std::unique_ptr<Container> container_;
  SectionBuilder section_;
  dataset::ImageStatistics images_;
  std::vector<sources::LeftOut> left_out_;
  LoadedSample own_;
  dataset::SampleEntry entry_;
  std::vector<PackedFile> files_;
  std::vector<PackedPlace> places_;
};

}  // namespace

Result<std::unique_ptr<ShardWriter>> ShardWriter::begin(const PackPlan& plan,
                                                        std::shared_ptr<ReadAhead> samples, const Path& path,
                                                        Hashing hashing) {
  STOKER_ASSIGN_OR_RETURN(file, BlockFile::create(path, plan.options.hash, hashing));
  return std::unique_ptr<ShardWriter>(std::make_unique<Writer>(plan, std::move(samples), std::move(file)));
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kCrcDigits = 8;

Json images_json(const dataset::ImageStatistics& i) {
  return {i.images,       i.progressive,         i.grayscale,  i.cmyk,       i.alpha,  i.misnamed,
          i.width_min,    i.width_max,           i.height_min, i.height_max, i.pixels, i.channels.pixels,
          i.channels.sum, i.channels.square_sum, i.reencoded};
}

dataset::ImageStatistics images_of(const Json& json) {
  return {.images = stored_number(json.at(0)),
          .progressive = stored_number(json.at(1)),
          .grayscale = stored_number(json.at(2)),
          .cmyk = stored_number(json.at(3)),
          .alpha = stored_number(json.at(4)),
          .misnamed = stored_number(json.at(5)),
          .width_min = stored_number_32(json.at(6)),
          .width_max = stored_number_32(json.at(7)),
          .height_min = stored_number_32(json.at(8)),
          .height_max = stored_number_32(json.at(9)),
          .pixels = stored_number(json.at(10)),
          .channels = {.pixels = stored_number(json.at(11)),
                       .sum = stored_numbers(json.at(12)),
                       .square_sum = stored_numbers(json.at(13))},
          .reencoded = stored_number(json.at(14))};
}

// Throws nlohmann's exceptions for an unexpected structure. The CRC is valid, so a different version wrote
// it.
ShardFacts facts_of(const Json& json) {
  ShardFacts facts;
  facts.bytes = stored_number(json.at("bytes"));
  facts.samples = stored_number(json.at("samples"));
  facts.images = images_of(json.at("images"));
  for (const Json& block : json.at("blocks")) {
    const Result<Digest> digest = parse_digest(block.get<std::string>());
    facts.blocks.push_back(digest.ok() ? *digest : Digest{});
  }
  for (const Json& file : json.at("left_out")) facts.left_out.push_back({file.at(0), file.at(1), file.at(2)});
  return facts;
}

}  // namespace

// A fragment: "<crc32c of the rest, 8 hex digits>\n<JSON, one line>\n<index section>".
std::string ShardFacts::encode(std::string_view fingerprint) const {
  Json json = {
      {"plan", fingerprint}, {"bytes", bytes}, {"samples", samples}, {"images", images_json(images)}};
  json["blocks"] = Json::array();
  for (const Digest& block : blocks) json["blocks"].push_back(hex(block));
  json["left_out"] = Json::array();
  for (const sources::LeftOut& file : left_out)
    json["left_out"].push_back({printable(file.path), file.reason, file.detail});
  const std::string body = json_text(json) + "\n" + section;
  return format("{:08x}\n{}", crc32c(body), body);
}

Result<ShardFacts> ShardFacts::decode(std::string_view text, std::string_view fingerprint,
                                      std::string_view subject) {
  const std::string_view body = text.size() > kCrcDigits ? text.substr(kCrcDigits + 1) : "";
  if (body.empty() || text.substr(0, kCrcDigits) != format("{:08x}", crc32c(body))) {
    return corrupt("{}: fragment is damaged", subject);
  }
  const std::size_t line = body.find('\n');
  if (line == std::string_view::npos) return corrupt("{}: fragment is damaged", subject);
  try {
    const Json json = parse_json<Json>(body.substr(0, line));
    if (json.at("plan") != fingerprint) return corrupt("{}: fragment of a different plan", subject);
    ShardFacts facts = facts_of(json);
    facts.section = std::string(body.substr(line + 1));
    return facts;
  } catch (const Json::exception&) {
    return corrupt("{}: fragment of a different version", subject);
  }
}

}  // namespace stoker::pack
