#include "data/pack/source/shape.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/encode.h"
#include "base/thread.h"

namespace stoker::data {

namespace {

constexpr int kDeepest = 32;
constexpr std::string_view kDev = "dev";  // a split beside train only
constexpr std::array<std::string_view, 6> kSplitNames = {"train", "val", "test", "valid", "validation", kDev};
constexpr std::string_view kOfMacs = "__MACOSX";  // what their archives hold beside the files

// WebDataset skips members whose path begins so.
bool is_skipped_by_readers(std::string_view member) {
  const std::string_view top = member.substr(0, member.find('/'));
  return top.size() >= 4 && top.starts_with("__") && top.ends_with("__");
}

Result<Listing> list_once(const SourceTree& tree, const std::string& path,
                          std::map<std::string, Listing>& listed) {
  if (auto known = listed.extract(path)) return std::move(known.mapped());
  return tree.list(path);
}

Status walk_folder(const SourceTree& tree, SourceFolder folder, int depth, FolderWalk& into) {
  if (depth > kDeepest) {
    return invalid("{}: folders more than {} deep (a link to a parent?)", tree.shown(folder.path), kDeepest);
  }
  OK_OR_RETURN(listing, list_once(tree, folder.path, into.listed));
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
    if (const std::string_view why = why_unusable(name); !why.empty()) {
      into.left_out.push_back({below.path, "unusable name", std::string(why)});
      continue;
    }
    RETURN_IF_ERROR(walk_folder(tree, std::move(below), depth + 1, into));
  }
  folder.files = std::move(listing.files);
  if (!folder.files.empty()) into.folders.push_back(std::move(folder));
  return {};
}

bool is_image(const SourceFile& file) { return is_image_extension(extension_of(file.name)); }

bool has_samples(const std::vector<SourceFile>& files, SourceLayout layout) {
  return layout == SourceLayout::files ? !files.empty() : std::any_of(files.begin(), files.end(), is_image);
}

void add_split(const std::string& name, const std::string& path, Listing listing, SourceShape& shape) {
  const auto split = static_cast<std::uint32_t>(shape.splits.size());
  shape.splits.push_back(name);
  shape.paths.push_back(path);
  for (const std::string& folder : listing.folders) {
    if (const std::string_view why = why_unusable(folder); !why.empty()) {
      shape.left_out.push_back({child(path, folder), "unusable name", std::string(why)});
      continue;
    }
    FolderWalk& walk = shape.walks.emplace_back();
    walk.top = {.path = child(path, folder), .member = folder, .split = split, .label = -1, .files = {}};
    walk.class_name = folder;
    shape.classes.insert(folder);
  }
  shape.left_out.insert(shape.left_out.end(), listing.left_out.begin(), listing.left_out.end());
  if (listing.folders.empty()) {
    FolderWalk& walk = shape.walks.emplace_back();
    walk.is_deep = false;
    walk.folders.push_back(
        {.path = path, .member = {}, .split = split, .label = -1, .files = std::move(listing.files)});
    return;
  }
  for (const SourceFile& file : listing.files) {
    const bool image = is_image(file);
    shape.left_out.push_back({child(path, file.name),
                              std::string(image ? "no class" : why_no_image(extension_of(file.name))),
                              image ? "beside the class folders" : ""});
  }
}

// What lies in a folder around the splits or classes.
void leave_out(const std::string& path, const Listing& listing, std::vector<LeftOut>& left_out) {
  left_out.insert(left_out.end(), listing.left_out.begin(), listing.left_out.end());
  for (const SourceFile& file : listing.files)
    left_out.push_back({child(path, file.name), std::string(why_no_image(extension_of(file.name))), {}});
}

Result<Listing> list_root(const SourceTree& tree) {
  OK_OR_RETURN(root, tree.list(""));
  if (std::erase(root.folders, kOfMacs) > 0)
    root.left_out.push_back({std::string(kOfMacs), std::string(kHidden), {}});
  return std::move(root);
}

// Splits among folders that lie beside each other.
struct SplitFolders {
  std::map<std::string, std::string, std::less<>> folders;  // by the split's name
  std::vector<std::string> others;                          // what is none
};

Result<SplitFolders> split_folders(const std::vector<std::string>& folders, const std::string& where) {
  SplitFolders found;
  const bool has_train =
      std::any_of(folders.begin(), folders.end(), [](const auto& f) { return to_lower(f) == "train"; });
  for (const std::string& folder : folders) {
    const std::string name = to_lower(folder);
    if (!is_split_name(name) && !(has_train && name == kDev)) {
      found.others.push_back(folder);
    } else if (const auto [twin, is_new] = found.folders.emplace(name, folder); !is_new) {
      return invalid("{}: '{}' and '{}' would be one split", where, printable(twin->second),
                     printable(folder))
          .cure("rename one of them");
    }
  }
  return found;
}

// Two splits and something else: whichever was meant, the other reading would be wrong without a word.
Status mixed(const SourceTree& tree, const std::string& root, const SplitFolders& found,
             const SourceOptions& options) {
  std::vector<std::string> names;
  std::string paths;
  for (std::string_view split : kSplitNames) {
    const auto folder = found.folders.find(split);
    if (folder == found.folders.end()) continue;
    names.push_back(format("'{}'", printable(folder->second)));
    paths += " " + shell_quote(tree.shown(child(root, folder->second)));
  }
  const std::string other = printable(found.others.front());
  Status status = invalid("{}: {} are names of splits, '{}' beside them is not", tree.shown(root),
                          join(names, ", "), other);
  const std::string_view kind = options.where == "-" ? "paths" : "an archive";
  if (!folder_exists(options.where)) return std::move(status).cure("{} without '{}'", kind, other);
  return std::move(status).cure("move '{}' elsewhere, or: find{} -type f | stoker data pack - OUT", other,
                                paths);
}

Result<SourceShape> shape_at(const SourceTree& tree, const std::string& root, Listing listing,
                             const SourceOptions& options) {
  SourceShape shape;
  shape.root = root;
  OK_OR_RETURN(found, split_folders(listing.folders, tree.shown(root)));
  const auto image = std::find_if(listing.files.begin(), listing.files.end(), is_image);
  if (image != listing.files.end()) found.others.push_back(image->name);
  if (found.folders.size() >= 2 && !found.others.empty()) return mixed(tree, root, found, options);
  if (found.folders.empty() || !found.others.empty()) {
    add_split("all", root, std::move(listing), shape);
    return shape;
  }
  leave_out(root, listing, shape.left_out);
  for (std::string_view split : kSplitNames) {
    const auto folder = found.folders.find(split);
    if (folder == found.folders.end()) continue;
    const std::string path = child(root, folder->second);
    OK_OR_RETURN(inner, tree.list(path));
    add_split(std::string(split), path, std::move(inner), shape);
  }
  return shape;
}

// Archives, and what was unpacked from them, often have one folder around all: it is no class if splits, or
// several folders that may be classes, lie in it, or in the only folder of it.
Result<SourceShape> find_shape(const SourceTree& tree, const SourceOptions& options) {
  OK_OR_RETURN(root, list_root(tree));
  std::map<std::string, Listing> listed;
  std::vector<LeftOut> left_out;
  std::string path;
  const Listing* at = &root;
  for (int depth = 0; depth < kDeepest; ++depth) {
    if (at->folders.size() != 1 || has_samples(at->files, options.layout)) break;
    if (!is_utf8(at->folders[0]) || is_split_name(at->folders[0])) break;
    leave_out(path, *at, left_out);
    path = child(path, at->folders[0]);
    OK_OR_RETURN(below, tree.list(path));
    at = &listed.emplace(path, std::move(below)).first->second;
    const bool has_split = at->folders.size() == 1 && is_split_name(at->folders[0]);
    if ((at->folders.size() < 2 && !has_split) || has_samples(at->files, options.layout)) continue;
    OK_OR_RETURN(shape, shape_at(tree, path, *at, options));
    shape.is_guess = !has_split && shape.splits[0] == "all";
    std::move(left_out.begin(), left_out.end(), std::back_inserter(shape.left_out));
    return std::move(shape);
  }
  OK_OR_RETURN(shape, shape_at(tree, "", std::move(root), options));
  // Whatever was listed lies in the only folder.
  if (shape.walks.size() == 1) shape.walks[0].listed = std::move(listed);
  return std::move(shape);
}

Status run_walks(const SourceTree& tree, std::vector<FolderWalk>& walks, int threads,
                 const Progress& progress) {
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
  {
    std::vector<Thread> helpers;
    for (int t = 1; t < threads && static_cast<std::size_t>(t) < walks.size(); ++t)
      helpers.emplace_back([&](const StopToken&) { work(); });
    work();
  }
  for (const FolderWalk& walk : walks) RETURN_IF_ERROR(walk.status);
  return {};
}

}  // namespace

bool is_split_name(std::string_view name) {
  const std::string lower = to_lower(name);
  return lower != kDev && std::find(kSplitNames.begin(), kSplitNames.end(), lower) != kSplitNames.end();
}

Result<SourceShape> walk_shape(const SourceTree& tree, const SourceOptions& options,
                               const Progress& progress) {
  OK_OR_RETURN(shape, find_shape(tree, options));
  RETURN_IF_ERROR(run_walks(tree, shape.walks, options.threads, progress));
  const auto is_empty = [&](const FolderWalk& walk) {
    return std::none_of(walk.folders.begin(), walk.folders.end(), [&](const SourceFolder& folder) {
      return has_samples(folder.files, options.layout);
    });
  };
  if (!shape.is_guess || std::none_of(shape.walks.begin(), shape.walks.end(), is_empty))
    return std::move(shape);
  // One class, with folders in it.
  OK_OR_RETURN(root, list_root(tree));
  OK_OR_RETURN(plain, shape_at(tree, "", std::move(root), options));
  RETURN_IF_ERROR(run_walks(tree, plain.walks, options.threads, progress));
  return std::move(plain);
}

}  // namespace stoker::data
