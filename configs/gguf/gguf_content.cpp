// SPDX-License-Identifier: Apache-2.0
#include "configs/gguf/gguf_content.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/gguf/byte_reader.h"
#include "configs/schema/value.h"

namespace kvsim::config {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;                    // "GGUF"
constexpr std::size_t kMaxKey = 65535;                          // GGUF specification
constexpr std::size_t kMaxTensorName = 63;                      // GGML_MAX_NAME, with its end
constexpr std::uint32_t kMaxDims = 4;                           // GGML_MAX_DIMS
constexpr std::size_t kSmallestValue = 8 + 1 + 4 + 1;           // length, key, type, value
constexpr std::size_t kSmallestTensor = 8 + 1 + 4 + 8 + 4 + 8;  // length, name, dimensions, type, offset
constexpr std::size_t kLargestAlignment = std::size_t{1} << 30;
constexpr std::string_view kAlignmentKey = "general.alignment";

constexpr std::array<std::string_view, 13> kTypeNames{"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                                      "bool", "text", "array", "u64", "i64", "f64"};
constexpr std::array<std::size_t, 13> kTypeBytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

std::size_t bytes_of(GgufType type) {
  return kTypeBytes[static_cast<std::size_t>(type)];
}

bool is_plain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

/// For messages: a text of the file, without what a terminal should not see.
std::string quoted(std::string_view text) {
  std::string shown(text.substr(0, 100));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return in_quotes(shown);
}

class Parser {
 public:
  Parser(std::string_view name, std::span<const std::byte> file) : reader_(name, file), size_(file.size()) {}

  GgufContent parse() {
    header();
    const auto tensors = count("tensors", kSmallestTensor);
    const auto values = count("metadata entries", kSmallestValue);
    for (std::size_t i = 0; i < values; ++i) {
      metadata();
    }
    for (std::size_t i = 0; i < tensors; ++i) {
      tensor();
    }
    place();
    return std::move(content_);
  }

 private:
  void header() {
    if (reader_.read<std::uint32_t>("the magic number") != kMagic) {
      reader_.fail(0, "this is no GGUF file: it does not begin with 'GGUF'");
    }
    content_.version = reader_.read<std::uint32_t>("the version");
    if (content_.version != 2 && content_.version != 3) {
      const bool swapped = (content_.version & 0xffffU) == 0;
      reader_.fail(4, swapped ? std::string("the file is big-endian; only little-endian GGUF is read")
                              : fmt::format("GGUF version {} is not read, 2 and 3 are", content_.version));
    }
  }

  /// How many things follow, each of which takes `smallest` bytes or more: bounds what a lying count can
  /// cost.
  std::size_t count(std::string_view what, std::size_t smallest) {
    const std::size_t at = reader_.at();
    const auto result = reader_.read<std::uint64_t>(fmt::format("the number of {}", what));
    if (result > reader_.left() / smallest) {
      reader_.fail(at, fmt::format("{} {} do not fit into the {} bytes left", result, what, reader_.left()));
    }
    return static_cast<std::size_t>(result);
  }

  GgufType value_type() {
    const std::size_t at = reader_.at();
    const auto type = reader_.read<std::uint32_t>("a value's type");
    if (type >= kTypeNames.size()) {
      reader_.fail(at,
                   fmt::format("value type {} is unknown; 0 to {} are known", type, kTypeNames.size() - 1));
    }
    return static_cast<GgufType>(type);
  }

  void metadata() {
    GgufValue entry{.key = {}, .at = reader_.at(), .type = {}, .value = {}};
    entry.key = reader_.text("a metadata key");
    if (entry.key.size() > kMaxKey || !is_plain(entry.key)) {
      reader_.fail(entry.at, fmt::format("{} is no metadata key: 1 to {} printable ASCII characters are",
                                         quoted(entry.key), kMaxKey));
    }
    if (!keys_.insert(entry.key).second) {
      reader_.fail(entry.at, fmt::format("the key {} stands there twice", quoted(entry.key)));
    }
    entry.type = value_type();
    read_value(entry);
    if (entry.key == kAlignmentKey) {
      set_alignment(entry);
    }
    content_.metadata.push_back(entry);
  }

  template <class Stored, class Held>
  void number(GgufValue& entry) {
    entry.value = static_cast<Held>(reader_.read<Stored>(quoted(entry.key)));
  }

  void read_value(GgufValue& entry) {
    switch (entry.type) {
      case GgufType::u8:
        return number<std::uint8_t, std::uint64_t>(entry);
      case GgufType::u16:
        return number<std::uint16_t, std::uint64_t>(entry);
      case GgufType::u32:
        return number<std::uint32_t, std::uint64_t>(entry);
      case GgufType::u64:
        return number<std::uint64_t, std::uint64_t>(entry);
      case GgufType::i8:
        return number<std::int8_t, std::int64_t>(entry);
      case GgufType::i16:
        return number<std::int16_t, std::int64_t>(entry);
      case GgufType::i32:
        return number<std::int32_t, std::int64_t>(entry);
      case GgufType::i64:
        return number<std::int64_t, std::int64_t>(entry);
      case GgufType::f32:
        return number<float, double>(entry);
      case GgufType::f64:
        return number<double, double>(entry);
      case GgufType::boolean:
        entry.value = truth(entry.key);
        return;
      case GgufType::text:
        entry.value = reader_.text(quoted(entry.key));
        return;
      case GgufType::array:
        entry.value = array(entry.key);
        return;
    }
  }

  bool truth(std::string_view key) {
    const std::size_t at = reader_.at();
    const auto value = reader_.read<std::uint8_t>(quoted(key));
    if (value > 1) {
      reader_.fail(at, fmt::format("{} is a truth value of {}; 0 or 1 is", quoted(key), value));
    }
    return value != 0;
  }

  GgufArray array(std::string_view key) {
    const std::size_t at = reader_.at();
    GgufArray result{.type = value_type(), .size = 0, .data = {}};
    if (result.type == GgufType::array) {
      reader_.fail(at, fmt::format("{} is an array of arrays, which no model file has", quoted(key)));
    }
    const bool texts = result.type == GgufType::text;
    const std::size_t each = texts ? sizeof(std::uint64_t) : bytes_of(result.type);
    result.size = count(fmt::format("elements of {}", quoted(key)), each);
    if (!texts) {
      result.data = reader_.take(result.size * each, quoted(key));
      return result;
    }
    ByteReader start = reader_;
    const std::size_t begin = reader_.at();
    for (std::size_t i = 0; i < result.size; ++i) {
      static_cast<void>(reader_.text(fmt::format("element {} of {}", i, quoted(key))));
    }
    result.data = start.take(reader_.at() - begin, quoted(key));
    return result;
  }

  void set_alignment(const GgufValue& entry) {
    const auto* value = std::get_if<std::uint64_t>(&entry.value);
    if (entry.type != GgufType::u32 || value == nullptr || !std::has_single_bit(*value) ||
        *value > kLargestAlignment) {
      reader_.fail(entry.at, fmt::format("'{}' must be a u32 that is a power of two", kAlignmentKey));
    }
    content_.alignment = Bytes(static_cast<std::int64_t>(*value));
  }

  void tensor() {
    const std::size_t at = reader_.at();
    starts_.push_back(at);
    GgufTensor tensor;
    tensor.name = reader_.text("a tensor's name");
    if (tensor.name.size() > kMaxTensorName || !is_plain(tensor.name)) {
      reader_.fail(at, fmt::format("{} is no name of a tensor: 1 to {} printable ASCII characters are",
                                   quoted(tensor.name), kMaxTensorName));
    }
    if (!names_.insert(tensor.name).second) {
      reader_.fail(at, fmt::format("two tensors are called {}", quoted(tensor.name)));
    }
    const auto dims = reader_.read<std::uint32_t>("the number of dimensions");
    if (dims < 1 || dims > kMaxDims) {
      reader_.fail(
          at, fmt::format("{} has {} dimensions; 1 to {} are possible", quoted(tensor.name), dims, kMaxDims));
    }
    for (std::uint32_t i = 0; i < dims; ++i) {
      tensor.dims.push_back(static_cast<std::int64_t>(reader_.read<std::uint64_t>("a dimension")));
    }
    const auto type = reader_.read<std::uint32_t>("a tensor's type");
    const GgmlType* known = find_ggml_type(type);
    if (known == nullptr) {
      reader_.fail(at, fmt::format("{} is of type {}, which is unknown or was withdrawn from GGUF",
                                   quoted(tensor.name), type));
    }
    tensor.type = *known;
    tensor.bytes = size_of(tensor, at);
    tensor.offset = Bytes(static_cast<std::int64_t>(reader_.read<std::uint64_t>("a tensor's offset")));
    content_.tensors.push_back(std::move(tensor));
  }

  Bytes size_of(const GgufTensor& tensor, std::size_t at) const {
    if (tensor.dims.front() % tensor.type.block != 0) {
      reader_.fail(at,
                   fmt::format("{} has rows of {}, which are no whole blocks of {} ({})", quoted(tensor.name),
                               tensor.dims.front(), tensor.type.block, tensor.type.name));
    }
    std::int64_t bytes = tensor.type.bytes.count();
    std::int64_t divisor = tensor.type.block;
    for (const std::int64_t dim : tensor.dims) {
      const std::int64_t factor = dim / divisor;
      divisor = 1;
      if (dim < 1 || __builtin_mul_overflow(bytes, factor, &bytes)) {
        reader_.fail(at, fmt::format("{} has absurd dimensions: {}", quoted(tensor.name),
                                     fmt::join(tensor.dims, " x ")));
      }
    }
    return Bytes(bytes);
  }

  /// Where the data lies: aligned, within the file, no two tensors in one place.
  void place() {
    const auto align = static_cast<std::size_t>(content_.alignment.count());
    content_.data_start = (reader_.at() + align - 1) / align * align;
    if (content_.tensors.empty()) {
      return;
    }
    if (content_.data_start > size_) {
      reader_.fail(reader_.at(), "the file ends before the tensor data begins");
    }
    const auto room = static_cast<std::int64_t>(size_ - content_.data_start);
    std::vector<std::size_t> order(content_.tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (const std::size_t i : order) {
      const GgufTensor& tensor = content_.tensors[i];
      const std::int64_t offset = tensor.offset.count();
      if (offset < 0 || offset > room || tensor.bytes.count() > room - offset) {
        reader_.fail(
            starts_[i],
            fmt::format("{} takes {} bytes from offset {} on, and the tensor data has {}",
                        quoted(tensor.name), tensor.bytes.count(), static_cast<std::uint64_t>(offset), room));
      }
      if (offset % content_.alignment.count() != 0) {
        reader_.fail(starts_[i],
                     fmt::format("{} lies at offset {}, which is no multiple of the alignment of {} bytes",
                                 quoted(tensor.name), offset, content_.alignment.count()));
      }
    }
    std::ranges::sort(order, {}, [this](std::size_t i) { return content_.tensors[i].offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& before = content_.tensors[order[i - 1]];
      const GgufTensor& tensor = content_.tensors[order[i]];
      if (before.offset + before.bytes > tensor.offset) {
        reader_.fail(
            starts_[order[i]],
            fmt::format("{} overlaps {}: it lies at offset {}, and that one ends at {}", quoted(tensor.name),
                        quoted(before.name), tensor.offset.count(), (before.offset + before.bytes).count()));
      }
    }
  }

  ByteReader reader_;
  std::size_t size_;
  GgufContent content_;
  std::unordered_set<std::string_view> keys_;
  std::unordered_set<std::string_view> names_;
  std::vector<std::size_t> starts_;  ///< of the tensors' entries
};

template <class Stored>
void append(const GgufArray& array, std::vector<std::int64_t>& result) {
  ByteReader reader("", array.data);
  for (std::size_t i = 0; i < array.size; ++i) {
    result.push_back(static_cast<std::int64_t>(reader.read<Stored>("")));
  }
}

}  // namespace

GgufContent read_gguf(std::string_view name, std::span<const std::byte> file) {
  return Parser(name, file).parse();
}

std::string_view type_name(GgufType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::vector<std::int64_t> GgufArray::integers() const {
  std::vector<std::int64_t> result;
  result.reserve(size);
  switch (type) {
    case GgufType::u8:
    case GgufType::boolean:
      append<std::uint8_t>(*this, result);
      break;
    case GgufType::i8:
      append<std::int8_t>(*this, result);
      break;
    case GgufType::u16:
      append<std::uint16_t>(*this, result);
      break;
    case GgufType::i16:
      append<std::int16_t>(*this, result);
      break;
    case GgufType::u32:
      append<std::uint32_t>(*this, result);
      break;
    case GgufType::i32:
      append<std::int32_t>(*this, result);
      break;
    case GgufType::u64:
      append<std::uint64_t>(*this, result);
      break;
    case GgufType::i64:
      append<std::int64_t>(*this, result);
      break;
    case GgufType::f32:
    case GgufType::f64:
    case GgufType::text:
    case GgufType::array:
      check(false, "an array of whole numbers");
  }
  return result;
}

std::vector<std::string_view> GgufArray::texts() const {
  check(type == GgufType::text, "an array of texts");
  std::vector<std::string_view> result;
  result.reserve(size);
  ByteReader reader("", data);
  for (std::size_t i = 0; i < size; ++i) {
    result.push_back(reader.text(""));
  }
  return result;
}

}  // namespace kvsim::config
