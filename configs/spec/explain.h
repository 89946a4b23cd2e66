// SPDX-License-Identifier: Apache-2.0
// Documentation of every parameter, made from the tables that read them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace kvsim::config {

/// Text about one key ("engine.ubatch"), a group of keys ("device", "" for all), the keys of a catalogue
/// folder
/// ("storage"), or the values of an entry with their sources ("devices/rk3588"). Throws UserError if there is
/// nothing by that name.
[[nodiscard]] std::string explain(std::string_view path = "");

/// JSON Schema (draft 2020-12) of scenario files, with which editors complete keys and ids.
[[nodiscard]] nlohmann::ordered_json json_schema();

}  // namespace kvsim::config
