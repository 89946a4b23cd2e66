// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "sim/cli/commands.h"

int main(int argc, char** argv) {
  return kvsim::sim::run_command_line({argv + 1, argv + argc});
}
