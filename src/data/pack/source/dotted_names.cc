#include "data/pack/source/dotted_names.h"

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "data/pack/source/tree.h"

namespace stoker::data {

namespace {

using Stems = std::set<std::string, std::less<>>;

bool has_dots(const SourceFile& file) { return file.name.find('.') != file.name.rfind('.'); }

// Files whose names agree up to the first dot: what the names of images have before the last one, if that
// makes them samples of their own. None where one of them is the image that the others belong to. Where
// several files could be parts of one sample (1.rgb.png, 1.depth.png), only numbers are parts of a name: no
// reader calls a part of a sample so, but dates, times, versions and frames are.
Stems stems_of_images(std::span<const SourceFile> files) {
  Stems stems;
  for (const SourceFile& file : files) {
    const std::string extension = extension_of(file.name);
    if (is_picture(extension)) return {};
    if (!is_image_extension(extension)) continue;
    const bool has_number = extension.front() >= '0' && extension.front() <= '9';
    std::string stem = file.name.substr(0, file.name.rfind('.'));
    const std::string begin = stem + '.';  // of all, if it is of the first and the last
    const bool is_alone = files.front().name.starts_with(begin) && files.back().name.starts_with(begin);
    if (has_number || is_alone) stems.insert(std::move(stem));
  }
  return stems;
}

// Where the shortest of the stems ends that a name begins with; 0 if none does.
std::size_t end_of_stem(const Stems& stems, std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (stems.contains(name.substr(0, dot))) return dot;
  }
  return 0;
}

void rename(SourceFile& file, std::size_t end, std::vector<std::string>& own_names) {
  own_names.push_back(file.name);
  file.own_name = static_cast<std::uint32_t>(own_names.size());
  std::replace(file.name.begin(), file.name.begin() + static_cast<std::ptrdiff_t>(end), '.', '_');
}

// Whether files of one key have it by their own names too, but for the dots' places. REQUIRES: sorted files.
Status check_keys(std::span<const SourceFile> files, std::string_view where,
                  std::span<const std::string> own_names) {
  const auto own = [&](const SourceFile& file) {
    return std::string_view(file.own_name == 0 ? file.name : own_names[file.own_name - 1]);
  };
  for (std::size_t i = 1; i < files.size(); ++i) {
    const std::string_view key = basename_of(files[i].name);
    const std::string_view one = own(files[i - 1]);
    const std::string_view other = own(files[i]);
    if (basename_of(files[i - 1].name) != key || one.substr(0, key.size()) == other.substr(0, key.size()))
      continue;
    return invalid("{}: '{}' and '{}' would both be the sample '{}': dots become _", where, printable(one),
                   printable(other), printable(key))
        .cure("rename one of them");
  }
  return {};
}

// Finds files by their own names in another tree.
class OwnNamesTree final : public SourceTree {
 public:
  OwnNamesTree(std::unique_ptr<SourceTree> tree, std::shared_ptr<const std::vector<std::string>> own_names)
      : tree_(std::move(tree)), own_names_(std::move(own_names)) {}

  Result<Listing> list(const std::string& folder) const override { return tree_->list(folder); }
  Status read(std::string_view folder, const SourceFile& file, FileBytes& into) const override {
    return tree_->read(folder, own(file), into);
  }
  bool has_parts(const SourceFile& file) const override { return tree_->has_parts(file); }
  Status read_part(std::string_view folder, const SourceFile& file, std::uint64_t offset,
                   std::span<std::byte> out) const override {
    return tree_->read_part(folder, own(file), offset, out);
  }
  std::string shown(std::string_view path) const override { return tree_->shown(path); }

 private:
  SourceFile own(SourceFile file) const {
    if (file.own_name != 0) file.name = (*own_names_)[file.own_name - 1];
    return file;
  }

  std::unique_ptr<SourceTree> tree_;
  std::shared_ptr<const std::vector<std::string>> own_names_;  // shared with the source
};

}  // namespace

Status join_dots(std::vector<SourceFile>& files, std::string_view where,
                 std::vector<std::string>& own_names) {
  const std::size_t names_before = own_names.size();
  for (std::size_t begin = 0; begin < files.size();) {
    std::size_t end = begin + 1;
    while (end < files.size() && basename_of(files[end].name) == basename_of(files[begin].name)) ++end;
    const std::span<SourceFile> group = std::span(files).subspan(begin, end - begin);
    begin = end;
    if (std::none_of(group.begin(), group.end(), has_dots)) continue;
    const Stems stems = stems_of_images(group);
    for (SourceFile& file : group) {
      if (const std::size_t stem = end_of_stem(stems, file.name); stem > 0) rename(file, stem, own_names);
    }
  }
  if (own_names.size() == names_before) return {};
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
  return check_keys(files, where, own_names);
}

void join_dots(SourceFile& image, std::vector<std::string>& own_names) {
  if (has_dots(image)) rename(image, image.name.rfind('.'), own_names);
}

void keep_own_names(std::vector<std::string> own_names, Source& source) {
  if (own_names.empty()) return;
  source.own_names = std::make_shared<const std::vector<std::string>>(std::move(own_names));
  source.tree = std::make_unique<OwnNamesTree>(std::move(source.tree), source.own_names);
}

}  // namespace stoker::data
