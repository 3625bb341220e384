/* An engine plugin that copies its first buffer to its second, and misbehaves on request.
 *
 * The fault is named by the environment variable DNN_MOCK_FAULT, else by -DFAULT="\"name\"". The
 * names are listed in README.md. The source is C and C++ alike: built as C++ it can throw.
 *
 * How many bytes are copied: a graph that starts with "MOCKSIZE" carries the number in the eight
 * bytes behind it; else DNN_MOCK_BYTES, else 64.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __cplusplus
#include <stdexcept>
#endif
#ifndef EXPORT /* -DEXPORT="static ..." exports nothing */
#ifdef __cplusplus
#define EXPORT extern "C" __attribute__((visibility("default")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#endif

#ifndef FAULT
#define FAULT ""
#endif

enum { SUCCESS = 0, BAD_PARAM = 1, INTERNAL_ERROR = 3, ALLOC_FAILED = 4, NOT_APPLICABLE = 5 };
enum { TYPE_UNSPECIFIED = 0, TYPE_ENGINE = 1, TYPE_HEURISTIC = 2 };

typedef int status_t;
typedef struct { const void *ptr; size_t size; } data_t;
typedef struct { int64_t uid; void *ptr; } buffer_t;
typedef void (*callback_t)(int severity, const char *message);

static const char *const NAMES[2] = {"MOCK_ENGINE_A", "MOCK_ENGINE_B"};
static callback_t log_to;
static size_t plan_bytes = 64;
static char error_text[12000];
static int handle_object, context_object;

static const char *fault(void) {
    const char *name = getenv("DNN_MOCK_FAULT");
    return name ? name : FAULT;
}

static int is(const char *name) { return strcmp(fault(), name) == 0; }

static status_t fail(const char *text) {
    snprintf(error_text, sizeof error_text, "%s", text);
    return INTERNAL_ERROR;
}

static int64_t hash(const char *name) {
    uint64_t h = 0xCBF29CE484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001B3u;
    return (int64_t)h;
}

/* The faults that any function can have: "segv:GetEngineDetails" and the like. */
static void enter(const char *function) {
    const char *colon = strchr(fault(), ':');
    size_t length = colon ? (size_t)(colon - fault()) : 0;
    if (!colon || strcmp(colon + 1, function) != 0) return;
#define KIND(word) (length == strlen(word) && memcmp(fault(), word, length) == 0)
    if (KIND("segv")) *(volatile int *)8 = 1;
    if (KIND("hang")) for (;;) pause();
    if (KIND("hang-ignoring-term")) { signal(SIGTERM, SIG_IGN); for (;;) pause(); }
    if (KIND("exit")) exit(0);
    if (KIND("exit-code")) exit(42);
    if (KIND("abort")) { fprintf(stderr, "mock: about to abort\n"); abort(); }
    if (KIND("kill")) raise(SIGKILL);
    if (KIND("flood")) for (;;) printf("mock: the same line again and again, without an end\n");
    if (KIND("chatter")) for (int i = 0; i < 2000; i++) { printf("out %d\n", i); fprintf(stderr, "err %d\n", i); }
    if (KIND("log")) for (int i = 0; i < 3; i++) if (log_to) log_to(i, i == 1 ? "second \x1b[31m line" : "a line");
    if (KIND("log-flood")) for (int i = 0; i < 100000; i++) if (log_to) log_to(1, "the same warning");
    if (KIND("fork")) if (fork() == 0) { if (log_to) log_to(2, "from a fork"); for (;;) pause(); }
    if (KIND("scribble")) for (int fd = 3; fd < 64; fd++) { ssize_t n = write(fd, "scribbled over the socket", 25); (void)n; }
#ifdef __cplusplus
    if (KIND("throw")) throw std::runtime_error("mock: thrown through the C ABI");
#endif
}
#define ENTER() enter(__func__ + (strncmp(__func__, "hipdnnEnginePlugin", 18) ? 12 : 18))

__attribute__((constructor)) static void constructor(void) { enter("constructor"); }
__attribute__((destructor)) static void destructor(void) { enter("destructor"); }

static status_t give(const char **target, const char *value) {
    if (!target) return BAD_PARAM;
    *target = value;
    return SUCCESS;
}

EXPORT status_t hipdnnPluginGetName(const char **name) {
    ENTER();
    if (is("name-fails")) return fail("mock: no name today");
    return give(name, is("null-name") ? NULL : "mock plugin");
}

EXPORT status_t hipdnnPluginGetVersion(const char **version) {
    ENTER();
    return give(version, is("null-version") ? NULL : "0.1");
}

EXPORT status_t hipdnnPluginGetType(int *type) {
    ENTER();
    *type = is("heuristic") ? TYPE_HEURISTIC : is("type-unspecified") ? TYPE_UNSPECIFIED : TYPE_ENGINE;
    return SUCCESS;
}

#ifndef WITHOUT_LAST_ERROR
EXPORT void hipdnnPluginGetLastErrorString(const char **error) {
    ENTER();
    if (error) *error = is("null-error") ? NULL : error_text;
}
#endif

#ifndef WITHOUT_OPTIONAL
EXPORT status_t hipdnnPluginGetApiVersion(const char **version) {
    ENTER();
    return give(version, is("api-unparsable") ? "one.two"
                         : is("api-major-0") ? "0.9.0"
                         : is("api-major-2") ? "2.0.0"
                         : is("api-null") ? NULL
                                          : "1.4.0");
}

EXPORT status_t hipdnnPluginSetLoggingCallback(callback_t callback) {
    ENTER();
    log_to = callback;
    return SUCCESS;
}

EXPORT status_t hipdnnPluginSetLogLevel(int level) {
    ENTER();
    (void)level;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetEngineName(int64_t id, const char **name) {
    ENTER();
    if (is("engine-name-declined")) return NOT_APPLICABLE;
    if (is("engine-name-fails")) return fail("mock: no engine name");
    if (is("engine-name-null")) return give(name, NULL);
    if (is("engine-name-wrong")) return give(name, "ANOTHER_NAME");
    return give(name, id == hash(NAMES[0]) ? NAMES[0] : NAMES[1]);
}
#endif

EXPORT status_t hipdnnEnginePluginGetAllEngineIds(int64_t *ids, uint32_t max, uint32_t *count) {
    ENTER();
    if (is("zero-engines")) { *count = 0; return SUCCESS; }
    if (is("many-engines")) { *count = 4000000000u; return SUCCESS; }
    *count = 2;
    if (max == 0) return SUCCESS;
    ids[0] = hash(NAMES[0]);
    ids[1] = hash(NAMES[is("duplicate-ids") ? 0 : 1]);
    if (is("counts-differ")) *count = 1;
    if (is("ids-overflow")) ids[2] = 1;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginCreate(void **handle) {
    ENTER();
    if (is("create-fails")) { fail("mock: no device"); return ALLOC_FAILED; }
    *handle = is("null-handle") ? NULL : (void *)&handle_object;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroy(void *handle) {
    ENTER();
    (void)handle;
    return is("destroy-fails") ? fail("mock: handle stays") : SUCCESS;
}

EXPORT status_t hipdnnEnginePluginSetStream(void *handle, void *stream) {
    ENTER();
    (void)handle; (void)stream;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetApplicableEngineIds(void *handle, const data_t *graph, int64_t *ids,
                                                         uint32_t max, uint32_t *count) {
    ENTER();
    (void)handle; (void)graph; (void)max;
    if (is("applicable-fails")) return fail("mock: cannot read the graph");
    *count = 2;
    ids[0] = is("applicable-unknown") ? 77 : hash(NAMES[0]);
    ids[1] = hash(NAMES[is("applicable-duplicate") ? 0 : 1]);
    if (is("applicable-none")) *count = 0;
    if (is("applicable-too-many")) *count = 3;
    if (is("applicable-overflow")) ids[2] = hash(NAMES[0]);
    return SUCCESS;
}

/* A FlatBuffers table with one field, the engine's id. */
static unsigned char *details_of(int64_t id) {
    static const unsigned char head[24] = {16, 0, 0, 0, 0, 0, 6, 0, 16, 0, 8, 0, 0, 0, 0, 0, 10, 0, 0, 0};
    unsigned char *bytes = (unsigned char *)malloc(32);
    memcpy(bytes, head, 24);
    memcpy(bytes + 24, &id, 8);
    return bytes;
}

EXPORT status_t hipdnnEnginePluginGetEngineDetails(void *handle, int64_t id, const data_t *graph, data_t *details) {
    ENTER();
    (void)handle; (void)graph;
    if (is("details-fails")) return fail("mock: no details");
    if (is("details-null")) return SUCCESS;
    if (is("details-wild")) { details->ptr = (const void *)16; details->size = 100; return SUCCESS; }
    if (is("details-endless")) { details->ptr = details; details->size = (size_t)1 << 60; return SUCCESS; }
    details->ptr = details_of(id);
    details->size = 32;
    if (is("details-garbage")) memset((void *)details->ptr, 0xEE, 32);
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroyEngineDetails(void *handle, data_t *details) {
    ENTER();
    (void)handle;
    if (is("destroy-details-fails")) return fail("mock: details stay");
    free((void *)details->ptr);
    if (is("details-not-zeroed")) return SUCCESS;
    details->ptr = NULL;
    details->size = 0;
    return SUCCESS;
}

static size_t workspace_bytes(void) {
    if (is("workspace-huge")) return (size_t)1 << 50;
    return strncmp(fault(), "workspace", 9) ? 100 : 1000;
}

EXPORT status_t hipdnnEnginePluginGetWorkspaceSize(void *handle, const data_t *config, const data_t *graph, size_t *size) {
    ENTER();
    (void)handle; (void)config; (void)graph;
    if (is("config-workspace-fails")) return fail("mock: no size");
    *size = is("config-workspace-negative") ? (size_t)1 << 63 : workspace_bytes();
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginCreateExecutionContext(void *handle, const data_t *config, const data_t *graph,
                                                         void **context) {
    ENTER();
    (void)handle; (void)config;
    if (is("context-fails")) return fail("mock: cannot plan");
    const char *bytes = getenv("DNN_MOCK_BYTES");
    plan_bytes = bytes ? strtoull(bytes, NULL, 10) : 64;
    if (graph->size >= 16 && memcmp(graph->ptr, "MOCKSIZE", 8) == 0)
        memcpy(&plan_bytes, (const char *)graph->ptr + 8, 8);
    *context = is("context-null") ? NULL : (void *)&context_object;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroyExecutionContext(void *handle, void *context) {
    ENTER();
    (void)handle; (void)context;
    return is("destroy-context-fails") ? fail("mock: context stays") : SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(void *handle, void *context, size_t *size) {
    ENTER();
    (void)handle; (void)context;
    if (is("context-workspace-fails")) return fail("mock: no size of the plan");
    *size = is("context-workspace-negative") ? (size_t)1 << 63 : workspace_bytes();
    return SUCCESS;
}

/* How often this process has executed; the file that DNN_MOCK_EXECUTIONS names gets a byte for each. */
static int executions(void) {
    static int count;
    const char *path = getenv("DNN_MOCK_EXECUTIONS");
    FILE *file = path ? fopen(path, "ab") : NULL;
    if (file) { fputc('x', file); fclose(file); }
    return ++count;
}

EXPORT status_t hipdnnEnginePluginExecuteOpGraph(void *handle, void *context, void *workspace,
                                                 const buffer_t *buffers, uint32_t count) {
    ENTER();
    (void)handle; (void)context;
    if (is("execute-fails")) return fail("mock: execution failed on purpose");
    if (is("execute-fails-long")) {
        memset(error_text, 'x', 10000);
        memcpy(error_text, "bell\a escape\x1b[2J\r\n\xff|", 20);
        error_text[10000] = 0;
        return INTERNAL_ERROR;
    }
    if (count < 2) return fail("mock: two buffers, please");
    if (workspace) memset(workspace, 0, workspace_bytes());
    unsigned char *in = (unsigned char *)buffers[0].ptr, *out = (unsigned char *)buffers[1].ptr;
    int first = executions() == 1;
    if (is("write-nothing")) return SUCCESS;
    memcpy(out, in, is("write-half") || (first && is("write-half-first")) ? plan_bytes / 2 : plan_bytes);
    if (is("wrong-sign")) out[plan_bytes - 1] ^= 0x80;
    if (is("past-end-1")) out[plan_bytes] = 0;
    if (is("past-end-far")) out[plan_bytes + 5000] = 0;
    if (is("before-start-1")) out[-1] = 0;
    if (is("before-start-far")) out[-5000] = 0;
    if (is("read-past-end")) out[0] = in[plan_bytes + 4096];
    if (is("change-input")) in[plan_bytes - 1] ^= 1;
    if (is("workspace-past-end-1")) ((unsigned char *)workspace)[workspace_bytes()] = 0;
    if (is("workspace-past-end-far")) ((unsigned char *)workspace)[workspace_bytes() + 5000] = 0;
    return SUCCESS;
}

#ifdef HEURISTIC_SYMBOLS
EXPORT status_t hipdnnHeuristicPluginGetAllPolicyIds(int64_t *ids, uint32_t max, uint32_t *count) {
    (void)ids; (void)max;
    *count = 0;
    return SUCCESS;
}
#endif
