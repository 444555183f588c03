#include <string>

#include <benchmark/benchmark.h>

#include "wire/frame.hpp"

// Bytes to messages and back: what every request and every answer goes through once.
namespace latchkey::bench {
namespace {

const std::string kDirectory = "/locks/invoices";
const std::string kName = "_c_6b1d5a4e-8c53-4a0b-9a57-0f3d2c1b7e11-lock-0000000042";

wire::Create create_of_a_lock() {
  wire::WireAcl open;
  open.permissions = 31;
  open.scheme = "world";
  open.id = "anyone";
  wire::Create request;
  request.path = kDirectory + '/' + kName;
  request.data = std::string(60, 'x');
  request.acl = {open};
  request.mode = wire::CreateMode::kEphemeralSequential;
  return request;
}

void encode_create(benchmark::State& state) {
  const wire::Create request = create_of_a_lock();
  std::string bytes;
  for (auto step : state) {
    static_cast<void>(step);
    bytes.clear();
    wire::append_frame(bytes, wire::RequestHeader{1, wire::Op::kCreate2}, request);
    benchmark::DoNotOptimize(bytes.data());
  }
}
BENCHMARK(encode_create);

void decode_create(benchmark::State& state) {
  std::string bytes;
  wire::Writer writer(bytes);
  writer(create_of_a_lock());
  for (auto step : state) {
    static_cast<void>(step);
    benchmark::DoNotOptimize(wire::decode<wire::Create>(bytes));
  }
}
BENCHMARK(decode_create);

void decode_children(benchmark::State& state) {
  wire::ChildrenReply reply;
  reply.children.assign(static_cast<std::size_t>(state.range(0)), kName);
  std::string bytes;
  wire::Writer writer(bytes);
  writer(reply);
  for (auto step : state) {
    static_cast<void>(step);
    benchmark::DoNotOptimize(wire::decode<wire::ChildrenReply>(bytes));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(decode_children)->Arg(1)->Arg(100)->Arg(3'000);

void split_frames(benchmark::State& state) {
  std::string bytes;
  for (int i = 0; i < 16; ++i) {
    wire::append_frame(bytes, wire::RequestHeader{i, wire::Op::kCreate2}, create_of_a_lock());
  }
  wire::FrameSplitter splitter(1U << 20U);
  for (auto step : state) {
    static_cast<void>(step);
    splitter.feed(bytes);
    while (const auto frame = splitter.next()) benchmark::DoNotOptimize(frame->data());
  }
  state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(split_frames);

}  // namespace
}  // namespace latchkey::bench
