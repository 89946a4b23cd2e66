// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "configs/error/diagnostics.h"
#include "configs/error/error.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"
#include "sim/run/runner.h"
#include "sim/version.h"

namespace kvsim::sim {

namespace {

constexpr std::array kCommands = {
    Command{"run", "SCENARIO [options]",
            "Simulates a scenario: does it fit, how fast is each token, and why.",
            "  kvsim run scenarios/rk3588_llama8b.yaml\n"
            "  kvsim run scenarios/rk3588_llama8b.yaml --set engine.weights=Q8_0 --set workload.prompt=2048\n"
            "  kvsim run scenarios/rk3588_llama8b.yaml --format json --record llama8b.kvt",
            run_run},
    Command{"replay", "TRACE [options]",
            "Simulates a recorded access stream, on its own device or another, or a captured one.",
            "  kvsim replay llama8b.kvt\n"
            "  kvsim replay llama8b.kvt --device rk3588_lpddr5\n"
            "  kvsim replay decode.lackey.zst --regions decode.regions.csv --device rk3588",
            run_replay},
    Command{"compare", "A.yaml B.yaml... | BASE.yaml --vary PATH=V1,V2 | WHATIF.yaml [options]",
            "Simulates variants beside each other: a table, what makes the difference, and who wins.",
            "  kvsim compare scenarios/rk3588_llama8b.yaml --vary engine.kv=f16,q8_0,q4_0\n"
            "  kvsim compare scenarios/whatif/lpddr4x_vs_lpddr5_vs_lpddr5x.yaml --format md\n"
            "  kvsim compare a.yaml b.yaml --quality quality.json --format json",
            run_compare},
    Command{"session", "SCENARIO [options]",
            "Saves a session's KV cache to storage and restores it, beside computing it again.",
            "  kvsim session scenarios/rk3588_llama8b.yaml\n"
            "  kvsim session scenarios/rk3588_llama8b.yaml --prefix 64,256,1024 --set engine.kv=q8_0",
            run_session},
    Command{"validate", "FILE...", "Reads scenario files and tells all mistakes in them.",
            "  kvsim validate scenarios/*.yaml", run_validate},
    Command{"explain", "[KEY|FILE.gguf]",
            "Explains a configuration key, a group of keys, the keys of a catalogue folder, an entry with "
            "its sources, "
            "or a GGUF file.",
            "  kvsim explain engine.ubatch\n"
            "  kvsim explain devices/rk3588\n"
            "  kvsim explain storage\n"
            "  kvsim explain model.gguf\n"
            "  kvsim explain --json-schema > scenario.schema.json",
            run_explain},
    Command{"dram", "run|bench|check [options]",
            "Plays requests on a DRAM part by itself, measures it, or checks a command trace.",
            "  kvsim dram bench --part lpddr4-3200", run_dram},
    Command{"storage", "bench [options]",
            "Measures a storage part by itself, with the jobs and figures of fio.",
            "  kvsim storage bench --part emmc_foresee_sld64g --rw randread", run_storage},
    Command{"quality", "SCENARIO|--model FILE.gguf --kv SPEC... --tokens FILE.jsonl [options]",
            "Measures what a KV cache's formats and policies cost in accuracy, by running a model.",
            "  kvsim quality --model tiny.gguf --tokens held-out.jsonl --kv f16 q8_0 q4_0 int4:g32:channel\n"
            "  kvsim quality --model tiny.gguf --tokens held-out.jsonl --kv f16+window=512 "
            "f16+window=508+sinks=4 "
            "f16+h2o=512",
            run_quality},
    Command{"attention", "[options]",
            "Runs one layer's attention on an NPU's SRAM, in tiles or with the score matrix in DRAM.",
            "  kvsim attention --device rk3588 --model llama3_8b --tokens 2048\n"
            "  kvsim attention --tokens 2048 --sram 1MiB --naive --format json\n"
            "  kvsim attention --tile 128x64 --oversize spill",
            run_attention},
    Command{"trace", "info FILE [options]",
            "Looks into a memory trace that was captured from a real program.",
            "  kvsim trace info decode.lackey.zst --regions decode.regions.csv", run_trace},
    Command{"list", "devices|llms|formats|dram|cores|tensor_types|storage",
            "Prints the ids of the catalogue, one a line.", "  kvsim list devices", run_list},
};

std::string help() {
  std::string text =
      "kvsim: memory-system simulator for language models on edge devices\n\n"
      "usage: kvsim COMMAND [ARGUMENTS]     kvsim COMMAND --help\n\nCommands:\n";
  for (const Command& command : kCommands) {
    text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  }
  text += "\nExamples:\n";
  for (const Command& command : kCommands) {
    text += fmt::format("{}\n", command.examples.substr(0, command.examples.find('\n')));
  }
  text +=
      "\nExit codes: 0 ran (also when the verdict is out of memory), 1 'dram check' found what breaks a "
      "rule, 2 "
      "wrong input, 3 internal fault, 128 + signal interrupted\n";
  return text;
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    write_stderr(help());
    return 2;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    write_stdout(help());
    return 0;
  }
  if (arguments[0] == "--version") {
    if (arguments.size() > 1) {
      throw UserError(fmt::format("--version: stands alone, but '{}' follows", arguments[1]));
    }
    write_stdout(fmt::format("kvsim {}\n", kVersion));
    return 0;
  }
  const auto command = std::find_if(kCommands.begin(), kCommands.end(),
                                    [&](const Command& c) { return c.name == arguments[0]; });
  if (command == kCommands.end()) {
    std::vector<std::string_view> names;
    for (const Command& c : kCommands) {
      names.push_back(c.name);
    }
    const auto meant = did_you_mean(arguments[0], names);
    throw UserError(fmt::format("unknown command '{}'{}; see 'kvsim --help'", arguments[0],
                                meant ? fmt::format(", did you mean '{}'?", *meant) : ""));
  }
  return command->run(*command, {arguments.begin() + 1, arguments.end()});
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

int run_command_line(const std::vector<std::string>& arguments) {
  ignore_write_signals();
  try {
    return dispatch(arguments);
  } catch (const UserError& error) {
    write_stderr(fmt::format("kvsim: {}\n", error.what()));
    return 2;
  } catch (const Interrupted&) {
    write_stderr("kvsim: interrupted; nothing was written\n");
    return 128 + interrupt_signal();
  } catch (const std::bad_alloc&) {
    write_stderr(
        "kvsim: this machine has too little memory for the simulation; use a smaller model or fewer "
        "tokens\n");
    return 2;
  } catch (const std::exception& error) {
    write_stderr(fmt::format(
        "kvsim: internal fault: {}\nThis is a bug in kvsim; please report it with the command and "
        "its files.\n",
        error.what()));
    return 3;
  }
}

}  // namespace kvsim::sim
