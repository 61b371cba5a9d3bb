#include <algorithm>
#include <array>
#include <atomic>
#include <set>

#include "base/encode.h"
#include "base/thread.h"
#include "data/pack/source/tree.h"

namespace stoker::data {

namespace {

constexpr int kDeepest = 32;
constexpr std::array<std::string_view, 5> kSplitNames = {"train", "val", "test", "valid", "validation"};

// WebDataset skips members whose path begins so.
bool is_skipped_by_readers(std::string_view member) {
  const std::string_view top = member.substr(0, member.find('/'));
  return top.size() >= 4 && top.starts_with("__") && top.ends_with("__");
}

// One folder to be walked with all below it: a class, or a split's root without its classes.
struct Walk {
  SourceFolder top;
  std::string class_name;  // empty: no class
  bool is_deep = true;
  std::vector<SourceFolder> folders;
  std::vector<LeftOut> left_out;
  Status status;
};

Status walk_folder(const SourceTree& tree, SourceFolder folder, int depth, Walk& into) {
  if (depth > kDeepest) {
    return invalid("{}: folders more than {} deep (a link to a parent?)", printable(folder.path), kDeepest);
  }
  OK_OR_RETURN(listing, tree.list(folder.path));
  into.left_out.insert(into.left_out.end(), listing.left_out.begin(), listing.left_out.end());
  if (is_skipped_by_readers(folder.member)) {
    for (const SourceFile& file : listing.files) {
      into.left_out.push_back(
          {child(folder.path, file.name), "unusable name", "readers skip paths that begin with __...__"});
    }
    listing.files.clear();
  }
  for (const std::string& name : listing.folders) {
    SourceFolder below = folder;
    below.path = child(folder.path, name);
    below.member = child(folder.member, name);
    if (!is_utf8(name)) {
      into.left_out.push_back({below.path, "unusable name", "not UTF-8"});
      continue;
    }
    RETURN_IF_ERROR(walk_folder(tree, std::move(below), depth + 1, into));
  }
  folder.files = std::move(listing.files);
  if (!folder.files.empty()) into.folders.push_back(std::move(folder));
  return {};
}

// The source's shape, found by listing its first two levels.
struct Shape {
  std::vector<std::string> splits;
  std::vector<Walk> walks;
  std::set<std::string> classes;
  std::vector<LeftOut> left_out;
};

bool has_image(const Listing& listing) {
  return std::any_of(listing.files.begin(), listing.files.end(),
                     [](const SourceFile& f) { return is_image_extension(extension_of(f.name)); });
}

Status add_split(const SourceTree& tree, const std::string& name, const std::string& path, Shape& shape) {
  const auto split = static_cast<std::uint32_t>(shape.splits.size());
  shape.splits.push_back(name);
  OK_OR_RETURN(listing, tree.list(path));
  for (const std::string& folder : listing.folders) {
    if (!is_utf8(folder)) {
      shape.left_out.push_back({child(path, folder), "unusable name", "not UTF-8"});
      continue;
    }
    Walk& walk = shape.walks.emplace_back();
    walk.top = {.path = child(path, folder), .member = folder, .split = split, .label = -1, .files = {}};
    walk.class_name = folder;
    shape.classes.insert(folder);
  }
  shape.left_out.insert(shape.left_out.end(), listing.left_out.begin(), listing.left_out.end());
  if (listing.folders.empty()) {
    Walk& walk = shape.walks.emplace_back();
    walk.is_deep = false;
    walk.folders.push_back(
        {.path = path, .member = {}, .split = split, .label = -1, .files = std::move(listing.files)});
    return {};
  }
  for (const SourceFile& file : listing.files) {
    const bool image = is_image_extension(extension_of(file.name));
    shape.left_out.push_back({child(path, file.name), image ? "no class" : "not an image",
                              image ? "beside the class folders" : ""});
  }
  return {};
}

Result<Shape> find_shape(const SourceTree& tree) {
  OK_OR_RETURN(top, tree.list(""));
  Shape shape;
  const bool has_splits = !top.folders.empty() && !has_image(top) &&
                          std::all_of(top.folders.begin(), top.folders.end(), is_split_name);
  if (!has_splits) {
    RETURN_IF_ERROR(add_split(tree, "all", "", shape));
    return shape;
  }
  shape.left_out = top.left_out;
  for (const SourceFile& file : top.files) shape.left_out.push_back({file.name, "not an image", {}});
  for (std::string_view split : kSplitNames) {
    if (std::find(top.folders.begin(), top.folders.end(), split) == top.folders.end()) continue;
    RETURN_IF_ERROR(add_split(tree, std::string(split), std::string(split), shape));
  }
  return shape;
}

void run_walks(const SourceTree& tree, std::vector<Walk>& walks, int threads, const Progress& progress) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < walks.size(); i = next++) {
      if (progress.stop_requested()) {
        walks[i].status = cancelled("{}: stopped while it was listed", tree.shown(""));
      } else if (walks[i].is_deep) {
        walks[i].status = walk_folder(tree, walks[i].top, 1, walks[i]);
      }
    }
  };
  std::vector<Thread> helpers;
  for (int t = 1; t < threads && static_cast<std::size_t>(t) < walks.size(); ++t) {
    helpers.emplace_back([&](const StopToken&) { work(); });
  }
  work();
}

// Groups a folder's files by basename: sorted names put those of one basename side by side.
Status group(Source& source, std::uint32_t number, SourceLayout layout) {
  const SourceFolder& folder = source.folders[number];
  const std::string where = source.tree->shown(folder.path);
  const std::vector<SourceFile>& files = folder.files;
  for (std::uint32_t i = 0; i < files.size();) {
    const std::string_view base = basename_of(files[i].name);
    std::uint32_t end = i + 1;
    while (end < files.size() && basename_of(files[end].name) == base) ++end;
    const SourceFile* image = nullptr;
    std::set<std::string> extensions;
    for (std::uint32_t f = i; f < end; ++f) {
      const std::string extension = extension_of(files[f].name);
      source.has_label_files = source.has_label_files || extension == "cls";
      const auto twin = std::find_if(files.begin() + i, files.begin() + f, [&](const SourceFile& other) {
        return extension_of(other.name) == extension;
      });
      if (!extensions.insert(extension).second) {
        return invalid("{}: '{}' and '{}' would be the same file of one sample", where, printable(twin->name),
                       printable(files[f].name))
            .cure("rename one of them");
      }
      if (!is_image_extension(extension) || extension.find('.') != std::string::npos) continue;
      if (image != nullptr && layout == SourceLayout::images) {
        return invalid("{}: '{}' and '{}' share the basename '{}' and would become one sample", where,
                       printable(image->name), printable(files[f].name), printable(base))
            .cure("rename one of them, or stoker data pack --layout files if they belong together");
      }
      image = &files[f];
    }
    if (image == nullptr && layout == SourceLayout::images) {
      for (std::uint32_t f = i; f < end; ++f) {
        source.left_out.push_back({child(folder.path, files[f].name), "not an image", {}});
      }
    } else {
      source.samples[folder.split].push_back(
          {.folder = number, .first = i, .files = end - i, .label = static_cast<std::int32_t>(folder.label)});
    }
    i = end;
  }
  return {};
}

Status check_classes(const Source& source, const std::vector<Walk>& walks) {
  std::set<std::uint32_t> used;
  for (const auto& samples : source.samples) {
    for (const SourceSample& sample : samples) used.insert(sample.folder);
  }
  // A class's folders follow each other in source.folders; count what each walk gave.
  std::uint32_t folder = 0;
  for (const Walk& walk : walks) {
    bool has_samples = false;
    for (std::size_t i = 0; i < walk.folders.size(); ++i)
      has_samples = has_samples || used.contains(folder++);
    if (!walk.class_name.empty() && !has_samples) {
      return invalid("{}: class '{}' has no images", source.tree->shown(walk.top.path),
                     printable(walk.class_name))
          .cure("remove that folder, or put its images there");
    }
  }
  return {};
}

Status check_samples(const Source& source, const SourceOptions& options) {
  if (source.has_label_files && !source.classes.empty()) {
    return invalid("{}: label files (.cls) and class folders at once: which is the label?",
                   source.tree->shown(""));
  }
  for (std::size_t split = 0; split < source.splits.size(); ++split) {
    const bool has_splits = source.splits.size() > 1;
    if (!source.samples[split].empty() || (!has_splits && !source.classes.empty())) continue;
    return invalid("{}: no images{}", source.tree->shown(has_splits ? source.splits[split] : ""),
                   options.layout == SourceLayout::images ? " (JPEG, PNG or WebP by their extension)" : "");
  }
  return {};
}

void count(Source& source) {
  for (const LeftOut& left_out : source.left_out) source.files += left_out.reason == kHidden ? 0 : 1;
  for (const auto& samples : source.samples) {
    for (const SourceSample& sample : samples) {
      source.files += sample.files;
      for (std::uint32_t i = 0; i < sample.files; ++i) source.bytes += source.file(sample, i).bytes;
    }
  }
}

}  // namespace

bool is_split_name(std::string_view name) {
  return std::find(kSplitNames.begin(), kSplitNames.end(), name) != kSplitNames.end();
}

Result<Source> list_by_folders(std::unique_ptr<SourceTree> tree, const SourceOptions& options,
                               const Progress& progress) {
  OK_OR_RETURN(shape, find_shape(*tree));
  run_walks(*tree, shape.walks, options.threads, progress);
  Source source;
  source.tree = std::move(tree);
  source.splits = shape.splits;
  source.samples.resize(shape.splits.size());
  source.classes.assign(shape.classes.begin(), shape.classes.end());
  source.left_out = std::move(shape.left_out);
  for (Walk& walk : shape.walks) {
    RETURN_IF_ERROR(walk.status);
    std::move(walk.left_out.begin(), walk.left_out.end(), std::back_inserter(source.left_out));
    const auto label = std::lower_bound(source.classes.begin(), source.classes.end(), walk.class_name);
    for (SourceFolder& found : walk.folders) {
      SourceFolder& folder = source.folders.emplace_back(std::move(found));
      if (!walk.class_name.empty()) folder.label = label - source.classes.begin();
    }
  }
  for (std::uint32_t i = 0; i < source.folders.size(); ++i) RETURN_IF_ERROR(group(source, i, options.layout));
  RETURN_IF_ERROR(check_samples(source, options));
  RETURN_IF_ERROR(check_classes(source, shape.walks));
  count(source);
  return source;
}

}  // namespace stoker::data
