// SPDX-License-Identifier: Apache-2.0
// The main scenario whole, as its user waits for it.
#include <benchmark/benchmark.h>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

void run_main_scenario(benchmark::State& state) {
  for (auto _ : state) {
    if (kvsim({"run", "scenarios/rk3588_llama8b.yaml"}).exit_code != 0) {
      state.SkipWithError("kvsim run failed");
    }
  }
}
BENCHMARK(run_main_scenario)->Unit(benchmark::kSecond)->UseRealTime()->Iterations(1);

}  // namespace
}  // namespace kvsim::testing
