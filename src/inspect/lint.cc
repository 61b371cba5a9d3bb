#include "inspect/lint.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <sys/statvfs.h>
#include <unordered_map>

#include "base/hash.h"
#include "base/language/counted.h"
#include "base/thread.h"
#include "image/decode/exif.h"
#include "inspect/evidence_list.h"
#include "inspect/lint_items.h"
#include "pack/images/image_check.h"

namespace stoker::inspect {

namespace {

constexpr std::uint64_t kSmallFile = 1'000'000;
constexpr std::uint64_t kLargePixels = 16'000'000;
constexpr std::uint64_t kLargeImageBytes = 20'000'000;
constexpr std::uint64_t kManyFiles = 10'000;
constexpr std::uint64_t kFullPercent = 90;     // of the inodes
constexpr std::uint64_t kShardsAddOneIn = 10;  // bytes: headers, padding, the index

// The result of reading and checking one file.
struct ItemInspection {
  std::uint64_t content = 0;  // the first 8 bytes of its SHA-256
  image::ImageInfo info;
  unsigned orientation = 1;  // of its EXIF
  bool is_good = true;
  std::string reason;
  std::string detail;
};

std::string images(std::uint64_t count) {
  return format("{} {}", grouped(count), count == 1 ? "image is" : "images are");
}

class Linter {
 public:
  Linter(const LintOptions& options, const LintItems& items, Progress& progress)
      : options_(options), items_(items), progress_(progress), inspections_(items.items().size()) {}

  Result<LintReport> run() {
    STOKER_RETURN_IF_ERROR(inspect_all());
    take_census();
    check_images();
    check_photographs();
    check_left_out();
    check_contents();
    check_labels();
    check_classes();
    check_layout();
    check_disk();
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.level < b.level; });
    return std::move(report_);
  }

 private:
  void add_finding(std::string rule, Level level, std::string what, std::vector<Evidence> evidence,
                   std::string cure) {
    report_.findings.push_back(
        {std::move(rule), level, std::move(what), std::move(evidence), std::move(cure)});
  }

  Status inspect_all() {
    const std::vector<LintItem>& all = items_.items();
    std::atomic<std::size_t> next{0};
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::uint64_t> bytes{0};
    const auto work = [&] {
      sources::FileBytes content;
      for (std::size_t i = next++; i < all.size() && !progress_.stop_requested(); i = next++) {
        inspect(all[i], content, inspections_[i]);
        progress_.report(
            {.done = ++done, .total = all.size(), .unit = "files", .bytes = {bytes += all[i].bytes}});
      }
    };
    {
      std::vector<Thread> helpers;
      for (int t = 1; t < options_.source.threads; ++t)
        helpers.emplace_back([&](const StopToken&) { work(); });
      work();
    }
    if (progress_.stop_requested())
      return cancelled("{}: interrupted before all files were checked", printable(options_.source.where));
    return {};
  }

  void inspect(const LintItem& item, sources::FileBytes& content, ItemInspection& inspection) const {
    if (const Status status = items_.read(item, content); !status.ok()) {
      inspection.is_good = false;
      inspection.reason = status.code() == Code::corrupt ? "damaged" : "unreadable";
      inspection.detail = status.message();
      return;
    }
    const Digest digest = sha256(content.bytes());
    std::memcpy(&inspection.content, digest.data(), sizeof inspection.content);
    if (!item.is_image) return;
    pack::ImageVerdict verdict =
        options_.decodes ? pack::decode_check(content.bytes()) : pack::scan_image(content.bytes());
    inspection.is_good = verdict.is_good;
    inspection.info = verdict.info;
    inspection.orientation = image::exif_orientation(content.bytes());
    inspection.reason = std::move(verdict.reason);
    inspection.detail = std::move(verdict.detail);
  }

  void take_census() {
    Census& census = report_.census;
    census.is_dataset = items_.manifest() != nullptr;
    census.notes = items_.notes();
    for (const std::string& name : items_.splits()) census.splits.push_back({name});
    for (const std::string& name : items_.classes()) census.classes.push_back({name});
    std::map<int, Count> sizes;
    std::map<std::string, Count> folders;
    for (const LintItem& item : items_.items()) {
      const auto add = [&](Count& count) {
        ++count.files;
        count.bytes += item.bytes;
      };
      ++census.files;
      census.bytes += item.bytes;
      add(census.splits[item.split]);
      if (item.label >= 0 && static_cast<std::size_t>(item.label) < census.classes.size())
        add(census.classes[static_cast<std::size_t>(item.label)]);
      add(sizes[item.bytes < 1000 ? 2 : static_cast<int>(std::log10(static_cast<double>(item.bytes)))]);
      add(folders[items_.parent(item)]);
    }
    for (const sources::LeftOut& file : items_.left_out())
      census.files += file.reason == sources::kHidden ? 0 : 1;
    const auto power = [](int exponent) {
      return rounded({static_cast<std::uint64_t>(std::pow(10.0, exponent) + 0.5)});
    };
    for (auto& [exponent, count] : sizes) {
      count.name = exponent <= 2 ? "under 1 kB" : format("{} to {}", power(exponent), power(exponent + 1));
      census.sizes.push_back(std::move(count));
    }
    for (auto& [name, count] : folders) {
      count.name = name.empty() ? "." : name;
      census.folders.push_back(std::move(count));
    }
    largest_first(census.classes, census.classes.size());
    largest_first(census.folders, 10);
  }

  static void largest_first(std::vector<Count>& counts, std::size_t most) {
    std::stable_sort(counts.begin(), counts.end(),
                     [](const Count& a, const Count& b) { return a.files > b.files; });
    if (counts.size() > most) counts.resize(most);
  }

  void check_images() {
    EvidenceList broken, cmyk, alpha, misnamed, progressive, tiny;
    for (std::size_t i = 0; i < inspections_.size(); ++i) {
      const LintItem& item = items_.items()[i];
      const ItemInspection& inspection = inspections_[i];
      if (!inspection.is_good)
        broken.add(items_.name(item),
                   inspection.reason + (inspection.detail.empty() ? "" : ": " + inspection.detail));
      if (!inspection.is_good || !item.is_image) continue;
      const bool is_jpeg = inspection.info.kind == image::ImageKind::jpeg;
      if (is_jpeg && inspection.info.channels == 4) cmyk.add(items_.name(item));
      if (!is_jpeg && inspection.info.channels % 2 == 0) alpha.add(items_.name(item));
      if (is_jpeg && inspection.info.progressive) progressive.add(items_.name(item));
      if (!has_matching_extension(items_.extension(item), inspection.info.kind))
        misnamed.add(items_.name(item), format("is a {}", to_text(inspection.info.kind)));
      if (std::min(inspection.info.width, inspection.info.height) < 8)
        tiny.add(items_.name(item), format("{}x{}", inspection.info.width, inspection.info.height));
    }
    const bool is_dataset = items_.manifest() != nullptr;
    if (broken.count() > 0)
      add_finding("broken-file", Level::job,
                  broken.count() == 1 ? "1 file is broken or not an image"
                                      : format("{} files are broken or not images", grouped(broken.count())),
                  broken.evidence(),
                  is_dataset ? "pack again: `stoker data pack` leaves out and lists such files"
                             : "remove them; `stoker data pack` leaves them out and lists them");
    if (cmyk.count() > 0)
      add_finding("cmyk-image", Level::advice,
                  images(cmyk.count()) + " CMYK, which decoders convert to RGB in different ways",
                  cmyk.evidence(), "convert them once, for example: mogrify -colorspace sRGB FILE");
    if (alpha.count() > 0)
      add_finding("alpha-image", Level::advice,
                  images(alpha.count()) + " partly transparent: the loader drops the alpha channel",
                  alpha.evidence(),
                  "put them on a background, for example: mogrify -background white -alpha remove FILE");
    if (misnamed.count() > 0)
      add_finding("wrong-extension", Level::advice,
                  images(misnamed.count()) + " of a type that the extension does not match",
                  misnamed.evidence(), "rename them: some readers choose the decoder by the name");
    if (progressive.count() > 0)
      add_finding("progressive-jpeg", Level::time,
                  images(progressive.count()) + " progressive, three times as slow to decode",
                  progressive.evidence(), "stoker data pack --jpeg baseline: no pixel changes");
    if (tiny.count() > 0)
      add_finding("tiny-image", Level::advice, images(tiny.count()) + " under 8 pixels wide or high",
                  tiny.evidence(), "remove them if they are not meant to be samples");
  }

  // As cameras write them.
  void check_photographs() {
    EvidenceList rotated, large;
    for (std::size_t i = 0; i < inspections_.size(); ++i) {
      const LintItem& item = items_.items()[i];
      const ItemInspection& inspection = inspections_[i];
      if (!inspection.is_good || !item.is_image) continue;
      const std::uint32_t width = inspection.info.width;
      const std::uint32_t height = inspection.info.height;
      if (inspection.orientation != 1)
        rotated.add(items_.name(item), format("orientation {}", inspection.orientation));
      if (std::uint64_t{width} * height > kLargePixels || item.bytes > kLargeImageBytes)
        large.add(items_.name(item), format("{}x{}, {}", width, height, rounded({item.bytes})));
    }
    if (rotated.count() > 0)
      add_finding(
          "exif-rotation", Level::advice,
          images(rotated.count()) + " rotated by EXIF only, which the loader ignores, as torchvision does",
          rotated.evidence(), "rotate the pixels once, for example: mogrify -auto-orient FILE");
    if (large.count() > 0)
      add_finding("large-image", Level::time,
                  images(large.count()) + " over 16 megapixels or 20 MB: slow to read and decode",
                  large.evidence(),
                  "stoker data pack --resize 512 (lossy), or reducing_gap in the transform");
  }

  static bool has_matching_extension(std::string_view extension, image::ImageKind kind) {
    const std::string_view last = extension.substr(extension.rfind('.') + 1);
    if (kind == image::ImageKind::jpeg) return last == "jpg" || last == "jpeg";
    return last == (kind == image::ImageKind::png ? "png" : "webp");
  }

  void check_left_out() {
    EvidenceList unsafe, names, others;
    for (const sources::LeftOut& file : items_.left_out()) {
      EvidenceList* kind = file.reason == "unsafe member"    ? &unsafe
                           : file.reason == "unusable name"  ? &names
                           : file.reason == sources::kHidden ? nullptr
                                                             : &others;
      if (kind != nullptr)
        kind->add(file.path, file.reason + (file.detail.empty() ? "" : ": " + file.detail));
    }
    if (unsafe.count() > 0)
      add_finding(
          "unsafe-member", Level::job,
          format("{} would be written outside the folder when unpacked", counted(unsafe.count(), "member")),
          unsafe.evidence(), "do not unpack this archive; `stoker data pack` reads it and leaves them out");
    if (names.count() > 0)
      add_finding("unusable-name", Level::advice,
                  format("{} that readers cannot use", counted(names.count(), "name")), names.evidence(),
                  "rename them");
    if (others.count() > 0)
      add_finding("not-packed", Level::advice,
                  format("{} would not be packed", counted(others.count(), "file")), others.evidence(),
                  "ignore this if they are not meant to be samples");
  }

  // Duplicate bytes: in two splits they leak into the validation, in two classes they contradict each other.
  void check_contents() {
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> groups;
    groups.reserve(inspections_.size());
    for (std::uint32_t i = 0; i < inspections_.size(); ++i) {
      if (inspections_[i].is_good && items_.items()[i].is_image) groups[inspections_[i].content].push_back(i);
    }
    EvidenceList leaks, conflicts, copies;
    for (const auto& [content, members] : groups) {
      if (members.size() < 2) continue;
      const LintItem& first = items_.items()[members[0]];
      add_differing(members, [](const LintItem& item) { return std::int64_t{item.split}; }, leaks);
      add_differing(members, [](const LintItem& item) { return item.label; }, conflicts);
      for (std::size_t m = 1; m < members.size(); ++m)
        copies.add(items_.name(items_.items()[members[m]]), "is also " + printable(items_.name(first)));
    }
    if (leaks.count() > 0)
      add_finding("split-leak", Level::job,
                  images(leaks.count()) + " in more than one split: validation would include training data",
                  leaks.evidence(), "remove them from all splits but one");
    if (conflicts.count() > 0)
      add_finding("label-conflict", Level::job, images(conflicts.count()) + " in more than one class",
                  conflicts.evidence(), "keep each in the class it belongs to");
    if (copies.count() > 0)
      add_finding("duplicate", Level::advice, counted(copies.count(), "duplicate image"), copies.evidence(),
                  "remove them, unless the extra weight is intended");
  }

  // Adds the first copy, with the first copy of a different split or class.
  void add_differing(const std::vector<std::uint32_t>& copies, std::int64_t (*of)(const LintItem&),
                     EvidenceList& kind) const {
    const LintItem* first = nullptr;
    for (std::uint32_t copy : copies) {
      const LintItem& item = items_.items()[copy];
      if (of(item) < 0) continue;  // unlabelled
      if (first == nullptr) first = &item;
      if (of(item) == of(*first)) continue;
      kind.add(items_.name(*first), "is also " + items_.name(item));
      return;
    }
  }

  // Missing labels in a split with labels: usually a gap in a list.
  void check_labels() {
    std::vector<std::uint64_t> samples(items_.splits().size());
    std::vector<EvidenceList> unlabelled(samples.size());
    for (const LintItem& item : items_.items()) {
      if (item.component != 0) continue;
      ++samples[item.split];
      if (item.label < 0) unlabelled[item.split].add(items_.name(item));
    }
    for (std::size_t split = 0; split < samples.size(); ++split) {
      EvidenceList& without = unlabelled[split];
      if (without.count() == 0 || without.count() == samples[split]) continue;
      add_finding("no-label", Level::job,
                  format("{}: {} of {} samples have no label", items_.splits()[split],
                         grouped(without.count()), grouped(samples[split])),
                  without.evidence(), "label them, or move them to a separate split");
    }
  }

  void check_classes() {
    const std::vector<Count>& classes = report_.census.classes;
    if (classes.size() < 2) return;
    constexpr std::uint64_t kMaxRatio = 10;
    constexpr std::uint64_t kFew = 10;
    const Count& most = classes.front();
    const Count& least = classes.back();
    if (least.files == 0 || most.files / std::max<std::uint64_t>(1, least.files) >= kMaxRatio) {
      add_finding("imbalance", Level::advice,
                  format("class '{}' has {}, class '{}' only {}", printable(most.name),
                         counted(most.files, "file"), printable(least.name), grouped(least.files)),
                  {}, "weight the loss or the sampling; accuracy alone is misleading");
    }
    EvidenceList few;
    for (const Count& c : classes) {
      if (c.files < kFew) few.add(c.name, counted(c.files, "file"));
    }
    if (few.count() > 0)
      add_finding("few-samples", Level::advice,
                  few.count() == 1 ? "1 class has fewer than 10 files"
                                   : format("{} classes have fewer than 10 files", grouped(few.count())),
                  few.evidence(), "add samples, or remove these classes");
  }

  void check_layout() {
    const Census& census = report_.census;
    const dataset::Manifest* manifest = items_.manifest();
    const std::string where = shell_quote(options_.source.where);
    if (manifest == nullptr) {
      const std::uint64_t mean = census.bytes / std::max<std::uint64_t>(1, census.files);
      if (census.files >= kManyFiles && mean < kSmallFile && folder_exists(options_.source.where))
        add_finding("small-files", Level::time,
                    format("{} of {} on average: every epoch sends a metadata request for each of them",
                           counted(census.files, "file"), rounded({mean})),
                    {}, format("stoker data pack {} OUT", where));
      return;
    }
    for (const dataset::SplitInfo& split : manifest->splits) check_shards(split);
  }

  void check_shards(const dataset::SplitInfo& split) {
    const auto [few, many] =
        std::minmax_element(split.shards.begin(), split.shards.end(),
                            [](const auto& a, const auto& b) { return a.samples < b.samples; });
    if (split.shards.empty()) return;
    constexpr std::uint64_t kUneven = 20;  // percent
    if (many->samples - few->samples > many->samples * kUneven / 100)
      add_finding(
          "uneven-shards", Level::time,
          format("{}: shards have from {} to {}: readers of whole shards finish at different times",
                 split.name, few->samples, counted(many->samples, "sample")),
          {{few->file, counted(few->samples, "sample")}, {many->file, counted(many->samples, "sample")}},
          "stoker data pack: shards differ by one sample at most");
    if (!options_.readers) return;
    const std::uint64_t readers = options_.readers->readers();
    const std::string job =
        format("--for ranks={},workers={}", options_.readers->ranks, options_.readers->workers);
    if (split.shards.size() < readers) {
      add_finding("too-few-shards", Level::job,
                  format("{}: {} for {} readers: some readers of whole shards would get no shard", split.name,
                         counted(split.shards.size(), "shard"), readers),
                  {}, "stoker data pack ... " + job);
    } else if (split.shards.size() % readers != 0) {
      add_finding("shards-do-not-divide", Level::time,
                  format("{}: {} do not divide by {} readers", split.name,
                         counted(split.shards.size(), "shard"), readers),
                  {}, "stoker data pack ... " + job);
    }
  }

  void check_disk() {
    struct statvfs info{};
    if (options_.source.where == "-" || ::statvfs(options_.source.where.c_str(), &info) != 0) return;
    Census& census = report_.census;
    census.disk_bytes = static_cast<std::uint64_t>(info.f_blocks) * info.f_frsize;
    census.disk_free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    census.disk_files = info.f_files;
    census.disk_files_free = info.f_favail;
    // The fill level does not matter as long as the shards fit next to their source.
    if (!census.is_dataset && census.disk_free < census.bytes + census.bytes / kShardsAddOneIn)
      add_finding("disk-full", Level::advice,
                  format("{} of {} are free: shards of these {} would not fit", rounded({census.disk_free}),
                         rounded({census.disk_bytes}), rounded({census.bytes})),
                  {}, "pack to another filesystem");
    // Like df: space reserved for root or by a quota counts neither as used nor as free.
    const std::uint64_t used = info.f_files - info.f_ffree;
    if (used > 0 && used * (100 - kFullPercent) > census.disk_files_free * kFullPercent)
      add_finding(
          "inodes-full", Level::advice,
          format("{} of {} inodes are free", grouped(census.disk_files_free), grouped(census.disk_files)), {},
          "shards in place of files: stoker data pack");
  }

  const LintOptions& options_;
  const LintItems& items_;
  Progress& progress_;
  std::vector<ItemInspection> inspections_;
  LintReport report_;
};

}  // namespace

Result<LintReport> lint(const LintOptions& options, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(items, open_items(options.source, progress));
  STOKER_ASSIGN_OR_RETURN(report, Linter(options, *items, progress).run());
  report.census.samples = items->items().size();
  return std::move(report);
}

}  // namespace stoker::inspect
