// SPDX-License-Identifier: Apache-2.0
#include "sim/metrics/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/spec/grammar.h"
#include "configs/spec/tensors.h"
#include "models/memory_path/memory_path.h"
#include "traces/workload/memory_layout.h"

namespace kvsim::sim {

namespace {

using Keys = std::vector<std::string_view>;

/// A recording has all keys, so a key counts as set when it differs from its default.
Keys queue_keys(const config::MemoryControllerSpec& controller) {
  const config::MemoryControllerSpec plain;
  constexpr Picoseconds kAgeCap(2'000'000);  // the schema's
  Keys keys;
  const auto add = [&keys](bool set, std::string_view key) {
    if (set) {
      keys.push_back(key);
    }
  };
  add(controller.queue != plain.queue, "queue");
  add(controller.read_queue != plain.read_queue, "read_queue");
  add(controller.write_queue != plain.write_queue, "write_queue");
  add(controller.age_cap != kAgeCap, "age_cap");
  return keys;
}

std::string joined(const Keys& keys) {
  return fmt::format("device.controller.{}", fmt::join(keys, ", "));
}

void add_fidelity_notes(const config::RunSpec& spec, std::vector<std::string>& notes) {
  if (spec.run.fidelity == config::Fidelity::exact) {
    return;
  }
  const std::string fidelity = to_text(spec.run.fidelity);
  if (const Keys keys = model::unknown_to_trains(spec.device); !keys.empty()) {
    notes.push_back(fmt::format("{} goes burst by burst here: row trains do not know device.{}", fidelity,
                                fmt::join(keys, ", device.")));
    return;
  }
  if (const Keys keys = queue_keys(spec.device.controller); !keys.empty()) {
    notes.push_back(fmt::format("{} has no effect in {}, which books row trains; use exact for it",
                                joined(keys), fidelity));
  }
}

}  // namespace

std::vector<std::string> notes_of(const config::RunSpec& spec) {
  std::vector<std::string> notes;
  const std::int64_t tokens = trace::context_tokens(spec.workload);
  if (tokens > spec.model.context) {
    notes.push_back(
        fmt::format("runs {} tokens, past the model's context of {}", tokens, spec.model.context));
  }
  add_fidelity_notes(spec, notes);
  if (config::weight_bytes(config::tensors(spec.model, spec.engine.weights)) <= spec.device.llc.size) {
    notes.push_back("all weights fit into the last-level cache: the roofline, which is DRAM's, is no bound");
  }
  if (!spec.device.os.readers.empty() && spec.memory.weights != config::WeightBacking::mapped) {
    notes.emplace_back(
        "device.os.readers has no effect: without mapped weights nothing is in the page cache that they "
        "share");
  }
  const config::EngineSpec plain;
  if (spec.engine.kv_cache == config::KvCacheUse::recomputed && spec.engine.ubatch != plain.ubatch) {
    notes.push_back("engine.ubatch has no effect: without a KV cache a step computes all tokens together");
  }
  const config::KvSpec& kv = spec.engine.kv;
  if (spec.model.local && (kv.sinks > 0 || kv.h2o > 0 || kv.entropy > 0 || kv.topk > 0)) {
    notes.push_back(
        fmt::format("engine.kv: layers that see a window of {} tokens keep that; the rest follows {}",
                    spec.model.local->window, name(kv)));
  }
  if (kv.topk > 0) {
    notes.push_back(
        fmt::format("which pages topk reads is drawn: popularity {:g}, reuse {:g} (workload.pages, assumed)",
                    spec.workload.pages.popularity, spec.workload.pages.reuse));
  } else if (spec.workload.pages != config::PageUse{}) {
    notes.emplace_back("workload.pages has no effect: attention reads all tokens, as engine.kv has no topk");
  }
  if (spec.model.latent && spec.engine.kv.v != spec.engine.kv.k) {
    notes.push_back("engine.kv: the format of V has no effect, since latent attention keeps K alone");
  }
  if (spec.engine.kv_layout != config::KvLayout::paged) {
    Keys keys;
    if (spec.engine.kv_block != plain.kv_block) {
      keys.push_back("engine.kv_block");
    }
    if (spec.engine.kv_block_order != plain.kv_block_order) {
      keys.push_back("engine.kv_block_order");
    }
    if (!keys.empty()) {
      notes.push_back(fmt::format("{} has no effect: engine.kv_layout is not paged", fmt::join(keys, ", ")));
    }
  }
  return notes;
}

}  // namespace kvsim::sim
