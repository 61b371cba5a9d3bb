// A source of folders: which of their files are samples.
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "data/pack/source/dotted_names.h"
#include "data/pack/source/shape.h"

namespace stoker::data {

namespace {

// Files of one basename: which of them is the image.
Result<const SourceFile*> find_image(Source& source, const std::string& where,
                                     std::span<const SourceFile> files, SourceLayout layout) {
  const SourceFile* image = nullptr;
  std::map<std::string, const SourceFile*> of_extension;
  for (const SourceFile& file : files) {
    const std::string extension = extension_of(file.name);
    source.has_label_files = source.has_label_files || extension == "cls";
    if (const auto [twin, is_new] = of_extension.emplace(extension, &file); !is_new) {
      return invalid("{}: '{}' and '{}' would be the same file of one sample", where,
                     printable(source.own_name(*twin->second)), printable(source.own_name(file)))
          .cure("rename one of them");
    }
    if (!is_picture(extension)) continue;
    if (image != nullptr && layout == SourceLayout::images) {
      return invalid("{}: '{}' and '{}' share the basename '{}' and would become one sample", where,
                     printable(source.own_name(*image)), printable(source.own_name(file)),
                     printable(basename_of(file.name)))
          .cure("rename one of them, or stoker data pack --layout files if they belong together");
    }
    image = &file;
  }
  return image;
}

// Files of one basename without an image.
void leave_out(const SourceFolder& folder, std::span<const SourceFile> files, Source& source) {
  for (const SourceFile& file : files) {
    const std::string extension = extension_of(file.name);
    LeftOut& left_out = source.left_out.emplace_back();
    left_out.path = source.path_of(folder, file);
    const bool is_image = is_image_extension(extension);
    left_out.reason = is_image ? kAmbiguous : why_no_image(extension);
    if (is_image)
      left_out.detail = format("other files have '{}' before the first dot, too", basename_of(file.name));
  }
}

// Groups a folder's files by basename: sorted names put those of one basename side by side.
Status group(Source& source, std::uint32_t number, SourceLayout layout) {
  const SourceFolder& folder = source.folders[number];
  const std::string where = source.tree->shown(folder.path);
  const std::span<const SourceFile> files = folder.files;
  std::uint64_t renamed = 0;
  for (std::uint32_t i = 0; i < files.size();) {
    const std::string_view base = basename_of(files[i].name);
    std::uint32_t end = i + 1;
    while (end < files.size() && basename_of(files[end].name) == base) ++end;
    const std::span<const SourceFile> these = files.subspan(i, end - i);
    OK_OR_RETURN(image, find_image(source, where, these, layout));
    if (image == nullptr && layout == SourceLayout::images) {
      leave_out(folder, these, source);
    } else {
      renamed += these.front().own_name != 0 ? 1 : 0;
      source.samples[folder.split].push_back(
          {.folder = number, .first = i, .files = end - i, .label = static_cast<std::int32_t>(folder.label)});
    }
    i = end;
  }
  if (renamed > 0) source.not_carried[std::string(kDotsBecome)] += renamed;
  return {};
}

// That nothing in a folder is an image, or why nothing seems to be.
Status no_images(const Source& source, const std::string& path, std::string_view what, std::string_view why) {
  const auto is_ambiguous = [&](const LeftOut& left_out) {
    return left_out.reason == kAmbiguous && (path.empty() || left_out.path.starts_with(path + '/'));
  };
  const auto found = std::find_if(source.left_out.begin(), source.left_out.end(), is_ambiguous);
  if (found == source.left_out.end()) return invalid("{}{}", what, why);
  return invalid("{}: '{}' has several dots, and a sample's name ends at the first", what,
                 printable(found->path.substr(found->path.rfind('/') + 1)))
      .cure("rename such files, or stoker data pack --layout files if those of one name belong together");
}

Status check_classes(const Source& source, const std::vector<FolderWalk>& walks) {
  std::set<std::uint32_t> used;
  for (const auto& samples : source.samples) {
    for (const SourceSample& sample : samples) used.insert(sample.folder);
  }
  // A class's folders follow each other in source.folders; count what each walk gave.
  std::uint32_t folder = 0;
  for (const FolderWalk& walk : walks) {
    bool has_samples = false;
    for (std::size_t i = 0; i < walk.folders.size(); ++i)
      has_samples = has_samples || used.contains(folder++);
    if (walk.class_name.empty() || has_samples) continue;
    const std::string what =
        format("{}: class '{}' has no images", source.tree->shown(walk.top.path), printable(walk.class_name));
    Status status = no_images(source, walk.top.path, what, "");
    if (!status.cure().empty()) return status;
    return std::move(status).cure("remove that folder, or put its images there");
  }
  return {};
}

Status check_samples(const Source& source, const SourceShape& shape, SourceLayout layout) {
  if (source.has_label_files && !source.classes.empty()) {
    return invalid("{}: label files (.cls) and class folders at once: which is the label?",
                   source.tree->shown(""));
  }
  for (std::size_t split = 0; split < source.splits.size(); ++split) {
    const bool has_splits = source.splits.size() > 1;
    if (!source.samples[split].empty() || (!has_splits && !source.classes.empty())) continue;
    const std::string path = has_splits ? shape.paths[split] : "";
    return no_images(source, path, format("{}: no images", source.tree->shown(path)),
                     layout == SourceLayout::images ? " (JPEG, PNG or WebP by their extension)" : "");
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

// The folders of a shape that was walked.
void take_folders(SourceShape& shape, Source& source) {
  source.splits = shape.splits;
  source.samples.resize(shape.splits.size());
  source.classes.assign(shape.classes.begin(), shape.classes.end());
  source.left_out = std::move(shape.left_out);
  if (!shape.root.empty())
    source.notes.push_back(format("its only folder '{}' is taken as the root", printable(shape.root)));
  for (FolderWalk& walk : shape.walks) {
    std::move(walk.left_out.begin(), walk.left_out.end(), std::back_inserter(source.left_out));
    const auto label = std::lower_bound(source.classes.begin(), source.classes.end(), walk.class_name);
    for (SourceFolder& found : walk.folders) {
      SourceFolder& folder = source.folders.emplace_back(std::move(found));
      if (!walk.class_name.empty()) folder.label = label - source.classes.begin();
    }
  }
}

}  // namespace

Result<Source> list_by_folders(std::unique_ptr<SourceTree> tree, const SourceOptions& options,
                               const Progress& progress) {
  OK_OR_RETURN(shape, walk_shape(*tree, options, progress));
  Source source;
  source.tree = std::move(tree);
  take_folders(shape, source);
  std::vector<std::string> own_names;
  for (SourceFolder& folder : source.folders) {
    if (options.layout == SourceLayout::images)
      RETURN_IF_ERROR(join_dots(folder.files, source.tree->shown(folder.path), own_names));
  }
  keep_own_names(std::move(own_names), source);
  for (std::uint32_t i = 0; i < source.folders.size(); ++i) RETURN_IF_ERROR(group(source, i, options.layout));
  RETURN_IF_ERROR(check_samples(source, shape, options.layout));
  RETURN_IF_ERROR(check_classes(source, shape.walks));
  count(source);
  return source;
}

}  // namespace stoker::data
