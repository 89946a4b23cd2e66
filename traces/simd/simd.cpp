// SPDX-License-Identifier: Apache-2.0
#include "traces/simd/simd.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "configs/error/error.h"
#include "traces/number/half.h"

// Highway compiles this file once per instruction set, and its headers have an order.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "traces/simd/simd.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kvsim::trace::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums stay in registers only if the loops over a tile's rows and columns, of at most four rounds, are
// unrolled.
#undef KVSIM_UNROLL
#define KVSIM_UNROLL _Pragma("GCC unroll 4")

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// The sums over the lanes of four vectors, written side by side.
HWY_INLINE void store_sums(V a, V b, V c, V e, float* out) {
#if HWY_TARGET == HWY_SCALAR
  out[0] = hn::GetLane(a), out[1] = hn::GetLane(b), out[2] = hn::GetLane(c), out[3] = hn::GetLane(e);
#else
  const D d;
  const hn::RepartitionToWide<D> pairs;
  const V ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const V ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce));
  const V by_block =
      hn::Add(hn::BitCast(d, low), hn::BitCast(d, high));  // in each 128 bits the sums of a, b, c, e
  HWY_ALIGN float blocks[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(by_block, d, blocks);
  const hn::FixedTag<float, 4> four;
  auto sum = hn::Load(four, blocks);
  for (std::size_t i = 4; i < hn::Lanes(d); i += 4) {
    sum = hn::Add(sum, hn::Load(four, blocks + i));
  }
  hn::StoreU(sum, four, out);
#endif
}

/// Far enough that lines of a stream have come when they are used, near enough that they are still there.
constexpr std::size_t kAhead = 8192;

// The right-hand matrix of a product: rows from `row` on, a vector or a number of a row, and what to fetch
// early.
struct Floats {
  const float* numbers;
  std::size_t stride;  // in numbers

  [[nodiscard]] Floats row(std::size_t j) const { return {numbers + j * stride, stride}; }
  [[nodiscard]] HWY_INLINE V load(std::size_t j, std::size_t c) const {
    return hn::LoadU(D(), numbers + j * stride + c);
  }
  [[nodiscard]] float number(std::size_t j, std::size_t c) const { return numbers[j * stride + c]; }
  HWY_INLINE void fetch_ahead(std::size_t /*j*/, std::size_t /*c*/) const {}  // they were just decoded
};

struct Halves {
  const hwy::float16_t* numbers;  // nothing but their bits are looked at
  std::size_t stride;

  [[nodiscard]] Halves row(std::size_t j) const { return {numbers + j * stride, stride}; }
  [[nodiscard]] HWY_INLINE V load(std::size_t j, std::size_t c) const {
    const hn::Rebind<hwy::float16_t, D> narrow;
    return hn::PromoteTo(D(), hn::LoadU(narrow, numbers + j * stride + c));
  }
  [[nodiscard]] float number(std::size_t j, std::size_t c) const {
    Half half;
    std::memcpy(&half.bits, numbers + j * stride + c, sizeof half.bits);
    return to_float(half);
  }
  HWY_INLINE void fetch_ahead(std::size_t j, std::size_t c) const {
    const auto address = reinterpret_cast<std::uintptr_t>(numbers + j * stride + c) + kAhead;
    hwy::Prefetch(reinterpret_cast<const hwy::float16_t*>(address));  // may lie behind the end: no access
  }
};

/// A tile of `N` x `M` dot products, M being 1 or 4: each number that is loaded is used several times.
template <std::size_t N, std::size_t M, class B>
HWY_INLINE void product_tile(const float* a, const B& b, std::size_t columns, float* out,
                             std::size_t stride) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sums[N][M];
  KVSIM_UNROLL
  for (std::size_t i = 0; i < N; ++i) {
    KVSIM_UNROLL
    for (std::size_t j = 0; j < M; ++j) {
      sums[i][j] = hn::Zero(d);
    }
  }
  std::size_t c = 0;
  for (; c + lanes <= columns; c += lanes) {
    V bs[M];
    KVSIM_UNROLL
    for (std::size_t j = 0; j < M; ++j) {
      b.fetch_ahead(j, c);
      bs[j] = b.load(j, c);
    }
    KVSIM_UNROLL
    for (std::size_t i = 0; i < N; ++i) {
      const V as = hn::LoadU(d, a + i * columns + c);
      KVSIM_UNROLL
      for (std::size_t j = 0; j < M; ++j) {
        sums[i][j] = hn::MulAdd(as, bs[j], sums[i][j]);
      }
    }
  }
  KVSIM_UNROLL
  for (std::size_t i = 0; i < N; ++i) {
    float* row = out + i * stride;
    if constexpr (M == 4) {
      store_sums(sums[i][0], sums[i][1], sums[i][2], sums[i][3], row);
    } else {
      *row = hn::GetLane(hn::SumOfLanes(d, sums[i][0]));
    }
    KVSIM_UNROLL
    for (std::size_t j = 0; j < M; ++j) {
      for (std::size_t rest = c; rest < columns; ++rest) {
        row[j] += a[i * columns + rest] * b.number(j, rest);
      }
    }
  }
}

template <std::size_t N, class B>
HWY_INLINE void product_rows(const float* a, const B& b, std::size_t b_rows, std::size_t columns,
                             float* out) {
  std::size_t j = 0;
  for (; j + 4 <= b_rows; j += 4) {
    product_tile<N, 4>(a, b.row(j), columns, out + j, b_rows);
  }
  for (; j < b_rows; ++j) {
    product_tile<N, 1>(a, b.row(j), columns, out + j, b_rows);
  }
}

template <class B>
HWY_INLINE void all_products(const float* a, std::size_t a_rows, const B& b, std::size_t b_rows,
                             std::size_t columns, float* out) {
  std::size_t i = 0;
  for (; i + 4 <= a_rows; i += 4) {
    product_rows<4>(a + i * columns, b, b_rows, columns, out + i * b_rows);
  }
  for (; i + 2 <= a_rows; i += 2) {
    product_rows<2>(a + i * columns, b, b_rows, columns, out + i * b_rows);
  }
  for (; i < a_rows; ++i) {
    product_rows<1>(a + i * columns, b, b_rows, columns, out + i * b_rows);
  }
}

void products_impl(const float* a, std::size_t a_rows, const float* b, std::size_t b_rows,
                   std::size_t columns, float* out) {
  all_products(a, a_rows, Floats{b, columns}, b_rows, columns, out);
}

void half_products_impl(const float* a, std::size_t a_rows, const HalfRows& b, float* out) {
  const Halves halves{reinterpret_cast<const hwy::float16_t*>(b.first), b.stride};
  all_products(a, a_rows, halves, b.rows, b.columns, out);
}

/// `N` rows of out, `W` vectors of each, stay in registers while all rows of b go by.
template <std::size_t N, std::size_t W, class B>
HWY_INLINE void add_tile(const float* a, std::size_t a_columns, const B& b, std::size_t from,
                         std::size_t columns, float* out) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sums[N][W];
  KVSIM_UNROLL
  for (std::size_t i = 0; i < N; ++i) {
    KVSIM_UNROLL
    for (std::size_t w = 0; w < W; ++w) {
      sums[i][w] = hn::LoadU(d, out + i * columns + from + w * lanes);
    }
  }
  for (std::size_t j = 0; j < a_columns; ++j) {
    V bs[W];
    KVSIM_UNROLL
    for (std::size_t w = 0; w < W; ++w) {
      b.fetch_ahead(j, from + w * lanes);
      bs[w] = b.load(j, from + w * lanes);
    }
    KVSIM_UNROLL
    for (std::size_t i = 0; i < N; ++i) {
      const V factor = hn::Set(d, a[i * a_columns + j]);
      KVSIM_UNROLL
      for (std::size_t w = 0; w < W; ++w) {
        sums[i][w] = hn::MulAdd(factor, bs[w], sums[i][w]);
      }
    }
  }
  KVSIM_UNROLL
  for (std::size_t i = 0; i < N; ++i) {
    KVSIM_UNROLL
    for (std::size_t w = 0; w < W; ++w) {
      hn::StoreU(sums[i][w], d, out + i * columns + from + w * lanes);
    }
  }
}

template <std::size_t N, class B>
HWY_INLINE void add_rows(const float* a, std::size_t a_columns, const B& b, std::size_t columns, float* out) {
  const std::size_t lanes = hn::Lanes(D());
  std::size_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) {
    add_tile<N, 4>(a, a_columns, b, c, columns, out);
  }
  for (; c + lanes <= columns; c += lanes) {
    add_tile<N, 1>(a, a_columns, b, c, columns, out);
  }
  for (std::size_t i = 0; i < N && c < columns; ++i) {
    for (std::size_t j = 0; j < a_columns; ++j) {
      for (std::size_t rest = c; rest < columns; ++rest) {
        out[i * columns + rest] += a[i * a_columns + j] * b.number(j, rest);
      }
    }
  }
}

template <class B>
HWY_INLINE void add_all_products(const float* a, std::size_t a_rows, const B& b, std::size_t b_rows,
                                 std::size_t columns, float* out) {
  std::size_t i = 0;
  for (; i + 4 <= a_rows; i += 4) {
    add_rows<4>(a + i * b_rows, b_rows, b, columns, out + i * columns);
  }
  for (; i < a_rows; ++i) {
    add_rows<1>(a + i * b_rows, b_rows, b, columns, out + i * columns);
  }
}

void add_products_impl(const float* a, std::size_t a_rows, const float* b, std::size_t b_rows,
                       std::size_t columns, float* out) {
  add_all_products(a, a_rows, Floats{b, columns}, b_rows, columns, out);
}

void add_half_products_impl(const float* a, std::size_t a_rows, const HalfRows& b, float* out) {
  const Halves halves{reinterpret_cast<const hwy::float16_t*>(b.first), b.stride};
  add_all_products(a, a_rows, halves, b.rows, b.columns, out);
}

float maximum_impl(const float* numbers, std::size_t count) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    largest = hn::Max(largest, hn::LoadU(d, numbers + i));
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < count; ++i) {
    result = std::max(result, numbers[i]);
  }
  return result;
}

float exponentials_impl(float* numbers, std::size_t count, float shift) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  // Below this e^x is less than the smallest normal number; also takes the place of -infinity.
  const V least = hn::Set(d, -87.0F);
  const V by = hn::Set(d, shift);
  V sum = hn::Zero(d);
  const auto e = [&](V x) HWY_ATTR {
    const V shifted = hn::Sub(x, by);
    return hn::IfThenElseZero(hn::Ge(shifted, least), hn::Exp(d, hn::Max(shifted, least)));
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V result = e(hn::LoadU(d, numbers + i));
    hn::StoreU(result, d, numbers + i);
    sum = hn::Add(sum, result);
  }
  if (i < count) {
    HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
    std::fill(rest, rest + lanes, -std::numeric_limits<float>::infinity());
    std::copy(numbers + i, numbers + count, rest);
    const V result = e(hn::Load(d, rest));
    hn::Store(result, d, rest);
    std::copy(rest, rest + (count - i), numbers + i);
    sum = hn::Add(sum, result);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void scale_impl(float* numbers, std::size_t count, float factor) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const V by = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, numbers + i), by), d, numbers + i);
  }
  for (; i < count; ++i) {
    numbers[i] *= factor;
  }
}

void widen_impl(const std::byte* from, std::size_t count, float* to) {
  const D d;
  const hn::Rebind<hwy::float16_t, D> narrow;
  const std::size_t lanes = hn::Lanes(d);
  const auto* halves = reinterpret_cast<const hwy::float16_t*>(from);  // nothing but its bits are looked at
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(narrow, halves + i)), d, to + i);
  }
  for (; i < count; ++i) {
    Half half;
    std::memcpy(&half, from + i * sizeof half, sizeof half);
    to[i] = to_float(half);
  }
}

const char* instruction_set_impl() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace kvsim::trace::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace kvsim::trace::simd {

HWY_EXPORT(products_impl);
HWY_EXPORT(half_products_impl);
HWY_EXPORT(add_products_impl);
HWY_EXPORT(add_half_products_impl);
HWY_EXPORT(maximum_impl);
HWY_EXPORT(exponentials_impl);
HWY_EXPORT(scale_impl);
HWY_EXPORT(widen_impl);
HWY_EXPORT(instruction_set_impl);

void products(const Rows& a, const Rows& b, std::span<float> out) {
  check(a.columns == b.columns && out.size() == a.rows() * b.rows(), "matrices of a product fit together");
  HWY_DYNAMIC_DISPATCH(products_impl)
  (a.numbers.data(), a.rows(), b.numbers.data(), b.rows(), a.columns, out.data());
}

void add_products(const Rows& a, const Rows& b, std::span<float> out) {
  check(a.columns == b.rows() && out.size() == a.rows() * b.columns, "matrices of a product fit together");
  HWY_DYNAMIC_DISPATCH(add_products_impl)
  (a.numbers.data(), a.rows(), b.numbers.data(), b.rows(), b.columns, out.data());
}

void products(const Rows& a, const HalfRows& b, std::span<float> out) {
  check(a.columns == b.columns && out.size() == a.rows() * b.rows, "matrices of a product fit together");
  HWY_DYNAMIC_DISPATCH(half_products_impl)(a.numbers.data(), a.rows(), b, out.data());
}

void add_products(const Rows& a, const HalfRows& b, std::span<float> out) {
  check(a.columns == b.rows && out.size() == a.rows() * b.columns, "matrices of a product fit together");
  HWY_DYNAMIC_DISPATCH(add_half_products_impl)(a.numbers.data(), a.rows(), b, out.data());
}

float maximum(std::span<const float> numbers) {
  return HWY_DYNAMIC_DISPATCH(maximum_impl)(numbers.data(), numbers.size());
}

float exponentials(std::span<float> numbers, float shift) {
  return HWY_DYNAMIC_DISPATCH(exponentials_impl)(numbers.data(), numbers.size(), shift);
}

void scale(std::span<float> numbers, float factor) {
  HWY_DYNAMIC_DISPATCH(scale_impl)(numbers.data(), numbers.size(), factor);
}

void widen(std::span<const std::byte> halves, std::span<float> to) {
  check(halves.size() == to.size() * sizeof(Half), "as many numbers come out as go in");
  HWY_DYNAMIC_DISPATCH(widen_impl)(halves.data(), to.size(), to.data());
}

const char* instruction_set() {
  return HWY_DYNAMIC_DISPATCH(instruction_set_impl)();
}

}  // namespace kvsim::trace::simd

#endif  // HWY_ONCE
