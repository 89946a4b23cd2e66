// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/catalogue.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/error/error.h"

namespace kvsim::config {
namespace {

constexpr std::array kKinds{
    CatalogueKind{"devices", "device"},       CatalogueKind{"dram", "DRAM part"},
    CatalogueKind{"llms", "model"},           CatalogueKind{"formats", "weight format"},
    CatalogueKind{"cores", "core"},           CatalogueKind{"tensor_types", "tensor type"},
    CatalogueKind{"storage", "storage part"}, CatalogueKind{"masters", "master"}};
constexpr std::string_view kEnding = ".yaml";

std::string folder_path(std::string_view kind) {
  return fmt::format("configs/catalogue/{}/", kind);
}

}  // namespace

std::span<const CatalogueKind> catalogue_kinds() {
  return kKinds;
}

const CatalogueKind* find_kind(std::string_view folder) {
  const auto* found = std::ranges::find(kKinds, folder, &CatalogueKind::folder);
  return found == kKinds.end() ? nullptr : found;
}

std::vector<std::string> catalogue_ids(std::string_view kind) {
  if (find_kind(kind) == nullptr) {
    std::vector<std::string_view> known;
    for (const CatalogueKind& each : kKinds) {
      known.push_back(each.folder);
    }
    const std::optional<std::string> near = did_you_mean(kind, known);
    throw UserError(fmt::format("the catalogue has no '{}'{}; it has {}", kind,
                                near ? fmt::format(", did you mean '{}'?", *near) : "",
                                fmt::join(known, ", ")));
  }
  std::vector<std::string> ids;
  const std::string folder = folder_path(kind);
  for (const CatalogueFile& file : catalogue_files()) {
    if (!file.path.starts_with(folder)) {
      continue;
    }
    ids.emplace_back(file.path.substr(folder.size(), file.path.size() - folder.size() - kEnding.size()));
  }
  return ids;
}

const CatalogueFile* find_entry(std::string_view kind, std::string_view id) {
  const std::string path = fmt::format("{}{}{}", folder_path(kind), id, kEnding);
  const auto files = catalogue_files();
  const auto found = std::ranges::find(files, path, &CatalogueFile::path);
  return found == files.end() ? nullptr : &*found;
}

std::string unknown_entry(const CatalogueKind& kind, std::string_view id) {
  const std::vector<std::string> known = catalogue_ids(kind.folder);
  const std::optional<std::string> near = did_you_mean(id, known);
  return fmt::format("unknown {} {}{}; known: {}; or give a file (with '/' or ending in .yaml) or a map",
                     kind.noun, in_quotes(id), near ? fmt::format(", did you mean '{}'?", *near) : "",
                     fmt::join(known, ", "));
}

}  // namespace kvsim::config
