// SPDX-License-Identifier: Apache-2.0
#include "traces/codec/writer.h"

#include <string>
#include <utility>

#include "configs/error/error.h"
#include "traces/codec/block.h"
#include "traces/codec/frame.h"
#include "traces/codec/output_file.h"

namespace kvsim::trace {

struct TraceWriter::Impl {
  explicit Impl(std::filesystem::path path) : file(std::move(path)) {}

  template <class Message>
  void write(const Message& m) {
    message.clear();
    check(m.AppendToString(&message), "Protobuf serialises into memory");
    file.write(compressor.frame(message));
  }

  void flush() {
    if (encoder.records() > 0) {
      totals.set_records(totals.records() + encoder.records());
      totals.set_blocks(totals.blocks() + 1);
      write(encoder.block());
      encoder.clear();
    }
  }

  OutputFile file;
  Compressor compressor;
  BlockEncoder encoder;
  pb::Totals totals;
  std::string message;
  bool finished = false;
};

TraceWriter::TraceWriter(std::filesystem::path path, const TraceHeader& header)
    : impl_(std::make_unique<Impl>(std::move(path))) {
  impl_->file.write(kMagic);
  const auto version = to_bytes(kTraceFormatVersion);
  impl_->file.write({version.data(), version.size()});
  pb::Header message;
  message.set_kvsim_version(header.kvsim_version);
  message.set_configuration(header.configuration);
  message.set_seed(header.seed);
  for (const config::InputFile& input : header.inputs) {
    pb::InputFile& file = *message.add_inputs();
    file.set_path(input.path);
    file.set_hash(input.hash);
  }
  impl_->write(message);
}

TraceWriter::~TraceWriter() = default;

void TraceWriter::put(const Record& record) {
  check(!impl_->finished, "nothing is put into a finished trace");
  check(well_formed(record), "a record put into a trace is well formed");
  impl_->encoder.add(record);
  if (impl_->encoder.records() == kBlockRecords) {
    impl_->flush();
  }
}

void TraceWriter::finish() {
  check(!impl_->finished, "a trace is finished once");
  impl_->flush();
  pb::Block last;
  *last.mutable_totals() = impl_->totals;
  impl_->write(last);
  impl_->file.commit();
  impl_->finished = true;
}

}  // namespace kvsim::trace
