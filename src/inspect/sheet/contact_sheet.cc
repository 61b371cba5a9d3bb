#include "inspect/sheet/contact_sheet.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "base/encode.h"
#include "base/hashes/splitmix64.h"
#include "dataset/shard_source.h"
#include "inspect/sheet/render_array.h"
#include "inspect/sheet/render_text.h"
#include "inspect/sheet/thumbnail.h"

namespace stoker::inspect {

namespace {

constexpr std::uint32_t kSide = 144;
constexpr std::uint64_t kImageLimit = 1u << 30;
constexpr std::uint64_t kPartLimit = 256u << 20;
constexpr std::size_t kMaxParts = 12;  // of a sample

// How a component is previewed; images have their own path.
enum class PreviewKind { nothing, array, text };

PreviewKind preview_kind(const dataset::ComponentInfo& component) {
  const std::string& name = component.name;
  if (name == "npy" || name.ends_with(".npy")) return PreviewKind::array;
  return !component.is_image && is_text_component(name) ? PreviewKind::text : PreviewKind::nothing;
}

struct ShownComponent {
  dataset::Locator file;
  PreviewKind shown = PreviewKind::nothing;
};

// A sample that may be shown.
struct Candidate {
  std::uint64_t hash = 0;
  std::size_t source = 0;
  std::uint64_t sample = 0;
};

std::uint64_t hash_of(std::uint64_t seed, std::uint64_t split, std::uint64_t sample) {
  return splitmix64(seed * kSplitMix64Increment ^ split << 56 ^ sample);
}

std::string escaped(std::string_view text) { return escape_html(printable(text)); }

constexpr std::string_view kStyle =
    "body{font:14px/1.4 system-ui,sans-serif;margin:16px;color:#222;background:#fff}"
    "h1{font-size:18px;margin:0}h2{font-size:15px;margin:20px 0 6px}p{margin:4px 0;color:#555}"
    ".sheet{display:flex;flex-wrap:wrap;gap:8px}"
    "figure{margin:0;width:144px}figure "
    "div{height:144px;display:flex;align-items:center;justify-content:center;"
    "background:#f2f2f2}img{max-width:144px;max-height:144px}img.small{width:96px;image-rendering:pixelated}"
    "figcaption{font-size:11px;color:#555;overflow-wrap:anywhere}.broken{color:#a00;font-size:12px;padding:"
    "6px}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}p,figcaption{color:#aaa}"
    "figure div{background:#222}.broken{color:#f88}}";

class ContactSheetBuilder {
 public:
  ContactSheetBuilder(const Path& dataset, const ContactSheetOptions& options)
      : dataset_(dataset), options_(options) {}

  Result<ContactSheet> make() {
    STOKER_ASSIGN_OR_RETURN(manifest, dataset::read_manifest(dataset_));
    if (!options_.split.empty()) STOKER_RETURN_IF_ERROR(manifest.split(options_.split).status());
    for (const dataset::SplitInfo& split : manifest.splits) {
      if (!options_.split.empty() && split.name != options_.split) continue;
      STOKER_ASSIGN_OR_RETURN(source, dataset::LocalShardSource::open(dataset_, split.name));
      std::vector<PreviewKind> kinds;
      for (const dataset::ComponentInfo& each : source->samples().components())
        kinds.push_back(preview_kind(each));
      kinds_.push_back(std::move(kinds));
      sources_.push_back(std::move(source));
    }
    choose();
    if (chosen_.empty())
      return invalid("{}: has neither images nor arrays nor texts to show", printable(dataset_.string()));
    ContactSheet sheet;
    const std::string name = escaped(dataset_.filename().empty() ? dataset_.parent_path().filename().string()
                                                                 : dataset_.filename().string());
    sheet.html = format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>{}</title><style>{}</style>"
        "</head><body>\n<h1>{}</h1>\n<p>{} of {} samples, version {}, seed {}</p>\n",
        name, format("{}{}{}", kStyle, kArrayStyle, kTextStyle), name, total_, grouped(manifest.samples()),
        manifest.short_version(), options_.seed);
    for (const auto& [label, candidates] : chosen_) {
      if (candidates.empty()) continue;
      sheet.html += format("<h2>{}</h2>\n<div class=\"sheet\">\n", escaped(class_name(label, manifest)));
      for (const Candidate& candidate : candidates) add(candidate, sheet);
      sheet.html += "</div>\n";
    }
    sheet.html += "</body></html>\n";
    return sheet;
  }

 private:
  // Picks the samples with the smallest hashes of each class, round-robin, until `count` is reached.
  void choose() {
    std::map<std::int64_t, std::vector<Candidate>> by_label;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const dataset::SampleTable& samples = sources_[s]->samples();
      for (std::uint64_t i = 0; i < samples.size(); ++i) {
        if (!samples.image(i) && parts_of(s, i).empty()) continue;
        by_label[samples.label(i).value_or(-1)].push_back({hash_of(options_.seed, s, i), s, i});
      }
    }
    for (auto& [label, candidates] : by_label) {
      const std::size_t most = std::min<std::size_t>(candidates.size(), options_.count);
      std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(most),
                        candidates.end(),
                        [](const Candidate& a, const Candidate& b) { return a.hash < b.hash; });
      candidates.resize(most);
    }
    for (std::size_t round = 0; total_ < options_.count; ++round) {
      const std::uint32_t before = total_;
      for (const auto& [label, candidates] : by_label) {
        if (round >= candidates.size() || total_ == options_.count) continue;
        chosen_[label].push_back(candidates[round]);
        ++total_;
      }
      if (total_ == before) break;
    }
  }

  static std::string class_name(std::int64_t label, const dataset::Manifest& manifest) {
    if (label < 0) return "no label";
    const auto i = static_cast<std::size_t>(label);
    return i < manifest.schema.classes.size() ? manifest.schema.classes[i] : format("label {}", label);
  }

  // The arrays and texts of a sample.
  std::vector<ShownComponent> parts_of(std::size_t source, std::uint64_t sample) const {
    const dataset::SampleTable& samples = sources_[source]->samples();
    std::vector<ShownComponent> parts;
    for (std::uint32_t i = 0; i < samples.component_count(sample); ++i) {
      const dataset::Locator file = samples.locate(sample, i);
      const PreviewKind shown = kinds_[source][file.component];
      if (shown != PreviewKind::nothing) parts.push_back({file, shown});
    }
    return parts;
  }

  static Result<std::vector<std::byte>> load(const dataset::ShardSource& source, std::uint64_t sample,
                                             const dataset::Locator& file, std::uint64_t limit) {
    if (file.length > limit) return invalid("larger than {}", rounded({limit}));
    std::vector<std::byte> bytes(file.length);
    STOKER_RETURN_IF_ERROR(source.read(file.shard, file.offset, bytes));
    STOKER_RETURN_IF_ERROR(source.check(sample, file, bytes));
    return bytes;
  }

  static std::string broken(const Status& why) {
    return format("<div class=\"broken\">{}</div>", escaped(why.message()));
  }

  // Adds image and caption; returns false if it adds an error message instead.
  static bool add_image(const dataset::ShardSource& source, std::uint64_t sample, std::string& html,
                        std::string& caption) {
    const dataset::Locator image = *source.samples().image(sample);
    const Result<std::vector<std::byte>> bytes = load(source, sample, image, kImageLimit);
    const Result<Thumbnail> picture = bytes.ok() ? make_thumbnail(*bytes, kSide) : bytes.status();
    if (!picture.ok()) {
      html += broken(picture.status());
      return false;
    }
    const bool is_small = std::max(picture->width, picture->height) <= 64;
    html +=
        format("<div><img{} alt=\"{}\" src=\"data:image/jpeg;base64,{}\"></div>",
               is_small ? " class=\"small\"" : "", caption, base64(std::as_bytes(std::span(picture->jpeg))));
    caption += format("<br>{}x{}, {}", picture->width, picture->height, rounded({image.length}));
    return true;
  }

  // Like add_image().
  static bool add_part(const dataset::ShardSource& source, std::uint64_t sample, const ShownComponent& part,
                       std::string& html) {
    const std::string& name = source.samples().components()[part.file.component].name;
    const Result<std::vector<std::byte>> bytes = load(source, sample, part.file, kPartLimit);
    Status status = bytes.status();
    std::string picture;
    std::string caption;
    if (status.ok() && part.shown == PreviewKind::text) {
      TextExcerpt excerpt = render_text(name, *bytes);
      picture = std::move(excerpt.html);
      caption = std::move(excerpt.caption);
    } else if (status.ok()) {
      Result<ArrayPicture> drawn = render_array(*bytes);
      status = drawn.status();
      if (status.ok()) picture = std::move(drawn->html);
      if (status.ok()) caption = std::move(drawn->caption);
    }
    html += format("{}<p class=\"array\"><b>{}</b> {}</p>", status.ok() ? picture : broken(status),
                   escaped(name), escaped(caption));
    return status.ok();
  }

  void add(const Candidate& candidate, ContactSheet& sheet) const {
    const dataset::ShardSource& source = *sources_[candidate.source];
    std::string caption = escaped(source.samples().key(candidate.sample));
    bool is_whole = true;
    std::string html;
    if (source.samples().image(candidate.sample))
      is_whole = add_image(source, candidate.sample, html, caption);
    const std::vector<ShownComponent> parts = parts_of(candidate.source, candidate.sample);
    for (std::size_t i = 0; i < std::min(parts.size(), kMaxParts); ++i)
      is_whole = add_part(source, candidate.sample, parts[i], html) && is_whole;
    if (parts.size() > kMaxParts)
      html += format("<p class=\"array\">and {} more</p>", parts.size() - kMaxParts);
    const bool has_text = std::ranges::any_of(
        parts, [](const ShownComponent& part) { return part.shown == PreviewKind::text; });
    ++sheet.samples;
    if (!is_whole) ++sheet.broken;
    sheet.html += format("<figure{}>{}<figcaption>{}</figcaption></figure>\n",
                         has_text ? " class=\"wide\"" : "", html, caption);
  }

  const Path& dataset_;
  const ContactSheetOptions& options_;
  std::vector<std::unique_ptr<dataset::LocalShardSource>> sources_;
  std::vector<std::vector<PreviewKind>> kinds_;  // of each source's components
  std::map<std::int64_t, std::vector<Candidate>> chosen_;
  std::uint32_t total_ = 0;
};

}  // namespace

Result<ContactSheet> contact_sheet(const Path& dataset, const ContactSheetOptions& options) {
  return ContactSheetBuilder(dataset, options).make();
}

}  // namespace stoker::inspect
