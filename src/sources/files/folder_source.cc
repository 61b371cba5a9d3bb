// Finds the samples in a source of folders.
#include "sources/files/folder_source.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "sources/files/dotted_names.h"
#include "sources/files/folder_layout.h"

namespace stoker::sources {

namespace {

// The main image among files of one basename.
Result<const SourceFile*> find_image(PackSource& source, const std::string& where,
                                     std::span<const SourceFile> files, SourceLayout layout) {
  const SourceFile* image = nullptr;
  std::map<std::string, const SourceFile*> of_extension;
  for (const SourceFile& file : files) {
    const std::string extension = extension_of(file.name);
    source.has_label_files = source.has_label_files || extension == "cls";
    if (const auto [twin, is_new] = of_extension.emplace(extension, &file); !is_new) {
      return invalid("{}: '{}' and '{}' would be the same file of one sample", where,
                     printable(source.original_name(*twin->second)), printable(source.original_name(file)))
          .cure("rename one of them");
    }
    if (!is_main_image(extension)) continue;
    if (image != nullptr && layout == SourceLayout::images) {
      return invalid("{}: '{}' and '{}' share the basename '{}' and would become one sample", where,
                     printable(source.original_name(*image)), printable(source.original_name(file)),
                     printable(basename_of(file.name)))
          .cure("rename one of them, or use --layout files if they belong together");
    }
    image = &file;
  }
  return image;
}

// Leaves out files of one basename without an image.
void leave_out(const SourceFolder& folder, std::span<const SourceFile> files, PackSource& source) {
  for (const SourceFile& file : files) {
    const std::string extension = extension_of(file.name);
    LeftOut& left_out = source.left_out.emplace_back();
    left_out.path = source.path_of(folder, file);
    const bool is_image = is_image_extension(extension);
    left_out.reason = is_image ? kAmbiguous : non_image_reason(extension);
    if (is_image)
      left_out.detail = format("other files also have '{}' before the first dot", basename_of(file.name));
  }
}

// Groups a folder's files by basename, which are adjacent in sorted order.
Status group_samples(PackSource& source, std::uint32_t number, SourceLayout layout) {
  const SourceFolder& folder = source.folders[number];
  const std::string where = source.tree->display_path(folder.path);
  const std::span<const SourceFile> files = folder.files;
  std::uint64_t renamed = 0;
  for (std::uint32_t i = 0; i < files.size();) {
    const std::string_view base = basename_of(files[i].name);
    std::uint32_t end = i + 1;
    while (end < files.size() && basename_of(files[end].name) == base) ++end;
    const std::span<const SourceFile> these = files.subspan(i, end - i);
    STOKER_ASSIGN_OR_RETURN(image, find_image(source, where, these, layout));
    if (image == nullptr && layout == SourceLayout::images) {
      leave_out(folder, these, source);
    } else {
      renamed += these.front().original_name != 0 ? 1 : 0;
      source.samples[folder.split].push_back(
          {.folder = number, .first = i, .files = end - i, .label = static_cast<std::int32_t>(folder.label)});
    }
    i = end;
  }
  if (renamed > 0) source.skipped_fields[std::string(kDotsReplaced)] += renamed;
  return {};
}

// The error for a folder without images, or with ambiguous ones only.
Status no_images_error(const PackSource& source, const std::string& path, std::string_view what,
                       std::string_view why) {
  const auto is_ambiguous = [&](const LeftOut& left_out) {
    return left_out.reason == kAmbiguous && (path.empty() || left_out.path.starts_with(path + '/'));
  };
  const auto found = std::find_if(source.left_out.begin(), source.left_out.end(), is_ambiguous);
  if (found == source.left_out.end()) return invalid("{}{}", what, why);
  return invalid("{}: '{}' has several dots, and a sample's name ends at the first", what,
                 printable(found->path.substr(found->path.rfind('/') + 1)))
      .cure("rename such files, or use --layout files if files of one name belong together");
}

Status check_classes(const PackSource& source, const std::vector<FolderWalk>& walks) {
  std::set<std::uint32_t> used;
  for (const auto& samples : source.samples) {
    for (const SourceSample& sample : samples) used.insert(sample.folder);
  }
  // A class's folders are adjacent in source.folders: counts the folders of each walk.
  std::uint32_t folder = 0;
  for (const FolderWalk& walk : walks) {
    bool has_samples = false;
    for (std::size_t i = 0; i < walk.folders.size(); ++i)
      has_samples = has_samples || used.contains(folder++);
    if (walk.class_name.empty() || has_samples) continue;
    const std::string what = format("{}: class '{}' has no images", source.tree->display_path(walk.top.path),
                                    printable(walk.class_name));
    Status status = no_images_error(source, walk.top.path, what, "");
    if (!status.cure().empty()) return status;
    return std::move(status).cure("remove that folder, or add images to it");
  }
  return {};
}

Status check_samples(const PackSource& source, const FolderLayout& folder_layout, SourceLayout layout) {
  if (source.has_label_files && !source.classes.empty()) {
    return invalid("{}: has both label files (.cls) and class folders", source.tree->display_path(""));
  }
  for (std::size_t split = 0; split < source.splits.size(); ++split) {
    const bool has_splits = source.splits.size() > 1;
    if (!source.samples[split].empty() || (!has_splits && !source.classes.empty())) continue;
    const std::string path = has_splits ? folder_layout.paths[split] : "";
    return no_images_error(source, path, format("{}: no images", source.tree->display_path(path)),
                           layout == SourceLayout::images ? " (JPEG, PNG or WebP by their extension)" : "");
  }
  return {};
}

void count(PackSource& source) {
  for (const LeftOut& left_out : source.left_out) source.files += left_out.reason == kHidden ? 0 : 1;
  for (const auto& samples : source.samples) {
    for (const SourceSample& sample : samples) {
      source.files += sample.files;
      for (std::uint32_t i = 0; i < sample.files; ++i) source.bytes += source.file(sample, i).bytes;
    }
  }
}

// Adds the folders of a walked layout.
void add_folders(FolderLayout& folder_layout, PackSource& source) {
  source.splits = folder_layout.splits;
  source.samples.resize(folder_layout.splits.size());
  source.classes.assign(folder_layout.classes.begin(), folder_layout.classes.end());
  source.left_out = std::move(folder_layout.left_out);
  if (!folder_layout.root.empty())
    source.notes.push_back(format("its only folder '{}' is used as the root", printable(folder_layout.root)));
  for (FolderWalk& walk : folder_layout.walks) {
    std::move(walk.left_out.begin(), walk.left_out.end(), std::back_inserter(source.left_out));
    const auto label = std::lower_bound(source.classes.begin(), source.classes.end(), walk.class_name);
    for (SourceFolder& found : walk.folders) {
      SourceFolder& folder = source.folders.emplace_back(std::move(found));
      if (!walk.class_name.empty()) folder.label = label - source.classes.begin();
    }
  }
}

}  // namespace

Result<PackSource> list_by_folders(std::unique_ptr<SourceTree> tree, const SourceOptions& options,
                                   const Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(folder_layout, walk_layout(*tree, options, progress));
  PackSource source;
  source.tree = std::move(tree);
  add_folders(folder_layout, source);
  std::vector<std::string> original_names;
  for (SourceFolder& folder : source.folders) {
    if (options.layout == SourceLayout::images)
      STOKER_RETURN_IF_ERROR(
          replace_dots(folder.files, source.tree->display_path(folder.path), original_names));
  }
  set_original_names(std::move(original_names), source);
  for (std::uint32_t i = 0; i < source.folders.size(); ++i)
    STOKER_RETURN_IF_ERROR(group_samples(source, i, options.layout));
  STOKER_RETURN_IF_ERROR(check_samples(source, folder_layout, options.layout));
  STOKER_RETURN_IF_ERROR(check_classes(source, folder_layout.walks));
  count(source);
  return source;
}

}  // namespace stoker::sources
