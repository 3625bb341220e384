/* A hipDNN engine plugin in one C file: no SDK, no FlatBuffers library.
 *
 * It runs graphs of one pointwise node, ADD or RELU_FWD, on packed f32 tensors of equal shape in
 * host memory, and declines everything else. It reads both generations of the graph's wire.
 *
 *     cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wl,--version-script=exports.map \
 *        -o libc_plugin.so c_plugin.c
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where buffers must lie, readable without loading the library: an ELF note. */
__attribute__((section(".note.dnn_assay"), used, aligned(4))) static const struct { uint32_t owner_size, text_size, type; char owner[12], text[12]; } memory_note = {10, 11, 1, "DNN_ASSAY", "memory=host"};

/* ---- The ABI ------------------------------------------------------------------------------ */

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, BAD_PARAM = 1, INVALID_VALUE = 2, ALLOC_FAILED = 4, NOT_APPLICABLE = 5 };
enum { TYPE_ENGINE = 1 };
typedef int status_t; /* a C enum: 4 bytes */

typedef struct { const void *ptr; size_t size; } const_data;
typedef struct { int64_t uid; void *ptr; } device_buffer;

static const char ENGINE_NAME[] = "DNN_ASSAY_C_EXAMPLE_ENGINE";

/* An engine's id is FNV-1a 64 of its name. */
static int64_t engine_id(void) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char *c = ENGINE_NAME; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001B3u;
    return (int64_t)hash;
}

static _Thread_local char last_error[2048];

static status_t fail(status_t status, const char *text) {
    snprintf(last_error, sizeof last_error, "%s", text);
    return status;
}

/* ---- FlatBuffers, read with every access checked ------------------------------------------- */

typedef struct { const uint8_t *data; size_t size; bool bad; } reader;
typedef struct { size_t at, vtable; uint16_t vtable_size; } table;

static uint64_t number(reader *r, size_t at, size_t bytes) {
    uint64_t value = 0;
    if (at > r->size || r->size - at < bytes) { r->bad = true; return 0; }
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)r->data[at + i] << (8 * i);
    return value;
}

static table table_at(reader *r, size_t at) {
    int64_t vtable = (int64_t)at - (int32_t)number(r, at, 4);
    if (vtable < 0) r->bad = true;
    if (r->bad) return (table){0, 0, 0};
    return (table){at, (size_t)vtable, (uint16_t)number(r, (size_t)vtable, 2)};
}

static table root(reader *r) { return table_at(r, (size_t)number(r, 0, 4)); }

/* Where field `id` lies; 0 if it is absent. */
static size_t field(reader *r, table t, int id) {
    size_t slot = 4 + 2 * (size_t)id;
    if (slot + 2 > t.vtable_size) return 0;
    uint16_t offset = (uint16_t)number(r, t.vtable + slot, 2);
    return offset ? t.at + offset : 0;
}

static uint64_t scalar(reader *r, table t, int id, size_t bytes, uint64_t absent) {
    size_t at = field(r, t, id);
    return at ? number(r, at, bytes) : absent;
}

/* Where the offset in field `id` leads; 0 if it is absent. */
static size_t target(reader *r, table t, int id) {
    size_t at = field(r, t, id);
    return at ? at + (size_t)number(r, at, 4) : 0;
}

static uint32_t length(reader *r, size_t vector) { return vector ? (uint32_t)number(r, vector, 4) : 0; }

static table element(reader *r, size_t vector, uint32_t i) {
    size_t at = vector + 4 + 4 * (size_t)i;
    return table_at(r, at + (size_t)number(r, at, 4));
}

/* ---- What a graph asks for ----------------------------------------------------------------- */

enum { MODE_ADD = 2, MODE_RELU_FWD = 34, TYPE_FLOAT = 1, TAG_POINTWISE = 2 };

typedef struct { int mode; int64_t in[2], out; size_t count; } job;

/* The element count of tensor `uid` if it is packed f32 with a buffer of its own, else 0.
 * `*shape` becomes where its extents lie; given one already, the extents must be the same. */
static size_t packed_float(reader *r, table graph, int64_t uid, size_t *shape) {
    size_t tensors = target(r, graph, 4);
    for (uint32_t i = 0; i < length(r, tensors) && !r->bad; i++) {
        table t = element(r, tensors, i);
        if ((int64_t)scalar(r, t, 0, 8, 0) != uid) continue;
        bool plain = scalar(r, t, 2, 1, 0) == TYPE_FLOAT && !scalar(r, t, 5, 1, 0) /* virtual */
            && !scalar(r, t, 6, 1, 0) /* value */ && !scalar(r, t, 8, 1, 0) /* run-time scalar */
            && !field(r, t, 9) /* ragged */;
        size_t strides = target(r, t, 3), dims = target(r, t, 4);
        uint32_t rank = length(r, dims);
        if (!plain || rank == 0 || rank > 8 || length(r, strides) != rank) return 0;
        if (*shape && length(r, *shape) != rank) return 0;
        size_t count = 1;
        for (uint32_t axis = rank; axis-- > 0;) {
            uint64_t dim = number(r, dims + 4 + 8 * (size_t)axis, 8);
            uint64_t stride = number(r, strides + 4 + 8 * (size_t)axis, 8);
            if (dim == 0 || dim > (uint64_t)1 << 40 || count > ((uint64_t)1 << 40) / dim) return 0;
            if (dim != 1 && stride != count) return 0;
            if (*shape && number(r, *shape + 4 + 8 * (size_t)axis, 8) != dim) return 0;
            count *= dim;
        }
        *shape = dims;
        return r->bad ? 0 : count;
    }
    return 0;
}

/* NULL if the graph can be run, else why not. */
static const char *understand(const_data graph_bytes, job *out) {
    reader reading = {graph_bytes.ptr, graph_bytes.size, false}, *r = &reading;
    table graph = root(r);
    size_t nodes = target(r, graph, 5);
    if (r->bad) return "the graph is malformed";
    if (length(r, nodes) != 1) return "only graphs of one node";
#ifndef TAKES_OVERRIDES /* without ExecuteOpGraphWithOverrides, shapes stay as they were planned */
    if (scalar(r, graph, 7, 1, 0)) return "no overridable shapes";
#endif
    table node = element(r, nodes, 0);
    /* The current Node has compute_data_type as field 1; that of 2025-11 has no such field. */
    int tag = node.vtable_size >= 12 ? 2 : 1;
    if (scalar(r, node, tag, 1, 0) != TAG_POINTWISE) return "only pointwise nodes";
    size_t attributes_at = target(r, node, tag + 1);
    if (!attributes_at) return "the node has no attributes";
    table a = table_at(r, attributes_at);
    int mode = (int)scalar(r, a, 0, 1, 0);
    if (mode != MODE_ADD && mode != MODE_RELU_FWD) return "only ADD and RELU_FWD";
    if (field(r, a, 1) || field(r, a, 2) || field(r, a, 3)) return "no clips, no slope";
    bool binary = field(r, a, 6) != 0;
    if (binary != (mode == MODE_ADD) || field(r, a, 7)) return "a wrong number of operands";
    *out = (job){mode, {(int64_t)scalar(r, a, 5, 8, 0), 0}, (int64_t)scalar(r, a, 8, 8, 0), 0};
    out->in[1] = binary ? (int64_t)scalar(r, a, 6, 8, 0) : out->in[0];
    size_t shape = 0;
    out->count = packed_float(r, graph, out->out, &shape);
    bool alike = out->count && packed_float(r, graph, out->in[0], &shape) == out->count
        && packed_float(r, graph, out->in[1], &shape) == out->count;
    if (r->bad) return "the graph is malformed";
    return alike ? NULL : "only packed f32 tensors of equal shape";
}

/* ---- The exported functions ---------------------------------------------------------------- */

typedef struct { uint32_t magic; } handle;
typedef struct { uint32_t magic; job work; } context;
enum { HANDLE_MAGIC = 0x48434E44, CONTEXT_MAGIC = 0x43434E44 };

static bool is_handle(const handle *h) { return h && h->magic == HANDLE_MAGIC; }
static bool is_context(const context *c) { return c && c->magic == CONTEXT_MAGIC; }
static bool has_bytes(const const_data *d) { return d && d->ptr && d->size; }

EXPORT status_t hipdnnPluginGetName(const char **name) {
    if (!name) return fail(BAD_PARAM, "name is null");
    *name = "c-example";
    return SUCCESS;
}

EXPORT status_t hipdnnPluginGetVersion(const char **version) {
    if (!version) return fail(BAD_PARAM, "version is null");
    *version = "0.1.0";
    return SUCCESS;
}

EXPORT status_t hipdnnPluginGetApiVersion(const char **version) {
    if (!version) return fail(BAD_PARAM, "version is null");
    *version = "1.4.0";
    return SUCCESS;
}

EXPORT status_t hipdnnPluginGetType(int *type) {
    if (!type) return fail(BAD_PARAM, "type is null");
    *type = TYPE_ENGINE;
    return SUCCESS;
}

EXPORT void hipdnnPluginGetLastErrorString(const char **text) {
    if (text) *text = last_error;
}

EXPORT status_t hipdnnEnginePluginGetAllEngineIds(int64_t *ids, uint32_t max, uint32_t *count) {
    if (!count || (!ids && max)) return fail(BAD_PARAM, "an argument is null");
    *count = ids && !max ? 0 : 1;
    if (max) ids[0] = engine_id();
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetEngineName(int64_t id, const char **name) {
    if (!name) return fail(BAD_PARAM, "name is null");
    if (id != engine_id()) return fail(INVALID_VALUE, "no such engine");
    *name = ENGINE_NAME;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginCreate(handle **out) {
    if (!out) return fail(BAD_PARAM, "handle is null");
    handle *h = malloc(sizeof *h);
    if (!h) return fail(ALLOC_FAILED, "out of memory");
    h->magic = HANDLE_MAGIC;
    *out = h;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroy(handle *h) {
    if (!is_handle(h)) return fail(BAD_PARAM, "not a handle");
    h->magic = 0;
    free(h);
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginSetStream(handle *h, void *stream) {
    (void)stream; /* host memory: nothing is asynchronous */
    return is_handle(h) ? SUCCESS : fail(BAD_PARAM, "not a handle");
}

EXPORT status_t hipdnnEnginePluginGetApplicableEngineIds(handle *h, const const_data *graph,
                                                         int64_t *ids, uint32_t max,
                                                         uint32_t *count) {
    if (!is_handle(h) || !has_bytes(graph) || !count || (!ids && max))
        return fail(BAD_PARAM, "an argument is null or empty");
    job work;
    *count = understand(*graph, &work) ? 0 : 1;
    if (*count && max) ids[0] = engine_id();
    return SUCCESS;
}

/* EngineDetails with the engine's id as its only field: root offset, vtable, table. */
static const uint8_t DETAILS[32] = {
    16, 0, 0, 0,                        /* the table is at 16 */
    6, 0, 16, 0, 8, 0,                  /* vtable at 4: 6 bytes; table of 16; field 0 at 8 */
    0, 0, 0, 0, 0, 0,                   /* padding */
    12, 0, 0, 0, 0, 0, 0, 0,            /* the vtable is 12 bytes before the table */
};                                      /* the id, 8 bytes, at 24 */

EXPORT status_t hipdnnEnginePluginGetEngineDetails(handle *h, int64_t id, const const_data *graph,
                                                   const_data *details) {
    if (!is_handle(h) || !has_bytes(graph) || !details)
        return fail(BAD_PARAM, "an argument is null or empty");
    if (id != engine_id()) return fail(INVALID_VALUE, "no such engine");
    uint8_t *bytes = malloc(sizeof DETAILS);
    if (!bytes) return fail(ALLOC_FAILED, "out of memory");
    memcpy(bytes, DETAILS, sizeof DETAILS);
    for (int i = 0; i < 8; i++) bytes[24 + i] = (uint8_t)((uint64_t)id >> (8 * i));
    *details = (const_data){bytes, sizeof DETAILS};
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroyEngineDetails(handle *h, const_data *details) {
    if (!is_handle(h) || !details || !details->ptr)
        return fail(BAD_PARAM, "an argument is null");
    free((void *)details->ptr);
    *details = (const_data){NULL, 0};
    return SUCCESS;
}

static status_t plan(const const_data *config, const const_data *graph, job *work) {
    reader reading = {config->ptr, config->size, false};
    int64_t id = (int64_t)scalar(&reading, root(&reading), 0, 8, 0);
    if (reading.bad) return fail(BAD_PARAM, "the engine configuration is malformed");
    if (id != engine_id()) return fail(INVALID_VALUE, "no such engine");
    const char *why_not = understand(*graph, work);
    return why_not ? fail(NOT_APPLICABLE, why_not) : SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetWorkspaceSize(handle *h, const const_data *config,
                                                   const const_data *graph, size_t *size) {
    if (!is_handle(h) || !has_bytes(config) || !has_bytes(graph) || !size)
        return fail(BAD_PARAM, "an argument is null or empty");
    job work;
    *size = 0;
    return plan(config, graph, &work);
}

EXPORT status_t hipdnnEnginePluginCreateExecutionContext(handle *h, const const_data *config,
                                                         const const_data *graph, context **out) {
    if (!is_handle(h) || !has_bytes(config) || !has_bytes(graph) || !out)
        return fail(BAD_PARAM, "an argument is null or empty");
    job work;
    status_t status = plan(config, graph, &work);
    if (status != SUCCESS) return status;
    context *c = malloc(sizeof *c);
    if (!c) return fail(ALLOC_FAILED, "out of memory");
    *c = (context){CONTEXT_MAGIC, work};
    *out = c;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroyExecutionContext(handle *h, context *c) {
    if (!is_handle(h) || !is_context(c)) return fail(BAD_PARAM, "not a handle, or not a context");
    c->magic = 0;
    free(c);
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(handle *h, context *c,
                                                                       size_t *size) {
    if (!is_handle(h) || !is_context(c) || !size)
        return fail(BAD_PARAM, "an argument is null");
    *size = 0;
    return SUCCESS;
}

static void *find(const device_buffer *buffers, uint32_t count, int64_t uid) {
    for (uint32_t i = 0; i < count; i++)
        if (buffers[i].uid == uid) return buffers[i].ptr;
    return NULL;
}

EXPORT status_t hipdnnEnginePluginExecuteOpGraph(handle *h, context *c, void *workspace,
                                                 const device_buffer *buffers, uint32_t count) {
    (void)workspace;
    if (!is_handle(h) || !is_context(c) || !buffers)
        return fail(BAD_PARAM, "an argument is null");
    const float *a = find(buffers, count, c->work.in[0]);
    const float *b = find(buffers, count, c->work.in[1]);
    float *out = find(buffers, count, c->work.out);
    if (!a || !b || !out) return fail(BAD_PARAM, "a tensor has no buffer");
    if (c->work.mode == MODE_ADD)
        for (size_t i = 0; i < c->work.count; i++) out[i] = a[i] + b[i];
    else /* hipDNN's formula with slope and lower clip 0: NaN passes, and -Inf becomes NaN */
        for (size_t i = 0; i < c->work.count; i++) out[i] = a[i] <= 0 ? 0 * a[i] + 0 : a[i];
    return SUCCESS;
}
