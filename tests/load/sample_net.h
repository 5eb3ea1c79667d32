// A net that uses everything a file can hold, for round trips and mutations.
#pragma once

#include <cstring>
#include <limits>

#include "net/net.h"

namespace heddle::testing {

inline std::shared_ptr<const Blob> blob_of(DType dtype, const Shape& shape, const auto& elements) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  if (!elements.empty()) std::memcpy(data, elements.data(), elements.size() * sizeof(elements[0]));
  return blob;
}

inline Net sample_subnet(int depth) {
  NetBuilder builder("then");
  const ValueId x = builder.input("x", DType::f32, Shape{2});
  const ValueId c = builder.constant_float("c", -0.0f);
  std::vector<Attribute> attributes;
  if (depth > 0) attributes.push_back({"body", std::make_shared<const Net>(sample_subnet(depth - 1))});
  builder.output(builder.add1("Add", "sum", {x, c}, std::move(attributes)));
  return builder.finish();
}

inline std::vector<Attribute> sample_attributes() {
  const double inf = std::numeric_limits<double>::infinity();
  double odd_nan = 0;
  const uint64_t odd_bits = 0xFFF8000000000123;
  std::memcpy(&odd_nan, &odd_bits, sizeof(odd_nan));
  std::vector<Attribute> attributes;
  attributes.push_back({"axis", int64_t{-1}});
  attributes.push_back({"zero", int64_t{0}});
  attributes.push_back({"epsilon", 1e-5});
  attributes.push_back({"minus_zero", -0.0});
  attributes.push_back({"odd_nan", odd_nan});
  attributes.push_back({"mode", std::string("\"reflect\"\n\xE2\x82\xAC")});
  attributes.push_back({"raw", std::string("\x00\xFF\x01", 3)});
  attributes.push_back({"pads", std::vector<int64_t>{INT64_MIN, 0, INT64_MAX}});
  attributes.push_back({"none", std::vector<int64_t>{}});
  attributes.push_back({"scales", std::vector<double>{0.1, inf, -inf, std::numeric_limits<double>::quiet_NaN(), -0.0, 5e-324}});
  attributes.push_back({"words", std::vector<std::string>{"a", "", "b\xFF", "c"}});
  attributes.push_back({"table", blob_of(DType::i32, Shape{2, 2}, std::vector<int32_t>{1, -2, 3, INT32_MIN})});
  attributes.push_back({"empty", blob_of(DType::f64, Shape{0, 3}, std::vector<double>{})});
  attributes.push_back({"branch", std::make_shared<const Net>(sample_subnet(1))});
  return attributes;
}

// Adds one inline constant of every dtype, with the bit patterns that text loses easily.
inline void add_constants(NetBuilder& builder) {
  const std::vector<uint16_t> halves = {0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7D55};
  const std::vector<uint32_t> floats = {0x00000000, 0x80000000, 0x00000001, 0x3DCCCCCD, 0x7F7FFFFF,
                                        0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x4B800001};
  const std::vector<uint64_t> doubles = {
      0x8000000000000000, 1, 0x3FB999999999999A, 0x7FEFFFFFFFFFFFFF, 0x7FF8000000000000, 0x7FF4000000000001, 0x43D0000000000001};
  builder.constant("f16", blob_of(DType::f16, Shape{static_cast<int64_t>(halves.size())}, halves));
  builder.constant("bf16", blob_of(DType::bf16, Shape{6}, std::vector<uint16_t>{0x8000, 0x0001, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1}));
  builder.constant("f32", blob_of(DType::f32, Shape{static_cast<int64_t>(floats.size())}, floats));
  builder.constant("f64", blob_of(DType::f64, Shape{static_cast<int64_t>(doubles.size())}, doubles));
  builder.constant("i8", blob_of(DType::i8, Shape{2}, std::vector<int8_t>{-128, 127}));
  builder.constant("i16", blob_of(DType::i16, Shape{2}, std::vector<int16_t>{-32768, 32767}));
  builder.constant("i32", blob_of(DType::i32, Shape{1}, std::vector<int32_t>{INT32_MIN}));
  builder.constant("i64", blob_of(DType::i64, Shape{2}, std::vector<int64_t>{INT64_MIN, INT64_MAX}));
  builder.constant("u8", blob_of(DType::u8, Shape{1}, std::vector<uint8_t>{255}));
  builder.constant("u16", blob_of(DType::u16, Shape{1}, std::vector<uint16_t>{65535}));
  builder.constant("u32", blob_of(DType::u32, Shape{1}, std::vector<uint32_t>{UINT32_MAX}));
  builder.constant("u64", blob_of(DType::u64, Shape{1}, std::vector<uint64_t>{UINT64_MAX}));
  builder.constant("bool", blob_of(DType::boolean, Shape{2}, std::vector<uint8_t>{0, 1}));
  builder.constant("nothing", blob_of(DType::f32, Shape{3, 0}, std::vector<float>{}));
}

inline Net sample_net() {
  NetBuilder builder("sample \"net\"");
  Net& net = builder.net();
  net.doc = "Two lines,\nand a € sign.";
  net.operator_sets = {{"", 17}, {"com.example", 2}};
  net.metadata = {{"producer", "tests"}, {"note", "a\tb"}};
  DeclaredType open;
  open.dtype = DType::i64;
  open.ranked = true;
  open.dims = {Dim::named("N"), Dim::at_most(128), Dim{}, Dim::of(7), Dim::named("M"), Dim::named("N")};
  const ValueId tokens = builder.input("tokens", open);
  const ValueId x = builder.input("x", DType::f32, Shape{2});
  DeclaredType unranked;
  unranked.dtype = DType::f32;
  const ValueId side = builder.input("side", unranked);
  add_constants(builder);
  const ValueId w = builder.variable("w", blob_of(DType::f32, Shape{2}, std::vector<float>{1.5f, -0.0f}), true);
  const ValueId steps = builder.variable("steps", blob_of(DType::i64, Shape{}, std::vector<int64_t>{0}));
  net.step_counter = net[steps].variable;
  const ValueId h = builder.add1("Everything", "h/é", {x, ValueId(), side}, sample_attributes(), "com.example");
  const ValueId first = builder.add1("Update", "w_first", {w, h});
  builder.updates(first, w);
  const ValueId second = builder.add1("Update", "w_second", {first, h});
  builder.updates(second, first);
  const std::vector<ValueId> unique = builder.add("Unique", "unique", {tokens}, 3);
  net[net[unique[0]].producer].outputs[1] = ValueId();  // not wanted
  net.values.pop_back();
  net.nodes.back().outputs[2] = ValueId(net.values.size() - 1);
  net.values.back().output = 2;
  net.nodes[0].device = "sim:1";
  net.nodes[1].version = 3;
  net.nodes[3].control = {NodeId(0), NodeId(2)};
  net.sparse_links.push_back({w, "rows", unique[0], h, 1000, true, false});
  net[h].type = DeclaredType::of(DType::f32, Shape{2});
  builder.output(h);
  builder.output(second);
  return builder.finish();
}

}  // namespace heddle::testing
