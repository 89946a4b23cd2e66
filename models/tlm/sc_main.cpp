// SPDX-License-Identifier: Apache-2.0
// SystemC's library refers to sc_main(); kvsim's programs have a main() of their own and start the kernel
// themselves.
#include <systemc>

int sc_main(int /*argc*/, char** /*argv*/) {
  return 1;
}
