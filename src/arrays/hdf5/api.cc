#include "arrays/hdf5/api.h"

#include <algorithm>
#include <dlfcn.h>
#include <memory>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/process.h"

namespace stoker::arrays::hdf5 {

namespace {

constexpr const char* kVariable = "STOKER_HDF5_LIBRARY";

// Debian's names of 1.10 and 1.14, and upstream names.
constexpr const char* kNames[] = {
    "libhdf5_serial.so.103", "libhdf5_serial.so.310", "libhdf5_serial.so", "libhdf5.so.310",
    "libhdf5.so.200",        "libhdf5.so.103",        "libhdf5.so"};

// The library in the h5py wheel of an active virtual environment.
std::vector<std::string> wheel_libraries() {
  std::vector<std::string> found;
  const std::optional<std::string> environment = environment_value("VIRTUAL_ENV");
  if (!environment || environment->empty()) return found;
  const Path lib = Path(*environment) / "lib";
  const Result<std::vector<std::string>> pythons = list_directory(lib);
  if (!pythons.ok()) return found;
  for (const std::string& python : *pythons) {
    const Path folder = lib / python / "site-packages/h5py.libs";
    const Result<std::vector<std::string>> names = list_directory(folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (name.starts_with("libhdf5-") || name.starts_with("libhdf5.so"))
        found.push_back((folder / name).string());
    }
  }
  return found;
}

// The number after ".so.": a library with a larger one reads newer files. 0 if absent.
std::uint64_t soname_version(std::string_view library) {
  constexpr std::string_view kBefore = ".so.";
  const std::size_t at = library.rfind(kBefore);
  if (at == std::string_view::npos) return 0;
  const std::string_view version = library.substr(at + kBefore.size());
  std::uint64_t number = 0;
  return parse_number(version.substr(0, version.find('.')), &number) ? number : 0;
}

// The newest first.
std::vector<std::string> candidates() {
  const std::optional<std::string> named = environment_value(kVariable);
  if (named && !named->empty()) return {*named};
  std::vector<std::string> all(std::begin(kNames), std::end(kNames));
  const std::vector<std::string> wheels = wheel_libraries();
  all.insert(all.end(), wheels.begin(), wheels.end());
  std::stable_sort(all.begin(), all.end(), [](const std::string& a, const std::string& b) {
    return soname_version(a) > soname_version(b);
  });
  return all;
}

template <typename T>
bool find(void* library, const char* name, T& into) {
  into = reinterpret_cast<T>(::dlsym(library, name));
  return into != nullptr;
}

// Fills the table; the name of the first function that is missing.
std::string fill(void* library, Api& api) {
#define STOKER_FIND(type, name, parameters) \
  if (!find(library, #name, api.name)) return #name;
  STOKER_HDF5_FUNCTIONS(STOKER_FIND)
#undef STOKER_FIND
#define STOKER_FIND(name) \
  if (!find(library, #name, api.name)) return #name;
  STOKER_HDF5_IDS(STOKER_FIND)
#undef STOKER_FIND
  if (!find(library, "H5Lget_info1", api.H5Lget_info) && !find(library, "H5Lget_info", api.H5Lget_info)) {
    return "H5Lget_info";
  }
  if (!find(library, "H5Dread_chunk1", api.H5Dread_chunk) &&
      !find(library, "H5Dread_chunk", api.H5Dread_chunk)) {
    return "H5Dread_chunk";
  }
  unsigned major = 0, minor = 0, release = 0;
  api.H5get_libversion(&major, &minor, &release);
  api.version = format("{}.{}.{}", major, minor, release);
  const auto is_from = [&](unsigned first) {
    return major > 1 || minor > 14 || (minor == 14 && release >= first);
  };
  // Before 1.14.2 its offsets may count chunks instead of elements.
  if (is_from(2)) find(library, "H5Dchunk_iter", api.H5Dchunk_iter);
  api.counts_userblock = is_from(4);
  return "";
}

// A wheel's library has no path to its dependencies, which are beside it in a folder like h5py.libs. They
// depend on each other, and the loader finds loaded libraries by name: repeat until no more can be loaded.
void preload_dependencies(const std::string& library) {
  if (library.find('/') == std::string::npos) return;  // a system library finds its dependencies
  std::error_code ignored;
  const Path folder = std::filesystem::weakly_canonical(library, ignored).parent_path();
  if (!folder.string().ends_with(".libs")) return;
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names.ok()) return;
  std::set<std::string> left(names->begin(), names->end());
  std::erase_if(left, [](const std::string& name) { return name.starts_with("libhdf5"); });
  const auto loads = [&](const std::string& name) {
    return ::dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
  };
  while (std::erase_if(left, loads) > 0) {
  }
}

Result<Api> load_api() {
  std::string why;
  for (const std::string& name : candidates()) {
    preload_dependencies(name);
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (why.empty()) why = ::dlerror();
      continue;
    }
    Api api;
    api.library = name;
    const std::string missing = fill(library, api);
    if (missing.empty()) return api;
    why = format("{} has no {}: it is older than HDF5 1.10.5", name, missing);
    ::dlclose(library);
  }
  const std::optional<std::string> named = environment_value(kVariable);
  if (named && !named->empty()) return unavailable("HDF5: {} ({})", why, kVariable);
  return unavailable("HDF5: libhdf5 is missing ({})", why)
      .cure(
          "apt-get install libhdf5-103-1, or pip install h5py in the active virtual environment, or "
          "{}=/path/libhdf5.so",
          kVariable);
}

int store_first_error(unsigned at, const ErrorEntry* entry, void* into) {
  if (at == 0 && entry->text != nullptr) *static_cast<std::string*>(into) = printable(entry->text);
  return 0;
}

}  // namespace

std::string Api::last_error() const {
  std::string text;
  H5Ewalk2(kDefault, 0, store_first_error, &text);
  H5Eclear2(kDefault);
  return text.empty() ? "no reason given" : text;
}

bool Api::is_newer_version_error(std::string_view why) {
  // "bad version number for datatype message", "bad superblock version number"
  return why.starts_with("bad ") && why.find("version number") != std::string_view::npos;
}

Status Api::failure(std::string_view subject, std::string_view what, std::string_view why) const {
  if (!is_newer_version_error(why)) return corrupt("{}: {} ({})", subject, what, why);
  return invalid("{}: libhdf5 {} ({}) is older than the file, or the file is damaged ({})", subject, version,
                 printable(library), why)
      .cure("pip install h5py in the active virtual environment, or {}=/path/libhdf5.so of a newer one",
            kVariable);
}

Result<const Api*> api() {
  static Mutex mutex;
  static std::unique_ptr<const Api> loaded;  // found once, never changed; looked for again after a failure
  MutexLock lock(mutex);
  if (!loaded) {
    STOKER_ASSIGN_OR_RETURN(found, load_api());
    loaded = std::make_unique<const Api>(std::move(found));
  }
  return loaded.get();
}

Mutex& hdf5_mutex() {
  static Mutex mutex;
  return mutex;
}

}  // namespace stoker::arrays::hdf5
