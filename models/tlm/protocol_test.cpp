// SPDX-License-Identifier: Apache-2.0
// Do the modules keep to the TLM-2.0 base protocol, also where one has to wait for another?
#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include "models/interconnect/interconnect.h"
#include "models/stream/line_stream.h"
#include "models/testing/protocol_checker.h"
#include "models/testing/soc.h"
#include "models/testing/test_device.h"
#include "models/tlm/transaction.h"

namespace kvsim::model {
namespace {

using namespace literals;
using ::testing::Contains;
using testing::extent;
using ::testing::IsEmpty;
using testing::ProtocolChecker;
using testing::ProtocolRules;
using testing::simulate;
using testing::Soc;
using testing::split;

// --- the checker itself
// -----------------------------------------------------------------------------------------

TEST(ProtocolRules, AcceptsFourPhasesInOrder) {
  ProtocolRules rules;
  tlm::tlm_generic_payload a, b;
  rules.note(a, tlm::BEGIN_REQ);
  rules.note(a, tlm::END_REQ);
  rules.note(b, tlm::BEGIN_REQ);  // pipelined
  rules.note(a, tlm::BEGIN_RESP);
  rules.note(b, tlm::END_REQ);
  rules.note(a, tlm::END_RESP);
  rules.note(b, tlm::BEGIN_RESP);
  rules.note(b, tlm::END_RESP);
  EXPECT_THAT(rules.broken(), IsEmpty());
  EXPECT_EQ(rules.open(), 0U);
  EXPECT_EQ(rules.count(tlm::END_RESP), 2);
}

/// What the rules say to this order of phases of two payloads.
std::vector<std::string> broken_by(const std::vector<std::pair<int, tlm::tlm_phase_enum>>& order) {
  ProtocolRules rules;
  tlm::tlm_generic_payload payloads[2];
  for (const auto& [payload, phase] : order) {
    rules.note(payloads[payload], phase);
  }
  return rules.broken();
}

TEST(ProtocolRules, SeesEachViolation) {
  EXPECT_THAT(broken_by({{0, tlm::END_REQ}}), Contains("END_REQ follows BEGIN_REQ"));
  EXPECT_THAT(broken_by({{0, tlm::BEGIN_RESP}}), Contains("BEGIN_RESP follows the request"));
  EXPECT_THAT(broken_by({{0, tlm::BEGIN_REQ}, {0, tlm::END_RESP}}), Contains("END_RESP follows BEGIN_RESP"));
  EXPECT_THAT(broken_by({{0, tlm::BEGIN_REQ}, {0, tlm::END_REQ}, {0, tlm::BEGIN_REQ}}),
              Contains("a transaction begins once"));
  EXPECT_THAT(broken_by({{0, tlm::BEGIN_REQ}, {1, tlm::BEGIN_REQ}}), Contains("one request at a time"));
  EXPECT_THAT(broken_by({{0, tlm::BEGIN_REQ},
                         {0, tlm::END_REQ},
                         {0, tlm::BEGIN_RESP},
                         {1, tlm::BEGIN_REQ},
                         {1, tlm::BEGIN_RESP}}),
              Contains("one response at a time"));
}

// --- cores, interconnect, memory
// --------------------------------------------------------------------------------

TEST(Protocol, HoldsOnEveryConnection) {
  Soc soc("soc", testing::device(), Granularity::burst);
  simulate([&] {
    soc.run({{.extents = {extent(1 << 30, 256_KiB, trace::Kind::kv, trace::Access::write)},
              .simd_operations = 0}});
    for (const std::int64_t threads : {1, 2, 4}) {
      soc.run(split(0, 6_MiB, threads, 1'000'000));
    }
  });
  EXPECT_THAT(soc.broken_rules(), IsEmpty());
  int requests = 0;
  for (std::size_t i = 0; i < soc.checkers().size(); ++i) {
    const ProtocolRules& rules = soc.checkers()[i]->rules();
    EXPECT_GT(rules.count(tlm::BEGIN_REQ), 0);
    EXPECT_EQ(rules.count(tlm::END_REQ), rules.count(tlm::BEGIN_REQ));
    EXPECT_EQ(rules.count(tlm::BEGIN_RESP), rules.count(tlm::BEGIN_REQ));
    EXPECT_EQ(rules.count(tlm::END_RESP), rules.count(tlm::BEGIN_REQ));
    EXPECT_EQ(rules.open(), 0U);
    requests += i + 1 < soc.checkers().size() ? rules.count(tlm::BEGIN_REQ) : 0;
  }
  EXPECT_EQ(soc.checkers().back()->rules().count(tlm::BEGIN_REQ), requests);
}

// --- a target that takes its time
// -------------------------------------------------------------------------------

/// Ends each request 10 ns after it began and answers 50 ns after that, in the order of the requests.
class SlowTarget : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<SlowTarget> socket{"socket"};

  explicit SlowTarget(const sc_core::sc_module_name& name) : sc_module(name) {
    socket.register_nb_transport_fw(this, &SlowTarget::transport);
    SC_HAS_PROCESS(SlowTarget);
    SC_THREAD(serve);
  }
  [[nodiscard]] const std::vector<std::uint64_t>& addresses() const { return addresses_; }

 private:
  tlm::tlm_sync_enum transport(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                               sc_core::sc_time& /*delay*/) {
    if (phase == tlm::END_RESP) {
      return tlm::TLM_COMPLETED;
    }
    payload.acquire();
    addresses_.push_back(payload.get_address());
    queue_.push_back(&payload);
    arrived_.notify(sc_core::SC_ZERO_TIME);
    return tlm::TLM_ACCEPTED;
  }

  void serve() {
    while (true) {
      while (queue_.empty()) {
        wait(arrived_);
      }
      tlm::tlm_generic_payload& payload = *queue_.front();
      queue_.pop_front();
      wait(10, sc_core::SC_NS);
      call(payload, tlm::END_REQ);
      wait(50, sc_core::SC_NS);
      payload.set_response_status(tlm::TLM_OK_RESPONSE);
      call(payload, tlm::BEGIN_RESP);
      payload.release();
    }
  }

  void call(tlm::tlm_generic_payload& payload, tlm::tlm_phase phase) {
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->nb_transport_bw(payload, phase, delay);
  }

  std::deque<tlm::tlm_generic_payload*> queue_;
  std::vector<std::uint64_t> addresses_;
  sc_core::sc_event arrived_;
};

/// Sends one request after the other, each when the one before was accepted.
class Sender : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<Sender> socket{"socket"};

  Sender(const sc_core::sc_module_name& name, std::uint64_t first, int count)
      : sc_module(name), next_(first), left_(count) {
    socket.register_nb_transport_bw(this, &Sender::respond);
  }
  void send() {
    while (left_ > 0 && !sending_) {
      --left_;
      tlm::tlm_generic_payload& payload = pool_.take(testing_segment(), stream_);
      payload.set_address(next_++);
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      sending_ = socket->nb_transport_fw(payload, phase, delay) == tlm::TLM_ACCEPTED;
    }
  }
  [[nodiscard]] int answered() const { return answered_; }

 private:
  static Segment testing_segment() {
    Segment segment;
    segment.row_bytes = segment.stride = 64_B;
    return segment;
  }

  tlm::tlm_sync_enum respond(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                             sc_core::sc_time& /*delay*/) {
    if (phase == tlm::END_REQ) {
      sending_ = false;
      send();
      return tlm::TLM_ACCEPTED;
    }
    ++answered_;
    payload.release();
    return tlm::TLM_COMPLETED;
  }

  LineStream stream_{StreamWindow{}, LineStream::Pieces{.granule = 4_KiB, .max_lines = 1, .spread = {}}};
  PayloadPool pool_;
  std::uint64_t next_;
  int left_;
  bool sending_ = false;
  int answered_ = 0;
};

TEST(Protocol, MastersTakeTurnsWhenMemoryIsSlow) {
  SlowTarget target("target");
  Interconnect fabric("fabric");
  ProtocolChecker checker("checker");
  fabric.memory.bind(checker.target);
  checker.initiator.bind(target.socket);
  Sender a("a", 1000, 5);
  Sender b("b", 2000, 5);
  ProtocolChecker checker_a("checker_a");
  ProtocolChecker checker_b("checker_b");
  a.socket.bind(checker_a.target);
  checker_a.initiator.bind(fabric.masters);
  b.socket.bind(checker_b.target);
  checker_b.initiator.bind(fabric.masters);
  simulate([&] {
    a.send();
    b.send();
  });
  for (const ProtocolChecker* each : {&checker, &checker_a, &checker_b}) {
    EXPECT_THAT(each->rules().broken(), IsEmpty());
    EXPECT_EQ(each->rules().open(), 0U);
  }
  EXPECT_EQ(a.answered(), 5);
  EXPECT_EQ(b.answered(), 5);
  EXPECT_THAT(target.addresses(),
              ::testing::ElementsAre(1000, 2000, 1001, 2001, 1002, 2002, 1003, 2003, 1004, 2004));
}

// --- payloads
// ---------------------------------------------------------------------------------------------------

TEST(PayloadPool, DescribesTheSegmentAndReusesItsPayloads) {
  PayloadPool pool;
  LineStream stream{StreamWindow{}, LineStream::Pieces{.granule = 4_KiB, .max_lines = 1, .spread = {}}};
  Segment segment;
  segment.address = 4096;
  segment.row_bytes = 256_B;
  segment.stride = 1_KiB;
  segment.rows = 3;
  segment.access = trace::Access::write;
  tlm::tlm_generic_payload& first = pool.take(segment, stream);
  EXPECT_TRUE(first.is_write());
  EXPECT_EQ(first.get_address(), 4096U);
  EXPECT_EQ(first.get_data_length(), 768U);
  EXPECT_EQ(first.get_response_status(), tlm::TLM_INCOMPLETE_RESPONSE);
  EXPECT_EQ(segment_of(first).stream, &stream);
  EXPECT_EQ(segment_of(first).segment.stride, 1_KiB);
  tlm::tlm_generic_payload& second = pool.take(segment, stream);
  EXPECT_NE(&first, &second);
  first.release();
  segment.access = trace::Access::read;
  tlm::tlm_generic_payload& third = pool.take(segment, stream);
  EXPECT_EQ(&first, &third);
  EXPECT_TRUE(third.is_read());
  second.release();
  third.release();
}

}  // namespace
}  // namespace kvsim::model
