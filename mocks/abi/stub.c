/* A well-behaved plugin that computes nothing, as hipDNN's own test plugins: it takes every graph,
 * asks for a workspace of another size before the plan than after it, and executes without effect.
 *
 *   -DNOV2025   the generation of November 2025: no API version, no log level, no engine names,
 *               details with the id only, engine id -2
 *   -DRETIRED_SAVE_HOOK   contexts are saved by the older function only, as hipDNN's own test plugin of that
 *               name does
 *   else        named engine, API 1.4.0, contexts as nine bytes (a marker and the engine's id)
 */
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, BAD_PARAM = 1, INVALID_VALUE = 2, NOT_APPLICABLE = 5 };
typedef int status_t;
typedef struct { const void *ptr; size_t size; } data_t;
typedef struct { int64_t uid; void *ptr; } buffer_t;
typedef struct { void *stream; } handle;
typedef struct { int64_t engine; } context;

static _Thread_local char last_error[2048];

static status_t fail(const char *text) {
    snprintf(last_error, sizeof last_error, "%s", text);
    return BAD_PARAM;
}
#define NEED(argument) do { if (!(argument)) return fail(#argument " is null"); } while (0)
#define NEED_BYTES(data) NEED((data) && (data)->ptr && (data)->size)

#ifdef NOV2025
static int64_t engine_id(void) { return -2; }
#else
static const char NAME[] = "DNN_ASSAY_STUB_ENGINE";
static int64_t engine_id(void) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char *c = NAME; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001B3u;
    return (int64_t)hash;
}
#endif

EXPORT status_t hipdnnPluginGetName(const char **name) { NEED(name); *name = "stub"; return SUCCESS; }
EXPORT status_t hipdnnPluginGetVersion(const char **version) { NEED(version); *version = "1.0.0"; return SUCCESS; }
EXPORT status_t hipdnnPluginGetType(int *type) { NEED(type); *type = 1; return SUCCESS; }
EXPORT void hipdnnPluginGetLastErrorString(const char **text) { if (text) *text = last_error; }
EXPORT status_t hipdnnPluginSetLoggingCallback(void *callback) { (void)callback; return SUCCESS; }

#ifndef NOV2025
EXPORT status_t hipdnnPluginGetApiVersion(const char **version) { NEED(version); *version = "1.4.0"; return SUCCESS; }
EXPORT status_t hipdnnPluginSetLogLevel(int level) { return level < 0 || level > 4 ? INVALID_VALUE : SUCCESS; }
EXPORT status_t hipdnnEnginePluginGetEngineName(int64_t id, const char **name) {
    NEED(name);
    if (id != engine_id()) return NOT_APPLICABLE;
    *name = NAME;
    return SUCCESS;
}
#endif

EXPORT status_t hipdnnEnginePluginGetAllEngineIds(int64_t *ids, uint32_t max, uint32_t *count) {
    NEED(count);
    if (max) { NEED(ids); ids[0] = engine_id(); }
    *count = 1;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginCreate(handle **out) {
    NEED(out);
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}
EXPORT status_t hipdnnEnginePluginDestroy(handle *h) { NEED(h); free(h); return SUCCESS; }
EXPORT status_t hipdnnEnginePluginSetStream(handle *h, void *stream) { NEED(h); h->stream = stream; return SUCCESS; }

EXPORT status_t hipdnnEnginePluginGetApplicableEngineIds(handle *h, const data_t *graph, int64_t *ids, uint32_t max,
                                                         uint32_t *count) {
    NEED(h);
    NEED_BYTES(graph);
    return hipdnnEnginePluginGetAllEngineIds(ids, max, count);
}

EXPORT status_t hipdnnEnginePluginGetEngineDetails(handle *h, int64_t id, const data_t *graph, data_t *details) {
    static const unsigned char head[24] = {16, 0, 0, 0, 6, 0, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0};
    NEED(h);
    NEED_BYTES(graph);
    NEED(details);
    if (id != engine_id()) return fail("no such engine");
    unsigned char *bytes = malloc(32);
    memcpy(bytes, head, 24);
    memcpy(bytes + 24, &id, 8);
    *details = (data_t){bytes, 32};
    return SUCCESS;
}
EXPORT status_t hipdnnEnginePluginDestroyEngineDetails(handle *h, data_t *details) {
    NEED(h);
    NEED(details);
    free((void *)details->ptr);
    *details = (data_t){NULL, 0};
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetWorkspaceSize(handle *h, const data_t *config, const data_t *graph, size_t *size) {
    NEED(h);
    NEED_BYTES(config);
    NEED_BYTES(graph);
    NEED(size);
    *size = 1024;
    return SUCCESS;
}
EXPORT status_t hipdnnEnginePluginCreateExecutionContext(handle *h, const data_t *config, const data_t *graph,
                                                         context **out) {
    NEED(h);
    NEED_BYTES(config);
    NEED_BYTES(graph);
    NEED(out);
    *out = malloc(sizeof **out);
    (*out)->engine = engine_id();
    return SUCCESS;
}
EXPORT status_t hipdnnEnginePluginDestroyExecutionContext(handle *h, context *c) { NEED(h); NEED(c); free(c); return SUCCESS; }
EXPORT status_t hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(handle *h, context *c, size_t *size) {
    NEED(h);
    NEED(c);
    NEED(size);
    *size = 2048;
    return SUCCESS;
}
EXPORT status_t hipdnnEnginePluginExecuteOpGraph(handle *h, context *c, void *workspace, const buffer_t *buffers,
                                                 uint32_t count) {
    (void)workspace; (void)count;
    NEED(h);
    NEED(c);
    NEED(buffers);
    return SUCCESS;
}

#ifndef NOV2025
static status_t save(handle *h, int64_t id, context *c, data_t *out) {
    NEED(h);
    NEED(c);
    NEED(out);
    char *bytes = malloc(9);
    bytes[0] = 0x42;
    memcpy(bytes + 1, &id, 8);
    *out = (data_t){bytes, 9};
    return SUCCESS;
}
#ifdef RETIRED_SAVE_HOOK
EXPORT status_t hipdnnEnginePluginSerializeExecutionContext(handle *h, context *c, data_t *out) {
    return save(h, engine_id(), c, out);
}
#else
EXPORT status_t hipdnnEnginePluginSerializeExecutionContextWithEngineId(handle *h, int64_t id, context *c, data_t *out) {
    return save(h, id, c, out);
}
#endif
EXPORT status_t hipdnnEnginePluginDestroySerializedExecutionContext(handle *h, data_t *bytes) {
    return hipdnnEnginePluginDestroyEngineDetails(h, bytes);
}
EXPORT status_t hipdnnEnginePluginCreateExecutionContextFromSerialized(handle *h, const data_t *bytes, context **out) {
    NEED(h);
    NEED_BYTES(bytes);
    NEED(out);
    if (bytes->size != 9 || *(const char *)bytes->ptr != 0x42) return fail("not a plan of this plugin");
    *out = malloc(sizeof **out);
    memcpy(&(*out)->engine, (const char *)bytes->ptr + 1, 8);
    return SUCCESS;
}
#endif
