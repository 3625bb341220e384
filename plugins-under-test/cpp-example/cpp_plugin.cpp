// A hipDNN engine plugin in one C++17 file, without SDK and FlatBuffers library.
//
// It runs graphs of one node on packed f32 tensors in host memory: pointwise ADD, MUL and
// RELU_FWD of equal shapes, and two-dimensional forward convolution with groups. Everything else
// is declined. No exception leaves the library.
//
// README.md has the line that builds it.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace {

// Where buffers must lie, readable without loading the library: an ELF note.
__attribute__((section(".note.dnn_assay"), used, aligned(4))) const struct {
    std::uint32_t owner_size, text_size, type;
    char owner[12], text[12];
} memory_note = {10, 11, 1, "DNN_ASSAY", "memory=host"};

// ---- The ABI -------------------------------------------------------------------------------

enum Status : int {
    Success = 0, BadParam = 1, InvalidValue = 2, InternalError = 3, AllocFailed = 4, NotApplicable = 5
};

struct ConstData { const void *ptr; std::size_t size; };
struct DeviceBuffer { std::int64_t uid; void *ptr; };

constexpr char engine_name[] = "DNN_ASSAY_CPP_EXAMPLE_ENGINE";

// An engine's id is FNV-1a 64 of its name.
std::int64_t engine_id() {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const char *c = engine_name; *c; ++c)
        hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001B3u;
    return static_cast<std::int64_t>(hash);
}

// A plain array: an object with a destructor would keep the library mapped after dlclose.
thread_local char last_error[2048];

struct Error : std::runtime_error {
    Status status;
    Error(Status s, const std::string &text) : std::runtime_error(text), status(s) {}
};

void require(bool condition, const char *text, Status status = BadParam) {
    if (!condition) throw Error(status, text);
}

int fail(Status status, const char *text) noexcept {
    std::snprintf(last_error, sizeof last_error, "%s", text);
    return status;
}

// Runs an entry's body. Exceptions end here: none may cross the C boundary.
template <typename Body> int guarded(Body body) noexcept {
    try {
        body();
        return Success;
    } catch (const Error &error) {
        return fail(error.status, error.what());
    } catch (const std::bad_alloc &) {
        return fail(AllocFailed, "out of memory");
    } catch (const std::exception &error) {
        return fail(InternalError, error.what());
    } catch (...) {
        return fail(InternalError, "an unknown exception");
    }
}

// ---- FlatBuffers, read with every access checked --------------------------------------------

class Buffer {
  public:
    explicit Buffer(const ConstData *data) {
        require(data && data->ptr && data->size, "a buffer is null or empty");
        bytes = static_cast<const std::uint8_t *>(data->ptr);
        size = data->size;
    }
    template <typename T> T read(std::size_t at) const {
        require(at <= size && size - at >= sizeof(T), "a buffer is malformed");
        T value;
        std::memcpy(&value, bytes + at, sizeof value);
        return value;
    }
    // Where the 32-bit offset at `at` leads.
    std::size_t follow(std::size_t at) const { return at + read<std::uint32_t>(at); }

  private:
    const std::uint8_t *bytes;
    std::size_t size;
};

class Table {
  public:
    Table(const Buffer &b, std::size_t position) : buffer(&b), at(position) {
        auto place = static_cast<std::int64_t>(at) - b.read<std::int32_t>(at);
        require(place >= 0, "a buffer is malformed");
        vtable = static_cast<std::size_t>(place);
        vtable_size = b.read<std::uint16_t>(vtable);
    }
    static Table root(const Buffer &b) { return {b, b.follow(0)}; }

    bool has(int id) const { return field(id) != 0; }
    template <typename T> T get(int id, T absent = T()) const {
        std::size_t place = field(id);
        return place ? buffer->read<T>(place) : absent;
    }
    Table table(int id) const {
        require(has(id), "a table is missing");
        return {*buffer, buffer->follow(field(id))};
    }
    std::vector<Table> tables(int id) const {
        std::vector<Table> all;
        each(id, 4, [&](std::size_t place) { all.emplace_back(*buffer, buffer->follow(place)); });
        return all;
    }
    std::vector<std::int64_t> numbers(int id) const {
        std::vector<std::int64_t> all;
        each(id, 8, [&](std::size_t place) { all.push_back(buffer->read<std::int64_t>(place)); });
        return all;
    }
    unsigned size() const { return vtable_size; }

  private:
    template <typename Visit> void each(int id, std::size_t step, Visit visit) const {
        if (!has(id)) return;
        std::size_t vector = buffer->follow(field(id));
        auto count = buffer->read<std::uint32_t>(vector);
        for (std::uint32_t i = 0; i < count; ++i) visit(vector + 4 + step * i);
    }
    std::size_t field(int id) const {
        std::size_t slot = 4 + 2 * static_cast<std::size_t>(id);
        if (slot + 2 > vtable_size) return 0;
        auto offset = buffer->read<std::uint16_t>(vtable + slot);
        return offset ? at + offset : 0;
    }
    const Buffer *buffer;
    std::size_t at, vtable = 0;
    unsigned vtable_size = 0;
};

// ---- What a graph asks for ------------------------------------------------------------------

using Shape = std::vector<std::int64_t>;

struct Pointwise {
    int mode;
    std::int64_t a, b, out;
    std::size_t count;
};

struct Convolution {
    std::int64_t x, w, y;
    Shape image, filter, output, pre, stride, dilation;
};

using Job = std::variant<Pointwise, Convolution>;

constexpr int pointwise_tag = 2, convolution_tag = 5;
constexpr int mode_add = 2, mode_mul = 30, mode_relu = 34;

void want(bool condition, const char *otherwise) { require(condition, otherwise, NotApplicable); }

// The extents of a packed f32 tensor that has a buffer of its own.
Shape packed_shape(const Table &graph, std::int64_t uid) {
    for (const Table &tensor : graph.tables(4)) {
        if (tensor.get<std::int64_t>(0) != uid) continue;
        bool plain = tensor.get<std::int8_t>(2) == 1 && !tensor.get<std::uint8_t>(5)
            && !tensor.get<std::uint8_t>(6) && !tensor.get<std::uint8_t>(8) && !tensor.has(9);
        want(plain, "only plain f32 tensors");
        Shape strides = tensor.numbers(3), dims = tensor.numbers(4);
        want(!dims.empty() && dims.size() == strides.size(), "a tensor without shape");
        std::int64_t count = 1;
        for (std::size_t axis = dims.size(); axis-- > 0;) {
            want(dims[axis] > 0 && dims[axis] <= (std::int64_t(1) << 40) / count, "a strange extent");
            want(dims[axis] == 1 || strides[axis] == count, "only packed tensors");
            count *= dims[axis];
        }
        return dims;
    }
    throw Error(NotApplicable, "a tensor is missing");
}

Job pointwise(const Table &graph, const Table &node) {
    int mode = node.get<std::int8_t>(0);
    want(mode == mode_add || mode == mode_mul || mode == mode_relu, "only ADD, MUL and RELU_FWD");
    want(!node.has(1) && !node.has(2) && !node.has(3), "no clips, no slope");
    bool binary = node.has(6);
    want(binary == (mode != mode_relu) && !node.has(7), "a wrong number of operands");
    Pointwise job{mode, node.get<std::int64_t>(5), 0, node.get<std::int64_t>(8), 0};
    job.b = binary ? node.get<std::int64_t>(6) : job.a;
    Shape out = packed_shape(graph, job.out);
    want(packed_shape(graph, job.a) == out && packed_shape(graph, job.b) == out, "no broadcasting");
    job.count = std::accumulate(out.begin(), out.end(), std::size_t(1), std::multiplies<>());
    return job;
}

Job convolution(const Table &graph, const Table &node) {
    Convolution job{};
    job.x = node.get<std::int64_t>(0), job.w = node.get<std::int64_t>(1);
    job.y = node.get<std::int64_t>(2);
    Shape post = node.numbers(4);
    job.pre = node.numbers(3), job.stride = node.numbers(5), job.dilation = node.numbers(6);
    want(node.get<std::int8_t>(7) == 2, "only cross-correlation");
    job.image = packed_shape(graph, job.x), job.filter = packed_shape(graph, job.w);
    job.output = packed_shape(graph, job.y);
    want(job.image.size() == 4 && job.filter.size() == 4 && job.output.size() == 4, "only two axes");
    for (const Shape *v : {&job.pre, &post, &job.stride, &job.dilation}) {
        want(v->size() == 2, "a parameter per axis");
        for (std::int64_t value : *v) want(value >= 0 && value < 1 << 20, "a strange parameter");
    }
    want(job.image[1] % job.filter[1] == 0, "channels that groups do not divide");
    want(job.filter[0] % (job.image[1] / job.filter[1]) == 0, "filters that groups do not divide");
    want(job.output[0] == job.image[0] && job.output[1] == job.filter[0], "another output");
    for (int axis = 0; axis < 2; ++axis) {
        want(job.stride[axis] > 0 && job.dilation[axis] > 0, "a strange parameter");
        std::int64_t reach = (job.filter[axis + 2] - 1) * job.dilation[axis] + 1;
        std::int64_t free = job.image[axis + 2] + job.pre[axis] + post[axis] - reach;
        want(free >= 0 && free / job.stride[axis] + 1 == job.output[axis + 2], "another output size");
    }
    return job;
}

// Throws NotApplicable for a graph that cannot be run.
Job understand(const ConstData *bytes) {
    Buffer buffer(bytes);
    Table graph = Table::root(buffer);
    std::vector<Table> nodes = graph.tables(5);
    want(nodes.size() == 1, "only graphs of one node");
    // Without ExecuteOpGraphWithOverrides, shapes stay as they were planned.
    want(!graph.get<std::uint8_t>(7), "no overridable shapes");
    // The current Node has compute_data_type as field 1; that of 2025-11 has no such field.
    int tag = nodes[0].size() >= 12 ? 2 : 1;
    switch (nodes[0].get<std::uint8_t>(tag)) {
    case pointwise_tag: return pointwise(graph, nodes[0].table(tag + 1));
    case convolution_tag: return convolution(graph, nodes[0].table(tag + 1));
    default: throw Error(NotApplicable, "only pointwise and forward convolution nodes");
    }
}

Job plan(const ConstData *config, const ConstData *graph) {
    Buffer buffer(config);
    require(Table::root(buffer).get<std::int64_t>(0) == engine_id(), "no such engine", InvalidValue);
    return understand(graph);
}

// ---- Kernels --------------------------------------------------------------------------------

struct Buffers {
    const DeviceBuffer *entries;
    std::uint32_t count;
    float *operator[](std::int64_t uid) const {
        for (std::uint32_t i = 0; i < count; ++i)
            if (entries[i].uid == uid && entries[i].ptr) return static_cast<float *>(entries[i].ptr);
        throw Error(BadParam, "a tensor has no buffer");
    }
};

void execute(const Pointwise &job, const Buffers &buffers) {
    const float *a = buffers[job.a], *b = buffers[job.b];
    float *out = buffers[job.out];
    for (std::size_t i = 0; i < job.count; ++i)
        out[i] = job.mode == mode_add ? a[i] + b[i]
               : job.mode == mode_mul ? a[i] * b[i]
               : a[i] <= 0 ? 0 * a[i] + 0 : a[i]; // hipDNN's formula: NaN passes, -Inf is NaN
}

// One output element: channels, then taps, in order.
float element(const Convolution &job, const float *x, const float *w, std::int64_t n,
              std::int64_t k, std::int64_t oh, std::int64_t ow) {
    const Shape &image = job.image, &filter = job.filter;
    std::int64_t groups = image[1] / filter[1], group = k / (filter[0] / groups);
    float sum = 0;
    for (std::int64_t c = 0; c < filter[1]; ++c)
        for (std::int64_t r = 0; r < filter[2]; ++r)
            for (std::int64_t s = 0; s < filter[3]; ++s) {
                std::int64_t h = oh * job.stride[0] + r * job.dilation[0] - job.pre[0];
                std::int64_t v = ow * job.stride[1] + s * job.dilation[1] - job.pre[1];
                if (h < 0 || h >= image[2] || v < 0 || v >= image[3]) continue;
                std::int64_t channel = n * image[1] + group * filter[1] + c;
                sum += x[(channel * image[2] + h) * image[3] + v]
                     * w[((k * filter[1] + c) * filter[2] + r) * filter[3] + s];
            }
    return sum;
}

void execute(const Convolution &job, const Buffers &buffers) {
    const float *x = buffers[job.x], *w = buffers[job.w];
    float *y = buffers[job.y];
    for (std::int64_t n = 0; n < job.output[0]; ++n)
        for (std::int64_t k = 0; k < job.output[1]; ++k)
            for (std::int64_t h = 0; h < job.output[2]; ++h)
                for (std::int64_t v = 0; v < job.output[3]; ++v)
                    *y++ = element(job, x, w, n, k, h, v);
}

struct Handle { std::uint32_t magic = 0x48434E44; };
struct Context { std::uint32_t magic = 0x43434E44; Job job; };

void check(const Handle *handle) {
    require(handle && handle->magic == Handle().magic, "not a handle");
}

void check(const Context *context) {
    require(context && context->magic == 0x43434E44, "not an execution context");
}

// EngineDetails with the engine's id as its only field, as FlatBuffers lays it out.
std::unique_ptr<std::uint8_t[]> details(std::size_t &size) {
    std::array<std::uint8_t, 32> bytes = {
        16, 0, 0, 0,             // the table is at 16
        6, 0, 16, 0, 8, 0,       // vtable at 4: 6 bytes; table of 16; field 0 at 8
        0, 0, 0, 0, 0, 0,        // padding
        12, 0, 0, 0, 0, 0, 0, 0, // the vtable is 12 bytes before the table; the id follows
    };
    std::int64_t id = engine_id();
    std::memcpy(bytes.data() + 24, &id, sizeof id);
    size = bytes.size();
    std::unique_ptr<std::uint8_t[]> copy(new std::uint8_t[size]);
    std::memcpy(copy.get(), bytes.data(), size);
    return copy;
}

template <typename T> void put(T *to, T value) {
    require(to, "an out argument is null");
    *to = value;
}

} // namespace

// ---- The exported functions -----------------------------------------------------------------

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int hipdnnPluginGetName(const char **name) {
    return guarded([&] { put<const char *>(name, "cpp-example"); });
}

EXPORT int hipdnnPluginGetVersion(const char **version) {
    return guarded([&] { put<const char *>(version, "0.1.0"); });
}

EXPORT int hipdnnPluginGetApiVersion(const char **version) {
    return guarded([&] { put<const char *>(version, "1.4.0"); });
}

EXPORT int hipdnnPluginGetType(int *type) {
    return guarded([&] { put(type, 1); });
}

EXPORT void hipdnnPluginGetLastErrorString(const char **text) {
    if (text) *text = last_error;
}

EXPORT int hipdnnEnginePluginGetAllEngineIds(std::int64_t *ids, std::uint32_t max,
                                             std::uint32_t *count) {
    return guarded([&] {
        require(count && (ids || !max), "an argument is null");
        if (max) ids[0] = engine_id();
        *count = ids && !max ? 0 : 1;
    });
}

EXPORT int hipdnnEnginePluginGetEngineName(std::int64_t id, const char **name) {
    return guarded([&] {
        require(id == engine_id(), "no such engine", InvalidValue);
        put<const char *>(name, engine_name);
    });
}

EXPORT int hipdnnEnginePluginCreate(Handle **handle) {
    return guarded([&] {
        require(handle, "handle is null");
        *handle = new Handle;
    });
}

EXPORT int hipdnnEnginePluginDestroy(Handle *handle) {
    return guarded([&] {
        check(handle);
        handle->magic = 0;
        delete handle;
    });
}

EXPORT int hipdnnEnginePluginSetStream(Handle *handle, void *) {
    return guarded([&] { check(handle); }); // host memory: nothing is asynchronous
}

EXPORT int hipdnnEnginePluginGetApplicableEngineIds(Handle *handle, const ConstData *graph,
                                                    std::int64_t *ids, std::uint32_t max,
                                                    std::uint32_t *count) {
    return guarded([&] {
        check(handle);
        require(count && (ids || !max), "an argument is null");
        try {
            understand(graph);
            *count = 1;
        } catch (const Error &error) {
            if (error.status != NotApplicable) throw;
            *count = 0;
        }
        if (*count && max) ids[0] = engine_id();
    });
}

EXPORT int hipdnnEnginePluginGetEngineDetails(Handle *handle, std::int64_t id,
                                              const ConstData *graph, ConstData *out) {
    return guarded([&] {
        check(handle);
        require(out, "engine_details is null");
        require(id == engine_id(), "no such engine", InvalidValue);
        understand(graph);
        std::size_t size = 0;
        const void *bytes = details(size).release();
        *out = {bytes, size};
    });
}

EXPORT int hipdnnEnginePluginDestroyEngineDetails(Handle *handle, ConstData *data) {
    return guarded([&] {
        check(handle);
        require(data && data->ptr, "engine_details is null");
        delete[] static_cast<const std::uint8_t *>(data->ptr);
        *data = {nullptr, 0};
    });
}

EXPORT int hipdnnEnginePluginGetWorkspaceSize(Handle *handle, const ConstData *config,
                                              const ConstData *graph, std::size_t *size) {
    return guarded([&] {
        check(handle);
        plan(config, graph);
        put<std::size_t>(size, 0);
    });
}

EXPORT int hipdnnEnginePluginCreateExecutionContext(Handle *handle, const ConstData *config,
                                                    const ConstData *graph, Context **context) {
    return guarded([&] {
        check(handle);
        require(context, "execution_context is null");
        auto planned = std::make_unique<Context>();
        planned->job = plan(config, graph);
        *context = planned.release();
    });
}

EXPORT int hipdnnEnginePluginDestroyExecutionContext(Handle *handle, Context *context) {
    return guarded([&] {
        check(handle);
        check(context);
        context->magic = 0;
        delete context;
    });
}

EXPORT int hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(Handle *handle, Context *context,
                                                                  std::size_t *size) {
    return guarded([&] {
        check(handle);
        check(context);
        put<std::size_t>(size, 0);
    });
}

EXPORT int hipdnnEnginePluginExecuteOpGraph(Handle *handle, Context *context, void *,
                                            const DeviceBuffer *buffers, std::uint32_t count) {
    return guarded([&] {
        check(handle);
        check(context);
        require(buffers, "device_buffers is null");
        std::visit([&](const auto &job) { execute(job, Buffers{buffers, count}); }, context->job);
    });
}
