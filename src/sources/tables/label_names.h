// Class names of a table's number labels: ClassLabel features in the metadata of Hugging Face's writers.
// Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::sources {

/// The names of the ClassLabel feature `column` ("label", "objects.category") in `hub_metadata`, the JSON of
/// ParquetFile::hub_metadata(): name i is that of label i. Empty without such a feature.
std::vector<std::string> class_label_names(std::string_view hub_metadata, std::string_view column);

}  // namespace stoker::sources
