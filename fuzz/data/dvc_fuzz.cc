// .dvc files, and dvc.lock with dvc.yaml after a NUL byte: any text gives a valid version, or an error. The
// first byte selects format and target.
#include <string>

#include "pack/dvc/dvc_read.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const pack::DvcTarget target{(data[0] & 2) != 0 ? "data/images" : "images", (data[0] & 4) != 0};
  const std::size_t end = text.find('\0');
  const std::string_view pipeline = end == std::string_view::npos ? "" : text.substr(end + 1);
  const auto found = (data[0] & 1) != 0 ? pack::read_dvc_lock(text.substr(0, end), pipeline, "fuzz", target)
                                        : pack::read_dvc_file(text, "fuzz", target);
  if (!found.ok() || !*found) return 0;
  const std::string& md5 = (*found)->version.md5;
  STOKER_CHECK(md5.size() == (target.is_folder ? 36 : 32));
  STOKER_CHECK(md5.find_first_not_of("0123456789abcdef") >= 32);
  return 0;
}
