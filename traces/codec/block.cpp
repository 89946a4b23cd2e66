// SPDX-License-Identifier: Apache-2.0
#include "traces/codec/block.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include "traces/codec/header.h"

namespace kvsim::trace {
namespace {

enum Tag : std::uint32_t { kExtent, kCompute, kAlloc, kFree, kMark, kTags };
constexpr std::uint32_t kTagBits = 3;
constexpr std::uint32_t kTagMask = (1U << kTagBits) - 1;

/// The chain of deltas an extent belongs to, and its bits in the tag: kind, then access.
constexpr std::uint32_t chain_of(const Extent& e) {
  return static_cast<std::uint32_t>(e.kind) << 1U | static_cast<std::uint32_t>(e.access);
}

template <class T>
constexpr std::uint64_t bits(T value) {
  return static_cast<std::uint64_t>(value);
}

/// The difference to `base`, which becomes `value`.
std::int64_t delta(std::uint64_t value, std::uint64_t& base) {
  const auto difference = static_cast<std::int64_t>(value - base);
  base = value;
  return difference;
}

/// Undoes delta().
std::uint64_t restore(std::int64_t difference, std::uint64_t& base) {
  return base += bits(difference);
}

}  // namespace

void BlockEncoder::add(const Record& record) {
  std::visit([this](const auto& r) { add(r); }, record);
}

void BlockEncoder::clear() {
  block_.Clear();
  bases_ = {};
}

void BlockEncoder::add(const Extent& e) {
  const std::uint32_t chain = chain_of(e);
  ExtentBase& base = bases_.extents[chain];
  block_.add_tag(kExtent | chain << kTagBits);
  block_.add_extent_address(delta(e.address, base.address));
  block_.add_extent_row_bytes(delta(bits(e.row_bytes.count()), base.row_bytes));
  block_.add_extent_rows(delta(e.rows, base.rows));
  block_.add_extent_gap(bits((e.stride - e.row_bytes).count()));
  block_.add_extent_stream(e.stream.value());
}

void BlockEncoder::add(const Compute& c) {
  block_.add_tag(kCompute);
  block_.add_compute_unit(static_cast<std::uint32_t>(c.unit));
  block_.add_compute_operations(delta(c.operations, bases_.operations));
  block_.add_compute_stream(c.stream.value());
}

void BlockEncoder::add(const Alloc& a) {
  block_.add_tag(kAlloc);
  block_.add_alloc_address(a.address);
  block_.add_alloc_bytes(bits(a.bytes.count()));
  block_.add_alloc_kind(static_cast<std::uint32_t>(a.kind));
  block_.add_alloc_backing(static_cast<std::uint32_t>(a.backing));
  block_.add_alloc_name(std::string(to_string(a.name)));
}

void BlockEncoder::add(const Free& f) {
  block_.add_tag(kFree);
  block_.add_free_address(f.address);
  block_.add_free_bytes(bits(f.bytes.count()));
}

void BlockEncoder::add(const Mark& m) {
  block_.add_tag(kMark);
  block_.add_mark_what(static_cast<std::uint32_t>(m.what));
  block_.add_mark_phase(static_cast<std::uint32_t>(m.phase));
  block_.add_mark_operator(static_cast<std::uint32_t>(m.op));
  block_.add_mark_layer(m.layer.value());
  block_.add_mark_tokens(delta(m.tokens, bases_.tokens));
  block_.add_mark_depth(delta(m.depth, bases_.depth));
  block_.add_mark_request(m.request);
}

namespace {

/// Records of each kind that the block's columns hold; nothing if columns of one kind differ in length.
std::optional<std::array<int, kTags>> columns_of(const pb::Block& b) {
  const auto same = [](std::initializer_list<int> sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == *sizes.begin(); });
  };
  const bool fit = same({b.extent_address_size(), b.extent_row_bytes_size(), b.extent_rows_size(),
                         b.extent_gap_size(), b.extent_stream_size()}) &&
                   same({b.compute_unit_size(), b.compute_operations_size(), b.compute_stream_size()}) &&
                   same({b.alloc_address_size(), b.alloc_bytes_size(), b.alloc_kind_size(),
                         b.alloc_backing_size(), b.alloc_name_size()}) &&
                   same({b.free_address_size(), b.free_bytes_size()}) &&
                   same({b.mark_what_size(), b.mark_phase_size(), b.mark_operator_size(), b.mark_layer_size(),
                         b.mark_tokens_size(), b.mark_depth_size(), b.mark_request_size()});
  if (!fit) {
    return std::nullopt;
  }
  return std::array{b.extent_address_size(), b.compute_unit_size(), b.alloc_address_size(),
                    b.free_address_size(), b.mark_what_size()};
}

/// Walks the columns. The functions return false where the tag or a value is not one that a record can have.
class BlockDecoder {
 public:
  BlockDecoder(const pb::Block& block, const std::array<int, kTags>& columns, std::vector<Record>& records)
      : block_(block), columns_(columns), records_(records) {}

  [[nodiscard]] bool next(std::uint32_t tag) {
    const std::uint32_t kind = tag & kTagMask;
    if (kind >= kTags || next_[kind] == columns_[kind]) {
      return false;
    }
    switch (kind) {
      case kExtent:
        return extent(tag >> kTagBits);
      case kCompute:
        return compute();
      case kAlloc:
        return alloc();
      case kFree:
        return free();
      default:
        return mark();
    }
  }

  [[nodiscard]] bool at_end() const { return next_ == columns_; }

 private:
  /// A new record to fill in where it stays: copying it from elsewhere stalls on its freshly written fields.
  template <class R>
  R& append() {
    return std::get<R>(records_.emplace_back(std::in_place_type<R>));
  }

  bool extent(std::uint32_t chain) {
    if (chain >= bases_.extents.size()) {
      return false;
    }
    const int i = next_[kExtent]++;
    ExtentBase& base = bases_.extents[chain];
    const std::uint64_t address = restore(address_[i], base.address);
    const std::uint64_t row_bytes = restore(row_bytes_[i], base.row_bytes);
    const std::uint64_t rows = restore(rows_[i], base.rows);
    std::uint64_t stride = 0;
    if (rows > std::numeric_limits<std::uint32_t>::max() ||
        __builtin_add_overflow(row_bytes, gap_[i], &stride)) {
      return false;
    }
    auto& e = append<Extent>();
    e.address = address;
    e.row_bytes = Bytes(static_cast<std::int64_t>(row_bytes));
    e.rows = static_cast<std::uint32_t>(rows);
    e.stride = Bytes(static_cast<std::int64_t>(stride));
    e.access = static_cast<Access>(chain & 1U);
    e.kind = static_cast<Kind>(chain >> 1U);
    e.stream = Stream(stream_[i]);
    return well_formed(e);
  }

  bool compute() {
    const int i = next_[kCompute]++;
    auto& c = append<Compute>();
    c.operations = restore(block_.compute_operations(i), bases_.operations);
    c.stream = Stream(block_.compute_stream(i));
    return to_enum(block_.compute_unit(i), c.unit) && well_formed(c);
  }

  bool alloc() {
    const int i = next_[kAlloc]++;
    const std::string& name = block_.alloc_name(i);
    auto& a = append<Alloc>();
    if (name.size() >= a.name.size()) {
      return false;
    }
    std::copy(name.begin(), name.end(), a.name.begin());
    a.address = block_.alloc_address(i);
    a.bytes = Bytes(static_cast<std::int64_t>(block_.alloc_bytes(i)));
    return to_enum(block_.alloc_kind(i), a.kind) && to_enum(block_.alloc_backing(i), a.backing) &&
           well_formed(a);
  }

  bool free() {
    const int i = next_[kFree]++;
    auto& f = append<Free>();
    f.address = block_.free_address(i);
    f.bytes = Bytes(static_cast<std::int64_t>(block_.free_bytes(i)));
    return well_formed(f);
  }

  bool mark() {
    const int i = next_[kMark]++;
    const std::uint64_t tokens = restore(block_.mark_tokens(i), bases_.tokens);
    const std::uint64_t depth = restore(block_.mark_depth(i), bases_.depth);
    auto& m = append<Mark>();
    m.layer = Layer(block_.mark_layer(i));
    m.tokens = static_cast<std::uint32_t>(tokens);
    m.depth = static_cast<std::uint32_t>(depth);
    m.request = block_.mark_request(i);
    return m.tokens == tokens && m.depth == depth && to_enum(block_.mark_what(i), m.what) &&
           to_enum(block_.mark_phase(i), m.phase) && to_enum(block_.mark_operator(i), m.op) && well_formed(m);
  }

  /// Refuses what the enumeration's byte cannot hold.
  template <class Enum>
  static bool to_enum(std::uint32_t value, Enum& result) {
    result = static_cast<Enum>(value);
    return value <= std::numeric_limits<std::underlying_type_t<Enum>>::max();
  }

  const pb::Block& block_;
  const std::array<int, kTags>& columns_;
  std::vector<Record>& records_;
  BlockBases bases_;
  std::array<int, kTags> next_{};
  // Extents are nearly all that a trace has; their columns at hand save a third of the time.
  const std::int64_t* address_ = block_.extent_address().data();
  const std::int64_t* row_bytes_ = block_.extent_row_bytes().data();
  const std::int64_t* rows_ = block_.extent_rows().data();
  const std::uint64_t* gap_ = block_.extent_gap().data();
  const std::uint32_t* stream_ = block_.extent_stream().data();
};

}  // namespace

std::string decode(const pb::Block& block, std::vector<Record>& records) {
  records.clear();
  if (static_cast<std::size_t>(block.tag_size()) > kBlockRecords) {
    return "the block has more records than a block may have";
  }
  const auto columns = columns_of(block);
  if (!columns) {
    return "the block's columns have different lengths";
  }
  BlockDecoder decoder(block, *columns, records);
  records.reserve(kBlockRecords);
  for (int i = 0; i < block.tag_size(); ++i) {
    if (!decoder.next(block.tag(i))) {
      records.clear();
      return "record " + std::to_string(i) + " of the block has values that no record can have";
    }
  }
  if (!decoder.at_end()) {
    records.clear();
    return "the block has columns without a record";
  }
  return {};
}

}  // namespace kvsim::trace
