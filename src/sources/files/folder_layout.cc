#include "sources/files/folder_layout.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/encode.h"
#include "base/thread.h"

namespace stoker::sources {

namespace {

constexpr int kMaxDepth = 32;
constexpr std::string_view kDev = "dev";  // a split only next to train
constexpr std::array<std::string_view, 6> kSplitNames = {"train", "val", "test", "valid", "validation", kDev};
constexpr std::string_view kMacosxFolder = "__MACOSX";  // metadata folder in macOS archives

// WebDataset skips members whose path begins with such a folder.
bool is_reserved_name(std::string_view member) {
  const std::string_view top = member.substr(0, member.find('/'));
  return top.size() >= 4 && top.starts_with("__") && top.ends_with("__");
}

Result<Listing> list_once(const SourceTree& tree, const std::string& path,
                          std::map<std::string, Listing>& listed) {
  if (auto known = listed.extract(path)) return std::move(known.mapped());
  return tree.list(path);
}

Status walk_folder(const SourceTree& tree, SourceFolder folder, int depth, FolderWalk& into) {
  if (depth > kMaxDepth) {
    return invalid("{}: folders more than {} deep (a link to a parent?)", tree.display_path(folder.path),
                   kMaxDepth);
  }
  STOKER_ASSIGN_OR_RETURN(listing, list_once(tree, folder.path, into.listed));
  into.left_out.insert(into.left_out.end(), listing.left_out.begin(), listing.left_out.end());
  if (is_reserved_name(folder.member)) {
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
    if (const std::string_view why = unusable_name_reason(name); !why.empty()) {
      into.left_out.push_back({below.path, "unusable name", std::string(why)});
      continue;
    }
    STOKER_RETURN_IF_ERROR(walk_folder(tree, std::move(below), depth + 1, into));
  }
  folder.files = std::move(listing.files);
  if (!folder.files.empty()) into.folders.push_back(std::move(folder));
  return {};
}

bool is_image(const SourceFile& file) { return is_image_extension(extension_of(file.name)); }

bool has_samples(const std::vector<SourceFile>& files, SourceLayout layout) {
  return layout == SourceLayout::files ? !files.empty() : std::any_of(files.begin(), files.end(), is_image);
}

void add_split(const std::string& name, const std::string& path, Listing listing,
               FolderLayout& folder_layout) {
  const auto split = static_cast<std::uint32_t>(folder_layout.splits.size());
  folder_layout.splits.push_back(name);
  folder_layout.paths.push_back(path);
  for (const std::string& folder : listing.folders) {
    if (const std::string_view why = unusable_name_reason(folder); !why.empty()) {
      folder_layout.left_out.push_back({child(path, folder), "unusable name", std::string(why)});
      continue;
    }
    FolderWalk& walk = folder_layout.walks.emplace_back();
    walk.top = {.path = child(path, folder), .member = folder, .split = split, .label = -1, .files = {}};
    walk.class_name = folder;
    folder_layout.classes.insert(folder);
  }
  folder_layout.left_out.insert(folder_layout.left_out.end(), listing.left_out.begin(),
                                listing.left_out.end());
  if (listing.folders.empty()) {
    FolderWalk& walk = folder_layout.walks.emplace_back();
    walk.is_deep = false;
    walk.folders.push_back(
        {.path = path, .member = {}, .split = split, .label = -1, .files = std::move(listing.files)});
    return;
  }
  for (const SourceFile& file : listing.files) {
    const bool image = is_image(file);
    folder_layout.left_out.push_back(
        {child(path, file.name), std::string(image ? "no class" : non_image_reason(extension_of(file.name))),
         image ? "next to the class folders" : ""});
  }
}

// Entries next to the splits or classes.
void leave_out(const std::string& path, const Listing& listing, std::vector<LeftOut>& left_out) {
  left_out.insert(left_out.end(), listing.left_out.begin(), listing.left_out.end());
  for (const SourceFile& file : listing.files)
    left_out.push_back({child(path, file.name), std::string(non_image_reason(extension_of(file.name))), {}});
}

Result<Listing> list_root(const SourceTree& tree) {
  STOKER_ASSIGN_OR_RETURN(root, tree.list(""));
  if (std::erase(root.folders, kMacosxFolder) > 0)
    root.left_out.push_back({std::string(kMacosxFolder), std::string(kHidden), {}});
  return std::move(root);
}

// Splits among sibling folders.
struct SplitFolders {
  std::map<std::string, std::string, std::less<>> folders;  // by the split's name
  std::vector<std::string> others;                          // other folders
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
      return invalid("{}: '{}' and '{}' would be the same split", where, printable(twin->second),
                     printable(folder))
          .cure("rename one of them");
    }
  }
  return found;
}

// Two splits and a non-split entry: both readings are possible, so it must not guess.
Status mixed_layout(const SourceTree& tree, const std::string& root, const SplitFolders& found,
                    const SourceOptions& options) {
  std::vector<std::string> names;
  std::string paths;
  for (std::string_view split : kSplitNames) {
    const auto folder = found.folders.find(split);
    if (folder == found.folders.end()) continue;
    names.push_back(format("'{}'", printable(folder->second)));
    paths += " " + shell_quote(tree.display_path(child(root, folder->second)));
  }
  const std::string other = printable(found.others.front());
  Status status = invalid("{}: {} are split names, but '{}' next to them is not", tree.display_path(root),
                          join(names, ", "), other);
  const std::string_view kind = options.where == "-" ? "paths" : "an archive";
  if (!folder_exists(options.where)) return std::move(status).cure("{} without '{}'", kind, other);
  return std::move(status).cure("move '{}' elsewhere, or: find{} -type f | stoker data pack - OUT", other,
                                paths);
}

Result<FolderLayout> layout_at(const SourceTree& tree, const std::string& root, Listing listing,
                               const SourceOptions& options) {
  FolderLayout folder_layout;
  folder_layout.root = root;
  STOKER_ASSIGN_OR_RETURN(found, split_folders(listing.folders, tree.display_path(root)));
  const auto image = std::find_if(listing.files.begin(), listing.files.end(), is_image);
  if (image != listing.files.end()) found.others.push_back(image->name);
  if (found.folders.size() >= 2 && !found.others.empty()) return mixed_layout(tree, root, found, options);
  if (found.folders.empty() || !found.others.empty()) {
    add_split("all", root, std::move(listing), folder_layout);
    return folder_layout;
  }
  leave_out(root, listing, folder_layout.left_out);
  for (std::string_view split : kSplitNames) {
    const auto folder = found.folders.find(split);
    if (folder == found.folders.end()) continue;
    const std::string path = child(root, folder->second);
    STOKER_ASSIGN_OR_RETURN(inner, tree.list(path));
    add_split(std::string(split), path, std::move(inner), folder_layout);
  }
  return folder_layout;
}

// Archives and their unpacked folders often have a single enclosing folder. It is not a class if splits or
// several possible classes are in it, or in its only subfolder.
Result<FolderLayout> find_layout(const SourceTree& tree, const SourceOptions& options) {
  STOKER_ASSIGN_OR_RETURN(root, list_root(tree));
  std::map<std::string, Listing> listed;
  std::vector<LeftOut> left_out;
  std::string path;
  const Listing* at = &root;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (at->folders.size() != 1 || has_samples(at->files, options.layout)) break;
    if (!is_utf8(at->folders[0]) || is_split_name(at->folders[0])) break;
    leave_out(path, *at, left_out);
    path = child(path, at->folders[0]);
    STOKER_ASSIGN_OR_RETURN(below, tree.list(path));
    at = &listed.emplace(path, std::move(below)).first->second;
    const bool has_split = at->folders.size() == 1 && is_split_name(at->folders[0]);
    if ((at->folders.size() < 2 && !has_split) || has_samples(at->files, options.layout)) continue;
    STOKER_ASSIGN_OR_RETURN(folder_layout, layout_at(tree, path, *at, options));
    folder_layout.is_guess = !has_split && folder_layout.splits[0] == "all";
    std::move(left_out.begin(), left_out.end(), std::back_inserter(folder_layout.left_out));
    return std::move(folder_layout);
  }
  STOKER_ASSIGN_OR_RETURN(folder_layout, layout_at(tree, "", std::move(root), options));
  // All listed folders are in the only folder.
  if (folder_layout.walks.size() == 1) folder_layout.walks[0].listed = std::move(listed);
  return std::move(folder_layout);
}

Status run_walks(const SourceTree& tree, std::vector<FolderWalk>& walks, int threads,
                 const Progress& progress) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < walks.size(); i = next++) {
      if (progress.stop_requested()) {
        walks[i].status = cancelled("{}: interrupted while listing", tree.display_path(""));
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
  for (const FolderWalk& walk : walks) STOKER_RETURN_IF_ERROR(walk.status);
  return {};
}

}  // namespace

bool is_split_name(std::string_view name) {
  const std::string lower = to_lower(name);
  return lower != kDev && std::find(kSplitNames.begin(), kSplitNames.end(), lower) != kSplitNames.end();
}

Result<FolderLayout> walk_layout(const SourceTree& tree, const SourceOptions& options,
                                 const Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(folder_layout, find_layout(tree, options));
  STOKER_RETURN_IF_ERROR(run_walks(tree, folder_layout.walks, options.threads, progress));
  const auto is_empty = [&](const FolderWalk& walk) {
    return std::none_of(walk.folders.begin(), walk.folders.end(), [&](const SourceFolder& folder) {
      return has_samples(folder.files, options.layout);
    });
  };
  if (!folder_layout.is_guess ||
      std::none_of(folder_layout.walks.begin(), folder_layout.walks.end(), is_empty))
    return std::move(folder_layout);
  // It is a single class with subfolders.
  STOKER_ASSIGN_OR_RETURN(root, list_root(tree));
  STOKER_ASSIGN_OR_RETURN(plain, layout_at(tree, "", std::move(root), options));
  STOKER_RETURN_IF_ERROR(run_walks(tree, plain.walks, options.threads, progress));
  return std::move(plain);
}

}  // namespace stoker::sources
