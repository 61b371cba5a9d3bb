#include "codec/npy.h"

#include <string>

#include <gtest/gtest.h>

namespace stoker::codec {
namespace {

// As numpy.save writes it: padded so that the elements begin at a multiple of 64.
std::string npy(std::string dictionary, std::string_view elements, int version = 1) {
  const std::size_t before = version == 1 ? 10 : 12;
  while ((before + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += static_cast<char>(dictionary.size() & 255);
  file += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) file += std::string(2, '\0');
  return file + dictionary + std::string(elements);
}

Result<NpyInfo> read(const std::string& file) { return read_npy(std::as_bytes(std::span(file))); }
std::string refusal(const std::string& file) { return read(file).status().to_string(); }

TEST(Npy, reads_dtype_shape_and_data_offset) {
  const std::string six(24, '\1');
  for (const int version : {1, 2, 3}) {
    const auto info =
        read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", six, version)).value();
    EXPECT_EQ(info.element, DType::f32);
    EXPECT_EQ(info.shape, (Shape{2, 3}));
    EXPECT_EQ(info.data_offset, 128u);
  }
  EXPECT_EQ(read(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "7")).value().shape, Shape{});
  EXPECT_EQ(read(npy("{'descr': '|b1', 'fortran_order': True, 'shape': (3,), }", "777")).value().shape,
            Shape{3});
  EXPECT_EQ(read(npy("{\"shape\":(0,5),\"fortran_order\":False,\"descr\":\"<i8\"}", "")).value().element,
            DType::i64);
}

TEST(Npy, rejects_unsupported_element_types) {
  EXPECT_EQ(refusal(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (), }", "77")),
            "NPY: elements of type '>i2'");
  EXPECT_EQ(refusal(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "77")),
            "NPY: elements of type '|O'");
  EXPECT_EQ(refusal(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (), }", "77777777")),
            "NPY: elements of type '<c8'");
  EXPECT_EQ(refusal(npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,), }", "")),
            "NPY: elements of type record");
  EXPECT_EQ(refusal(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", std::string(48, '7'))),
            "NPY: in Fortran order");
  EXPECT_EQ(refusal(npy("{}", "", 9)), "NPY: version 9.0");
}

TEST(Npy, a_header_alone_defines_size_and_byte_order) {
  const std::string file = npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "");
  const auto header = std::as_bytes(std::span(file));
  const auto info = read_npy_header(header, header.size() + 24).value();
  EXPECT_TRUE(info.is_big_endian);
  EXPECT_EQ(info.data_offset, header.size());
  EXPECT_EQ(read_npy_header(header, header.size() + 23).status().to_string(),
            "NPY: 23 bytes of elements, its header promises 24");
  const std::string bytes = npy("{'descr': '>u1', 'fortran_order': False, 'shape': (1,), }", "7");
  EXPECT_FALSE(read_npy_header(std::as_bytes(std::span(bytes)), bytes.size()).value().is_big_endian);
}

TEST(Npy, rejects_damage_and_any_truncation) {
  EXPECT_EQ(refusal("PK\3\4"), "NPY: does not begin with the NPY magic");
  const std::string whole =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", std::string(24, '\1'));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(read(whole.substr(0, size)).status().code(), Code::corrupt) << size;
  EXPECT_EQ(refusal(whole.substr(0, whole.size() - 1)), "NPY: 23 bytes of elements, its header promises 24");
  for (const char* header : {"{'descr': '<f4', 'fortran_order': False}", "{'descr': '<f4', 'shape': (2,)}",
                             "{", "", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} more",
                             "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2"}) {
    EXPECT_EQ(refusal(npy(header, "77777777")), "NPY: its header does not describe an array") << header;
  }
  const std::string huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
  EXPECT_EQ(refusal(npy(huge, "")), "NPY: its header does not describe an array");
  EXPECT_EQ(refusal(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}", "7777")),
            "NPY: 4 bytes of elements, its header promises 8000000000000");
}

}  // namespace
}  // namespace stoker::codec
