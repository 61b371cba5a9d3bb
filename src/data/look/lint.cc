#include "data/look/lint.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <sys/statvfs.h>
#include <unordered_map>

#include "base/hash.h"
#include "base/thread.h"
#include "data/look/lint_items.h"
#include "data/look/lint_kind.h"
#include "data/pack/shard/image_check.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kSmallFile = 1'000'000;
constexpr std::uint64_t kManyFiles = 10'000;
constexpr std::uint64_t kFullPercent = 90;     // of the inodes
constexpr std::uint64_t kShardsAddOneIn = 10;  // bytes: headers, padding, the index

// What one look at a file gave.
struct Seen {
  std::uint64_t content = 0;  // the first 8 bytes of its SHA-256
  ImageInfo info;
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
      : options_(options), items_(items), progress_(progress), seen_(items.items().size()) {}

  Result<LintReport> run() {
    RETURN_IF_ERROR(look_at_all());
    take_census();
    judge_images();
    judge_left_out();
    judge_contents();
    judge_labels();
    judge_classes();
    judge_layout();
    judge_disk();
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.level < b.level; });
    return std::move(report_);
  }

 private:
  void find(std::string rule, Level level, std::string what, std::vector<Evidence> evidence,
            std::string cure) {
    report_.findings.push_back(
        {std::move(rule), level, std::move(what), std::move(evidence), std::move(cure)});
  }

  Status look_at_all() {
    const std::vector<LintItem>& all = items_.items();
    std::atomic<std::size_t> next{0};
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::uint64_t> bytes{0};
    const auto work = [&] {
      FileBytes content;
      for (std::size_t i = next++; i < all.size() && !progress_.stop_requested(); i = next++) {
        look_at(all[i], content, seen_[i]);
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
      return cancelled("{}: stopped before all was looked at", printable(options_.source.where));
    return {};
  }

  void look_at(const LintItem& item, FileBytes& content, Seen& seen) const {
    if (const Status status = items_.read(item, content); !status.ok()) {
      seen.is_good = false;
      seen.reason = status.code() == Code::corrupt ? "damaged" : "unreadable";
      seen.detail = status.message();
      return;
    }
    const Digest digest = sha256(content.bytes());
    std::memcpy(&seen.content, digest.data(), sizeof seen.content);
    if (!item.is_image) return;
    ImageVerdict verdict = options_.decodes ? decode_check(content.bytes()) : scan_image(content.bytes());
    seen.is_good = verdict.is_good;
    seen.info = verdict.info;
    seen.reason = std::move(verdict.reason);
    seen.detail = std::move(verdict.detail);
  }

  void take_census() {
    Census& census = report_.census;
    census.is_dataset = items_.manifest() != nullptr;
    census.notes = items_.notes();
    for (const std::string& name : items_.splits()) census.splits.push_back({name});
    for (const std::string& name : items_.classes()) census.classes.push_back({name});
    std::map<int, Tally> sizes;
    std::map<std::string, Tally> folders;
    for (const LintItem& item : items_.items()) {
      const auto count = [&](Tally& tally) {
        ++tally.files;
        tally.bytes += item.bytes;
      };
      ++census.files;
      census.bytes += item.bytes;
      count(census.splits[item.split]);
      if (item.label >= 0 && static_cast<std::size_t>(item.label) < census.classes.size())
        count(census.classes[static_cast<std::size_t>(item.label)]);
      count(sizes[item.bytes < 1000 ? 2 : static_cast<int>(std::log10(static_cast<double>(item.bytes)))]);
      count(folders[items_.holder(item)]);
    }
    for (const LeftOut& file : items_.left_out()) census.files += file.reason == kHidden ? 0 : 1;
    const auto power = [](int exponent) {
      return rounded({static_cast<std::uint64_t>(std::pow(10.0, exponent) + 0.5)});
    };
    for (auto& [exponent, tally] : sizes) {
      tally.name = exponent <= 2 ? "under 1 kB" : format("{} to {}", power(exponent), power(exponent + 1));
      census.sizes.push_back(std::move(tally));
    }
    for (auto& [name, tally] : folders) {
      tally.name = name.empty() ? "." : name;
      census.folders.push_back(std::move(tally));
    }
    largest_first(census.classes, census.classes.size());
    largest_first(census.folders, 10);
  }

  static void largest_first(std::vector<Tally>& tallies, std::size_t most) {
    std::stable_sort(tallies.begin(), tallies.end(),
                     [](const Tally& a, const Tally& b) { return a.files > b.files; });
    if (tallies.size() > most) tallies.resize(most);
  }

  void judge_images() {
    LintKind broken, cmyk, alpha, misnamed, progressive, tiny;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const LintItem& item = items_.items()[i];
      const Seen& seen = seen_[i];
      if (!seen.is_good)
        broken.add(items_.name(item), seen.reason + (seen.detail.empty() ? "" : ": " + seen.detail));
      if (!seen.is_good || !item.is_image) continue;
      const bool is_jpeg = seen.info.kind == ImageKind::jpeg;
      if (is_jpeg && seen.info.channels == 4) cmyk.add(items_.name(item));
      if (!is_jpeg && seen.info.channels % 2 == 0) alpha.add(items_.name(item));
      if (is_jpeg && seen.info.progressive) progressive.add(items_.name(item));
      if (!named_well(items_.extension(item), seen.info.kind))
        misnamed.add(items_.name(item), format("is a {}", to_text(seen.info.kind)));
      if (std::min(seen.info.width, seen.info.height) < 8)
        tiny.add(items_.name(item), format("{}x{}", seen.info.width, seen.info.height));
    }
    const bool is_dataset = items_.manifest() != nullptr;
    if (broken.count() > 0)
      find("broken-file", Level::job,
           format("{} {} broken or no images", grouped(broken.count()),
                  broken.count() == 1 ? "file is" : "files are"),
           broken.evidence(),
           is_dataset ? "pack again: `stoker data pack` leaves such files out and lists them"
                      : "remove them; `stoker data pack` leaves them out and lists them");
    if (cmyk.count() > 0)
      find("cmyk-image", Level::advice,
           images(cmyk.count()) + " CMYK, which decoders turn into RGB in different ways", cmyk.evidence(),
           "convert them once, for example: mogrify -colorspace sRGB FILE");
    if (alpha.count() > 0)
      find("alpha-image", Level::advice,
           images(alpha.count()) + " partly transparent: the loader drops the alpha channel",
           alpha.evidence(),
           "put them on a background, for example: mogrify -background white -alpha remove FILE");
    if (misnamed.count() > 0)
      find("wrong-extension", Level::advice, images(misnamed.count()) + " of another kind than the name says",
           misnamed.evidence(), "rename them: some readers choose the decoder by the name");
    if (progressive.count() > 0)
      find("progressive-jpeg", Level::time,
           images(progressive.count()) + " progressive, three times as slow to decode",
           progressive.evidence(), "stoker data pack --jpeg baseline: no pixel changes");
    if (tiny.count() > 0)
      find("tiny-image", Level::advice, images(tiny.count()) + " less than 8 pixels wide or high",
           tiny.evidence(), "look whether they are meant to be there: stoker data sample");
  }

  static bool named_well(std::string_view extension, ImageKind kind) {
    const std::string_view last = extension.substr(extension.rfind('.') + 1);
    if (kind == ImageKind::jpeg) return last == "jpg" || last == "jpeg";
    return last == (kind == ImageKind::png ? "png" : "webp");
  }

  void judge_left_out() {
    LintKind unsafe, names, others;
    for (const LeftOut& file : items_.left_out()) {
      LintKind* kind = file.reason == "unsafe member"   ? &unsafe
                       : file.reason == "unusable name" ? &names
                       : file.reason == kHidden         ? nullptr
                                                        : &others;
      if (kind != nullptr)
        kind->add(file.path, file.reason + (file.detail.empty() ? "" : ": " + file.detail));
    }
    if (unsafe.count() > 0)
      find("unsafe-member", Level::job,
           format("{} members would be written outside the folder when unpacked", grouped(unsafe.count())),
           unsafe.evidence(), "do not unpack this archive; `stoker data pack` reads it and leaves them out");
    if (names.count() > 0)
      find("unusable-name", Level::advice, format("{} names that readers cannot use", grouped(names.count())),
           names.evidence(), "rename them");
    if (others.count() > 0)
      find("not-packed", Level::advice, format("{} files would not be packed", grouped(others.count())),
           others.evidence(), "nothing, if they are not meant to be samples");
  }

  // The same bytes twice: in two splits they spoil the validation, in two classes the training.
  void judge_contents() {
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> groups;
    groups.reserve(seen_.size());
    for (std::uint32_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i].is_good && items_.items()[i].is_image) groups[seen_[i].content].push_back(i);
    }
    LintKind leaks, conflicts, copies;
    for (const auto& [content, members] : groups) {
      if (members.size() < 2) continue;
      const LintItem& first = items_.items()[members[0]];
      add_differing(members, [](const LintItem& item) { return std::int64_t{item.split}; }, leaks);
      add_differing(members, [](const LintItem& item) { return item.label; }, conflicts);
      for (std::size_t m = 1; m < members.size(); ++m)
        copies.add(items_.name(items_.items()[members[m]]), "is also " + printable(items_.name(first)));
    }
    if (leaks.count() > 0)
      find("split-leak", Level::job,
           format("{} images are in more than one split: validation would measure what was trained on",
                  grouped(leaks.count())),
           leaks.evidence(), "remove them from all splits but one");
    if (conflicts.count() > 0)
      find("label-conflict", Level::job,
           format("{} images are in more than one class", grouped(conflicts.count())), conflicts.evidence(),
           "keep each in the class it belongs to");
    if (copies.count() > 0)
      find("duplicate", Level::advice, format("{} images are copies of others", grouped(copies.count())),
           copies.evidence(), "remove them, unless they are to weigh more");
  }

  // The first of some copies, and the first that is of another split or class than it.
  void add_differing(const std::vector<std::uint32_t>& copies, std::int64_t (*of)(const LintItem&),
                     LintKind& kind) const {
    const LintItem* first = nullptr;
    for (std::uint32_t copy : copies) {
      const LintItem& item = items_.items()[copy];
      if (of(item) < 0) continue;  // of no class
      if (first == nullptr) first = &item;
      if (of(item) == of(*first)) continue;
      kind.add(items_.name(*first), "is also " + items_.name(item));
      return;
    }
  }

  // Labels that are missing in a split that has some: a gap in a list more often than a wish.
  void judge_labels() {
    std::vector<std::uint64_t> samples(items_.splits().size());
    std::vector<LintKind> unlabelled(samples.size());
    for (const LintItem& item : items_.items()) {
      if (item.which != 0) continue;
      ++samples[item.split];
      if (item.label < 0) unlabelled[item.split].add(items_.name(item));
    }
    for (std::size_t split = 0; split < samples.size(); ++split) {
      LintKind& without = unlabelled[split];
      if (without.count() == 0 || without.count() == samples[split]) continue;
      find("no-label", Level::job,
           format("{}: {} of {} samples have no label", items_.splits()[split], grouped(without.count()),
                  grouped(samples[split])),
           without.evidence(), "a label for each, or a split of their own");
    }
  }

  void judge_classes() {
    const std::vector<Tally>& classes = report_.census.classes;
    if (classes.size() < 2) return;
    constexpr std::uint64_t kMostRatio = 10;
    constexpr std::uint64_t kFew = 10;
    const Tally& most = classes.front();
    const Tally& least = classes.back();
    if (least.files == 0 || most.files / std::max<std::uint64_t>(1, least.files) >= kMostRatio) {
      find("imbalance", Level::advice,
           format("class '{}' has {} files, class '{}' only {}", printable(most.name), grouped(most.files),
                  printable(least.name), grouped(least.files)),
           {}, "weight the loss or the sampling; accuracy alone will say little");
    }
    LintKind few;
    for (const Tally& c : classes) {
      if (c.files < kFew) few.add(c.name, format("{} files", c.files));
    }
    if (few.count() > 0)
      find("few-samples", Level::advice, format("{} classes have fewer than 10 files", grouped(few.count())),
           few.evidence(), "more samples, or leave these classes out");
  }

  void judge_layout() {
    const Census& census = report_.census;
    const formats::Manifest* manifest = items_.manifest();
    const std::string where = shell_quote(options_.source.where);
    if (manifest == nullptr) {
      const std::uint64_t mean = census.bytes / std::max<std::uint64_t>(1, census.files);
      if (census.files >= kManyFiles && mean < kSmallFile && folder_exists(options_.source.where))
        find("small-files", Level::time,
             format("{} files of {} on average: every epoch asks the metadata server for each of them",
                    grouped(census.files), rounded({mean})),
             {}, format("stoker data pack {} OUT", where));
      return;
    }
    for (const formats::SplitInfo& split : manifest->splits) judge_shards(split);
  }

  void judge_shards(const formats::SplitInfo& split) {
    const auto [few, many] =
        std::minmax_element(split.shards.begin(), split.shards.end(),
                            [](const auto& a, const auto& b) { return a.samples < b.samples; });
    if (split.shards.empty()) return;
    constexpr std::uint64_t kUneven = 20;  // percent
    if (many->samples - few->samples > many->samples * kUneven / 100)
      find("uneven-shards", Level::time,
           format("{}: shards have from {} to {} samples: readers of whole shards finish at different times",
                  split.name, few->samples, many->samples),
           {{few->file, format("{} samples", few->samples)},
            {many->file, format("{} samples", many->samples)}},
           "stoker data pack: shards differ by one sample at most");
    if (!options_.readers) return;
    const std::uint64_t readers = options_.readers->readers();
    const std::string job =
        format("--for ranks={},workers={}", options_.readers->ranks, options_.readers->workers);
    if (split.shards.size() < readers) {
      find("too-few-shards", Level::job,
           format("{}: {} shards for {} readers: readers that take whole shards would have none", split.name,
                  split.shards.size(), readers),
           {}, "stoker data pack ... " + job);
    } else if (split.shards.size() % readers != 0) {
      find("shards-do-not-divide", Level::time,
           format("{}: {} shards do not divide by {} readers", split.name, split.shards.size(), readers), {},
           "stoker data pack ... " + job);
    }
  }

  void judge_disk() {
    struct statvfs info{};
    if (options_.source.where == "-" || ::statvfs(options_.source.where.c_str(), &info) != 0) return;
    Census& census = report_.census;
    census.disk_bytes = static_cast<std::uint64_t>(info.f_blocks) * info.f_frsize;
    census.disk_free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    census.disk_files = info.f_files;
    census.disk_files_free = info.f_favail;
    // How full a disk is, is no matter as long as the shards find room beside what they are made of.
    if (!census.is_dataset && census.disk_free < census.bytes + census.bytes / kShardsAddOneIn)
      find("disk-full", Level::advice,
           format("{} of {} are free there: shards of these {} would not fit", rounded({census.disk_free}),
                  rounded({census.disk_bytes}), rounded({census.bytes})),
           {}, "pack to another filesystem");
    // As df counts: what is kept back for root or beyond a quota belongs to neither side.
    const std::uint64_t used = info.f_files - info.f_ffree;
    if (used > 0 && used * (100 - kFullPercent) > census.disk_files_free * kFullPercent)
      find("inodes-full", Level::advice,
           format("{} of {} inodes are free there", grouped(census.disk_files_free),
                  grouped(census.disk_files)),
           {}, "shards in place of files: stoker data pack");
  }

  const LintOptions& options_;
  const LintItems& items_;
  Progress& progress_;
  std::vector<Seen> seen_;
  LintReport report_;
};

}  // namespace

Result<LintReport> lint(const LintOptions& options, Progress& progress) {
  OK_OR_RETURN(items, open_items(options.source, progress));
  OK_OR_RETURN(report, Linter(options, *items, progress).run());
  report.census.samples = items->items().size();
  return std::move(report);
}

}  // namespace stoker::data
