// SPDX-License-Identifier: Apache-2.0
#include "sim/run/operation.h"

#include <gtest/gtest.h>

namespace kvsim::sim {
namespace {

using trace::Access;
using trace::Extent;
using trace::Kind;

Extent of(Kind kind, trace::Address address, std::int64_t bytes, Access access = Access::read) {
  return {.address = address,
          .row_bytes = Bytes(bytes),
          .rows = 1,
          .stride = Bytes(bytes),
          .access = access,
          .kind = kind,
          .stream = Stream(0)};
}

TEST(ModelBytes, CountsWeightsAndKvAndNothingElse) {
  Operation operation;
  operation.threads.push_back(
      {.extents = {of(Kind::weights, 0, 100), of(Kind::kv, 1000, 20), of(Kind::kv, 2000, 4, Access::write),
                   of(Kind::scratch, 3000, 50), of(Kind::scratch, 4000, 50, Access::write)},
       .simd_operations = 0});
  EXPECT_EQ(model_bytes(operation), Bytes(124));
}

/// By one thread for each query head, or by several threads.
TEST(ModelBytes, CountsWhatIsReadAgainOnce) {
  Operation operation;
  operation.threads.push_back(
      {.extents = {of(Kind::kv, 0, 64), of(Kind::kv, 64, 64), of(Kind::kv, 0, 64)}, .simd_operations = 0});
  operation.threads.push_back(
      {.extents = {of(Kind::kv, 64, 64), of(Kind::kv, 128, 64)}, .simd_operations = 0});
  EXPECT_EQ(model_bytes(operation), Bytes(3 * 64));
}

}  // namespace
}  // namespace kvsim::sim
