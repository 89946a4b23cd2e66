// SPDX-License-Identifier: Apache-2.0
// The tests' main(), in an object file of its own: the SystemC library has one too, which the linker would
// take before GoogleTest's.
#include <gmock/gmock.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
