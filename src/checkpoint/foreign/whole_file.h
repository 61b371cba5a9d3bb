// Whether a file that another program saved is whole: the formats of torch.save, Keras, HDF5 and safetensors
// tell their own length. Reads what stands at the ends of a file, never its data, and unpickles nothing.
// Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "base/text.h"

namespace stoker::checkpoint {

/// What a file's name says that it is.
enum class FileKind : std::uint8_t { torch, keras, hdf5, safetensors };
constexpr std::string_view to_text(FileKind kind) {
  constexpr std::string_view kNames[] = {"torch", "keras", "hdf5", "safetensors"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// By the suffix: .pt .pth .bin .ckpt, .keras, .h5 .hdf5, .safetensors.
std::optional<FileKind> kind_of_file(std::string_view name);

/// Corrupt or invalid "<path>: ..." when the file is cut off, or is not what its name says.
Status check_whole(const Path& path, FileKind kind);

}  // namespace stoker::checkpoint
