// ONNX Runtime through its C API, CPU provider, one thread, outputs allocated before: RotaryEmbedding of ONNX
// (opset 23) with a given table, and Gather, Mul, Add for the embedding.

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "peers.hpp"

namespace posenc_bench {
namespace {

// ---- A model in ONNX's format, written by hand: fields of protocol buffers, as numbered in onnx.proto.

void varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void field(std::string& out, unsigned number, std::int64_t value) {
  varint(out, number << 3);
  varint(out, static_cast<std::uint64_t>(value));
}
void field(std::string& out, unsigned number, const std::string& bytes) {
  varint(out, number << 3 | 2);
  varint(out, bytes.size());
  out += bytes;
}

enum class Type : std::int64_t { f32 = 1, i64 = 7, f16 = 10 };

std::string value_info(const std::string& name, Type type) {  // of any shape
  std::string tensor, wrapped, info;
  field(tensor, 1, static_cast<std::int64_t>(type));
  field(wrapped, 1, tensor);
  field(info, 1, name);
  field(info, 2, wrapped);
  return info;
}

std::string attribute(const std::string& name, std::int64_t value) {
  std::string bytes;
  field(bytes, 1, name);
  field(bytes, 3, value);
  field(bytes, 20, std::int64_t{2});  // an integer
  return bytes;
}

std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::vector<std::string>& attributes = {}) {
  std::string bytes;
  for (const std::string& input : inputs) field(bytes, 1, input);
  field(bytes, 2, output);
  field(bytes, 4, op);
  for (const std::string& a : attributes) field(bytes, 5, a);
  return bytes;
}

struct Port {
  std::string name;
  Type type;
};

std::string model(const std::vector<std::string>& nodes, const std::vector<Port>& inputs,
                  Type output = Type::f32) {
  std::string graph, opset, bytes;
  for (const std::string& n : nodes) field(graph, 1, n);
  field(graph, 2, std::string("peer"));
  for (const Port& input : inputs) field(graph, 11, value_info(input.name, input.type));
  field(graph, 12, value_info("out", output));
  field(opset, 2, std::int64_t{23});
  field(bytes, 1, std::int64_t{10});  // the version of the format
  field(bytes, 7, graph);
  field(bytes, 8, opset);
  return bytes;
}

// ---- The C API.

const OrtApi& api() {
  static const OrtApi* found = OrtGetApiBase()->GetApi(17);
  if (found == nullptr) throw std::runtime_error("this libonnxruntime is older than 1.17");
  return *found;
}

void require(OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = api().GetErrorMessage(status);
  api().ReleaseStatus(status);
  throw std::runtime_error(message);
}

OrtEnv* environment() {
  static OrtEnv* env = [] {
    OrtEnv* created = nullptr;
    require(api().CreateEnv(ORT_LOGGING_LEVEL_ERROR, "posenc_peers", &created));
    return created;
  }();
  return env;
}

class Session {
 public:
  explicit Session(const std::string& bytes) {
    OrtSessionOptions* options = nullptr;
    require(api().CreateSessionOptions(&options));
    require(api().SetIntraOpNumThreads(options, 1));
    OrtStatus* status =
        api().CreateSessionFromArray(environment(), bytes.data(), bytes.size(), options, &session_);
    api().ReleaseSessionOptions(options);
    require(status);
    require(api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory_));
  }
  ~Session() {
    for (OrtValue* value : inputs_) api().ReleaseValue(value);
    if (output_ != nullptr) api().ReleaseValue(output_);
    api().ReleaseMemoryInfo(memory_);
    api().ReleaseSession(session_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void input(const char* name, Type type, const void* data, const std::vector<std::int64_t>& shape) {
    names_.push_back(name);
    inputs_.push_back(value(type, data, shape));
  }
  void output(Type type, void* data, const std::vector<std::int64_t>& shape) {
    output_ = value(type, data, shape);
  }
  void run() {
    const char* out = "out";
    require(api().Run(session_, nullptr, names_.data(), inputs_.data(), inputs_.size(), &out, 1, &output_));
  }

 private:
  OrtValue* value(Type type, const void* data, const std::vector<std::int64_t>& shape) {
    std::size_t bytes = type == Type::f32 ? 4 : type == Type::f16 ? 2 : 8;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    OrtValue* made = nullptr;
    require(api().CreateTensorWithDataAsOrtValue(memory_, const_cast<void*>(data), bytes, shape.data(),
                                                 shape.size(), static_cast<ONNXTensorElementDataType>(type),
                                                 &made));
    return made;
  }

  OrtSession* session_ = nullptr;
  OrtMemoryInfo* memory_ = nullptr;
  std::vector<const char*> names_;
  std::vector<OrtValue*> inputs_;
  OrtValue* output_ = nullptr;
};

Run rotary(const RotationTask& task) {
  const Type type = task.scalar == Scalar::f16 ? Type::f16 : Type::f32;
  const auto session = std::make_shared<Session>(
      model({node("RotaryEmbedding", {"x", "cos", "sin", "at"}, "out",
                  {attribute("interleaved", task.half ? 0 : 1), attribute("num_heads", task.heads)})},
            {{"x", type}, {"cos", type}, {"sin", type}, {"at", Type::i64}}, type));
  const auto at = std::make_shared<std::vector<std::int64_t>>();  // rows of the table
  for (Count row = 0; row < task.batch * task.seq; ++row) at->push_back(row % task.seq);
  const std::vector<std::int64_t> shape{task.batch, task.seq, task.heads * task.dim};
  session->input("x", type, task.x, shape);
  session->input("cos", type, task.own_cos, {task.seq, task.dim / 2});
  session->input("sin", type, task.own_sin, {task.seq, task.dim / 2});
  session->input("at", Type::i64, at->data(), {task.batch, task.seq});
  session->output(type, task.out, shape);
  return [session, at, out = task.out]() -> Result {
    session->run();
    return {out};
  };
}

Run embedding(const EmbeddingTask& task) {
  const auto session = std::make_shared<Session>(
      model({node("Gather", {"table", "ids"}, "rows"), node("Mul", {"rows", "scale"}, "scaled"),
             node("Add", {"scaled", "positions"}, "out")},
            {{"table", Type::f32}, {"ids", Type::i64}, {"scale", Type::f32}, {"positions", Type::f32}}));
  const auto scale = std::make_shared<float>(task.scale);
  session->input("table", Type::f32, task.table, {task.vocabulary, task.dim});
  session->input("ids", Type::i64, task.long_ids, {task.batch, task.seq});
  session->input("scale", Type::f32, scale.get(), {1});
  session->input("positions", Type::f32, task.positions, {task.seq, task.dim});
  session->output(Type::f32, task.out, {task.batch, task.seq, task.dim});
  return [session, scale, out = task.out]() -> Result {
    session->run();
    return {out};
  };
}

}  // namespace

void add_onnxruntime() {
  add_peer("onnxruntime_table", 1e-6, Pairs::both, [](const RotationTask& task) { return rotary(task); },
           {Scalar::f32, Scalar::f16});
  add_peer("onnxruntime", 1e-5, [](const EmbeddingTask& task) { return embedding(task); });
}

}  // namespace posenc_bench
