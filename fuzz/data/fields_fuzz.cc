// read_fields on any bytes as JSON, CSV and text: as many values of the kinds asked for, or an error.
#include <cstdint>
#include <cstdlib>

#include "data/components/fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using stoker::data::Field;
  using stoker::data::FieldKind;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  for (const char* component : {"json", "csv", "tsv"}) {
    const std::vector<Field> fields{{.component = component, .name = "a", .kind = FieldKind::number},
                                    {.component = component, .name = "b", .kind = FieldKind::integer},
                                    {.component = component, .name = "c", .kind = FieldKind::text}};
    for (std::size_t count = 1; count <= fields.size(); ++count) {
      const auto values = stoker::data::read_fields(file, std::span(fields).first(count));
      if (!values.ok()) continue;
      if (values->size() != count) std::abort();
      for (std::size_t i = 0; i < count; ++i) {
        if ((*values)[i].index() != i) std::abort();
      }
    }
  }
  const Field text{.component = "txt", .kind = FieldKind::text};
  const auto whole = stoker::data::read_fields(file, {&text, 1});
  if (whole.ok() && std::get<std::string>((*whole)[0]).size() != size) std::abort();
  return 0;
}
