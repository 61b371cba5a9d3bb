#include "sources/files/dotted_names.h"

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "sources/files/tree.h"

namespace stoker::sources {

namespace {

using Stems = std::set<std::string, std::less<>>;

bool has_dots(const SourceFile& file) { return file.name.find('.') != file.name.rfind('.'); }

// For files whose names agree up to the first dot: the stems (before the last dot) of images that are
// separate samples. Empty if one of them is a main image with attached files. If the files could be
// components of one sample (1.rgb.png, 1.depth.png), only names with a number are separate: components are
// not named by numbers, but dates, times, versions and frames are.
Stems stems_of_images(std::span<const SourceFile> files) {
  Stems stems;
  for (const SourceFile& file : files) {
    const std::string extension = extension_of(file.name);
    if (is_main_image(extension)) return {};
    if (!is_image_extension(extension)) continue;
    const bool has_number = extension.front() >= '0' && extension.front() <= '9';
    std::string stem = file.name.substr(0, file.name.rfind('.'));
    const std::string begin = stem + '.';  // a prefix of all names if it is one of the first and the last
    const bool is_alone = files.front().name.starts_with(begin) && files.back().name.starts_with(begin);
    if (has_number || is_alone) stems.insert(std::move(stem));
  }
  return stems;
}

// The end of the shortest stem that is a prefix of the name; 0 without one.
std::size_t end_of_stem(const Stems& stems, std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (stems.contains(name.substr(0, dot))) return dot;
  }
  return 0;
}

void rename(SourceFile& file, std::size_t end, std::vector<std::string>& original_names) {
  original_names.push_back(file.name);
  file.original_name = static_cast<std::uint32_t>(original_names.size());
  std::replace(file.name.begin(), file.name.begin() + static_cast<std::ptrdiff_t>(end), '.', '_');
}

// Detects two samples whose keys differ only in dots. REQUIRES: sorted files.
Status check_keys(std::span<const SourceFile> files, std::string_view where,
                  std::span<const std::string> original_names) {
  const auto own = [&](const SourceFile& file) {
    return std::string_view(file.original_name == 0 ? file.name : original_names[file.original_name - 1]);
  };
  for (std::size_t i = 1; i < files.size(); ++i) {
    const std::string_view key = basename_of(files[i].name);
    const std::string_view one = own(files[i - 1]);
    const std::string_view other = own(files[i]);
    if (basename_of(files[i - 1].name) != key || one.substr(0, key.size()) == other.substr(0, key.size()))
      continue;
    return invalid("{}: '{}' and '{}' would both become the sample '{}' (dots become _)", where,
                   printable(one), printable(other), printable(key))
        .cure("rename one of them");
  }
  return {};
}

// Maps renamed files to their original names in the wrapped tree.
class OriginalNamesTree final : public SourceTree {
 public:
  OriginalNamesTree(std::unique_ptr<SourceTree> tree,
                    std::shared_ptr<const std::vector<std::string>> original_names)
      : tree_(std::move(tree)), original_names_(std::move(original_names)) {}

  Result<Listing> list(const std::string& folder) const override { return tree_->list(folder); }
  Status read(std::string_view folder, const SourceFile& file, FileBytes& into) const override {
    return tree_->read(folder, own(file), into);
  }
  bool has_parts(const SourceFile& file) const override { return tree_->has_parts(file); }
  Status read_part(std::string_view folder, const SourceFile& file, std::uint64_t offset,
                   std::span<std::byte> out) const override {
    return tree_->read_part(folder, own(file), offset, out);
  }
  std::string display_path(std::string_view path) const override { return tree_->display_path(path); }

 private:
  SourceFile own(SourceFile file) const {
    if (file.original_name != 0) file.name = (*original_names_)[file.original_name - 1];
    return file;
  }

  std::unique_ptr<SourceTree> tree_;
  std::shared_ptr<const std::vector<std::string>> original_names_;  // shared with the source
};

}  // namespace

Status replace_dots(std::vector<SourceFile>& files, std::string_view where,
                    std::vector<std::string>& original_names) {
  const std::size_t names_before = original_names.size();
  for (std::size_t begin = 0; begin < files.size();) {
    std::size_t end = begin + 1;
    while (end < files.size() && basename_of(files[end].name) == basename_of(files[begin].name)) ++end;
    const std::span<SourceFile> group = std::span(files).subspan(begin, end - begin);
    begin = end;
    if (std::none_of(group.begin(), group.end(), has_dots)) continue;
    const Stems stems = stems_of_images(group);
    for (SourceFile& file : group) {
      if (const std::size_t stem = end_of_stem(stems, file.name); stem > 0)
        rename(file, stem, original_names);
    }
  }
  if (original_names.size() == names_before) return {};
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
  return check_keys(files, where, original_names);
}

void replace_dots(SourceFile& image, std::vector<std::string>& original_names) {
  if (has_dots(image)) rename(image, image.name.rfind('.'), original_names);
}

void set_original_names(std::vector<std::string> original_names, PackSource& source) {
  if (original_names.empty()) return;
  source.original_names = std::make_shared<const std::vector<std::string>>(std::move(original_names));
  source.tree = std::make_unique<OriginalNamesTree>(std::move(source.tree), source.original_names);
}

}  // namespace stoker::sources
