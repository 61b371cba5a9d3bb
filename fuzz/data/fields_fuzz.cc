// read_fields on any bytes as JSON, CSV and text: one value of each requested kind, or an error.
#include <cstdint>
#include <cstdlib>

#include "stoker/fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using stoker::loader::ComponentField;
  using stoker::loader::FieldKind;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  for (const char* component : {"json", "csv", "tsv"}) {
    const std::vector<ComponentField> fields{
        {.component = component, .name = "a", .kind = FieldKind::number},
        {.component = component, .name = "b", .kind = FieldKind::integer},
        {.component = component, .name = "c", .kind = FieldKind::text}};
    for (std::size_t count = 1; count <= fields.size(); ++count) {
      const auto values = stoker::loader::read_fields(file, std::span(fields).first(count));
      if (!values.ok()) continue;
      if (values->size() != count) std::abort();
      for (std::size_t i = 0; i < count; ++i) {
        if ((*values)[i].index() != i) std::abort();
      }
    }
  }
  const ComponentField text{.component = "txt", .kind = FieldKind::text};
  const auto whole = stoker::loader::read_fields(file, {&text, 1});
  if (whole.ok() && std::get<std::string>((*whole)[0]).size() != size) std::abort();
  return 0;
}
