// SPDX-License-Identifier: Apache-2.0
// The catalogue: devices, DRAM parts, models and formats that the binary carries, under
// configs/catalogue/KIND/ID.yaml.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/yaml.h"

namespace kvsim::config {

struct CatalogueFile {
  std::string_view path;  ///< "configs/catalogue/dram/lpddr4x_4224_8gb.yaml"
  std::string_view text;
};

/// All files, sorted by path. Written at build time by configs/catalogue/embed.cmake.
[[nodiscard]] std::span<const CatalogueFile> catalogue_files();

/// A folder of the catalogue: "devices", "dram", "llms", "formats", "cores", "tensor_types", "storage" or
/// "masters".
struct CatalogueKind {
  std::string_view folder;
  std::string_view noun;  ///< one entry, in words: "device"
};
[[nodiscard]] std::span<const CatalogueKind> catalogue_kinds();
/// Null if there is no such kind.
[[nodiscard]] const CatalogueKind* find_kind(std::string_view folder);

/// The ids of a kind, sorted. Throws UserError if there is no such kind.
[[nodiscard]] std::vector<std::string> catalogue_ids(std::string_view kind);

/// The text of an entry, or null if the id is unknown.
[[nodiscard]] const CatalogueFile* find_entry(std::string_view kind, std::string_view id);

/// "unknown device 'rk3589'; did you mean 'rk3588'? Known: ..."
[[nodiscard]] std::string unknown_entry(const CatalogueKind& kind, std::string_view id);

}  // namespace kvsim::config
