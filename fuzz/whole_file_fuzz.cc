// check_complete on any bytes under each name: it ends and reads nothing beyond the file. Also the
// trainer_state and index of a Hugging Face folder, whose names are in the bytes.
#include <cstdint>
#include <string_view>

#include "base/file.h"
#include "checkpoint/foreign/file_check.h"
#include "checkpoint/foreign/hugging_face.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  static const TempDirectory folder{Path("/dev/shm")};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Path file = folder / "f";
  STOKER_CHECK(write_file(file, bytes).ok());
  using checkpoint::FileKind;
  for (const FileKind kind : {FileKind::torch, FileKind::keras, FileKind::hdf5, FileKind::safetensors})
    (void)checkpoint::check_complete(file, kind);
  const Path trained = folder / "checkpoint-1";
  STOKER_CHECK(make_directories(trained).ok());
  STOKER_CHECK(write_file(trained / "model.safetensors.index.json", bytes).ok());
  STOKER_CHECK(write_file(trained / "trainer_state.json", bytes).ok());
  (void)checkpoint::check_hugging_face(trained);
  return 0;
}
