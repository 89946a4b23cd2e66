// SPDX-License-Identifier: Apache-2.0
// The SystemC library has a main() of its own that calls sc_main(); the tests come through this one and need no sc_main().
#include <gmock/gmock.h>
#include <systemc>

int sc_main(int /*argc*/, char** /*argv*/) { return 1; }

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
