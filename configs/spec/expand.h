// SPDX-License-Identifier: Apache-2.0
// Replaces names by what they stand for: catalogue ids and files by their content, `extends` by the merged
// map.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/schema/info.h"
#include "configs/schema/place.h"
#include "configs/schema/yaml.h"
#include "configs/spec/catalogue.h"
#include "configs/spec/run_spec.h"

namespace kvsim::config {

class Expander {
 public:
  explicit Expander(Diagnostics& errors) : errors_(errors) {}

  /// Parses a file and remembers it as an input of the run.
  [[nodiscard]] Value load(const SourceText& source);

  /// Expands a whole scenario in place. `file` gives it its name if it has none.
  void scenario(Value& root, std::string_view file);

  /// Expands a value that stands for an entry of `kind`: an id, a file, or a map. Invalid if there is none
  /// such.
  void entry(Value& value, const CatalogueKind& kind, const SchemaInfo& schema, const std::string& path);

  /// Every file that was read, in the order of reading.
  [[nodiscard]] const std::vector<InputFile>& inputs() const { return inputs_; }

 private:
  /// A file on the way from an entry to the root of what it extends.
  using Chain = std::vector<std::string>;

  void fields(Value& map, const SchemaInfo& schema, const std::string& path);
  void field(Value& value, const FieldInfo& info, const std::string& path);
  std::optional<SourceText> find_source(const Value& name, const CatalogueKind* kind,
                                        const std::string& path);
  SourceText gguf_source(const std::filesystem::path& path);
  void series(Value& map, const std::string& path);
  void adopt_weights(Value& root);
  Value named(const Value& name, const CatalogueKind* kind, const std::string& path, Chain chain);
  bool merge_base(Value& map, const CatalogueKind* kind, const std::string& path, const Chain& chain);
  void add_tensor_types(Value& format, const std::string& path);

  Diagnostics& errors_;
  std::vector<InputFile> inputs_;
  std::optional<SourceText> gguf_weights_;  ///< the weight format of the GGUF file that the model came from
};

/// 64-bit FNV-1a of `text`, as 16 hex digits.
[[nodiscard]] std::string content_hash(std::string_view text);

}  // namespace kvsim::config
