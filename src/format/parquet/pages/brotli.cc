#include <cstdint>
#include <dlfcn.h>
#include <string>

#include "base/process.h"
#include "base/thread.h"
#include "format/parquet/pages/codecs.h"

namespace stoker::formats {

namespace {

constexpr const char* kVariable = "STOKER_BROTLI_LIBRARY";

using Decompress = int (*)(std::size_t, const std::uint8_t*, std::size_t*, std::uint8_t*);

Result<Decompress> load() {
  const std::optional<std::string> named = environment_value(kVariable);
  const std::string name = named && !named->empty() ? *named : "libbrotlidec.so.1";
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, "BrotliDecoderDecompress");
  if (found != nullptr) return reinterpret_cast<Decompress>(found);
  return unavailable("Brotli: libbrotlidec is not there ({})", ::dlerror())
      .cure("apt-get install libbrotli1, or {}=/path/libbrotlidec.so", kVariable);
}

Result<Decompress> decompress() {
  static Mutex mutex;
  static Decompress loaded = nullptr;  // looked for again after a failure
  MutexLock lock(mutex);
  if (loaded == nullptr) {
    OK_OR_RETURN(found, load());
    loaded = found;
  }
  return loaded;
}

}  // namespace

Status unbrotli(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject) {
  constexpr int kSuccess = 1;
  const Result<Decompress> call = decompress();
  if (!call.ok()) return call.status().with_context(subject);
  std::size_t got = out.size();
  std::uint8_t none = 0;
  auto* const into = out.empty() ? &none : reinterpret_cast<std::uint8_t*>(out.data());
  const int done = (*call)(packed.size(), reinterpret_cast<const std::uint8_t*>(packed.data()), &got, into);
  if (done == kSuccess && got == out.size()) return {};
  return corrupt("{}: a page does not unpack to its size", subject);
}

}  // namespace stoker::formats
